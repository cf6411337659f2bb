"""Normalisations by mean and variance, by a norm, and by a sum of exponentials."""

from edgekernelbench.suite.patterns.normalization import layers, norms, softmaxes  # noqa: F401
