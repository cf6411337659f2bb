"""Attention and its parts."""

from edgekernelbench.suite.patterns.attention import (  # noqa: F401
    biased,
    decode,
    linear,
    plain,
    projections,
    rotary,
)
