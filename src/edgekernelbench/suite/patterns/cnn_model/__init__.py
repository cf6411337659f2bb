"""Small convolutional networks and stages of larger ones, with all their weights."""

from edgekernelbench.suite.patterns.cnn_model import (  # noqa: F401
    classifiers,
    detectors,
    images,
    signals,
    vocoder,
)
