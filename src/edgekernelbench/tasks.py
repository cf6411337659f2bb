"""What a Python file of own tasks imports; see ``docs/own-tasks.md``."""

from __future__ import annotations

from edgekernelbench.suite.draw import (
    Draw,
    activations,
    integers,
    near,
    on_grid,
    uniform,
    weights,
)
from edgekernelbench.suite.own.python.table import task
from edgekernelbench.suite.patterns.registry import Array
from edgekernelbench.suite.twin import Graph, Value

__all__ = [
    "Array",
    "Draw",
    "Graph",
    "Value",
    "activations",
    "integers",
    "near",
    "on_grid",
    "task",
    "uniform",
    "weights",
]
