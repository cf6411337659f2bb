"""Chains of the transformer's feed-forward and residual paths."""

from __future__ import annotations

from edgekernelbench.suite.draw import near
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import rms_norm, silu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("swiglu_mlp")
def swiglu_mlp(x: Array, Wg: Array, Wu: Array, Wd: Array) -> Array:
    return (silu(x @ Wg.T) * (x @ Wu.T)) @ Wd.T


@swiglu_mlp.twin
def _(g: Graph, x: Value, Wg: Array, Wu: Array, Wd: Array) -> Value:
    gated = g.Mul(blocks.silu(g, g.MatMul(x, Wg.T)), g.MatMul(x, Wu.T))
    return g.MatMul(gated, Wd.T)


@pattern("residual_add_rms_norm", draw={"g": near(1.0)})
def residual_add_rms_norm(x: Array, r: Array, g: Array, eps: float) -> tuple[Array, Array]:
    h = x + r
    return h, rms_norm(h, g, eps)


@residual_add_rms_norm.twin
def _(graph: Graph, x: Value, r: Value, g: Array, eps: float) -> tuple[Value, Value]:
    h = graph.Add(x, r)
    return h, blocks.rms_norm(graph, h, g, eps)
