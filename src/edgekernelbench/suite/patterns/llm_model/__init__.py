"""Decoder layers of language models."""

from edgekernelbench.suite.patterns.llm_model import llama, mamba, quantised, rwkv  # noqa: F401
