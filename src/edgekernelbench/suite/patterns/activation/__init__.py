"""Activation functions, element by element."""

from edgekernelbench.suite.patterns.activation import piecewise, smooth  # noqa: F401
