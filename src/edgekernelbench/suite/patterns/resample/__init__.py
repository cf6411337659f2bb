"""Resizing, warping and resampling."""

from edgekernelbench.suite.patterns.resample import resize, signal, warp  # noqa: F401
