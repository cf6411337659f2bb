"""Operators on graphs and point sets."""

from edgekernelbench.suite.patterns.graph import (  # noqa: F401
    attention,
    pillars,
    pointnet,
    points,
    sparse,
)
