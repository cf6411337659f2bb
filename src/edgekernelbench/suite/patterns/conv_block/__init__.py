"""Convolution blocks of a few fused operators."""

from edgekernelbench.suite.patterns.conv_block import (  # noqa: F401
    merging,
    mobile,
    plain,
    pooled,
    residual,
)
