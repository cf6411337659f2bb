"""Encoder and decoder layers of transformers."""

from edgekernelbench.suite.patterns.transformer_model import (  # noqa: F401
    encoders,
    mobile,
    segmentation,
    speech,
)
