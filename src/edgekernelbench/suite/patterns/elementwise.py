"""Elementwise arithmetic."""

from __future__ import annotations

from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("add")
def add(a: Array, b: Array) -> Array:
    return a + b


@add.twin
def _(g: Graph, a: Value, b: Value) -> Value:
    return g.Add(a, b)
