"""Embedding tables and feature interactions."""

from __future__ import annotations

from edgekernelbench.suite.draw import activations, integers
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("embedding_bag_sum", draw={"idx": integers("0", "V"), "table": activations()})
def embedding_bag_sum(idx: Array, table: Array) -> Array:
    return table[idx].sum(axis=1)


@embedding_bag_sum.twin
def _(g: Graph, idx: Value, table: Array) -> Value:
    return g.ReduceSum(g.Gather(g.value(table), idx), [1], keepdims=0)
