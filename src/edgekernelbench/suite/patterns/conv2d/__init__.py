"""Two- and three-dimensional convolutions over all channels, and their relatives."""

from edgekernelbench.suite.patterns.conv2d import adaptive, dense, structured  # noqa: F401
