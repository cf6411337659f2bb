"""Mask decoders that attend in both directions."""

from __future__ import annotations

from edgekernelbench.suite.draw import activations, weights
from edgekernelbench.suite.patterns.functions import layer_norm, relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.transformer_model.parts import (
    heads_attention,
    heads_operators,
    linear,
    norm_gains,
)
from edgekernelbench.suite.twin import Graph, Value


@pattern(
    "mobilesam_two_way_block",
    draw={
        "mp": activations(0.5, spread=0.5),
        **{name: weights("C", 1.4) for name in ("A1", "A2i", "A3i", "W1")},
        **{name: weights("C//2", 2.0) for name in ("A2o", "A3o")},
        "W2": weights("I", 1.4),
        **{name: weights("8") for name in ("a1", "a2i", "a3i")},
        "ln": norm_gains,
    },
)
def mobilesam_two_way_block(
    t: Array, tp: Array, m: Array, mp: Array, A1: Array, a1: Array, A2i: Array, a2i: Array,
    A2o: Array, a2o: Array, A3i: Array, a3i: Array, A3o: Array, a3o: Array, W1: Array, b1: Array,
    W2: Array, b2: Array, ln: Array, Hn: int
) -> tuple[Array, Array]:  # fmt: skip
    def attention(inputs: tuple[Array, ...], w: Array, b: Array, wo: Array, bo: Array) -> Array:
        q, k, v = (x @ w[i].T + b[i] for i, x in enumerate(inputs))
        return heads_attention(q, k, v, Hn) @ wo.T + bo

    def norm(x: Array, i: int) -> Array:
        return layer_norm(x, ln[i, 0], ln[i, 1], 1e-5)

    t = norm(t + attention((t + tp, t + tp, t), A1, a1, A1[3], a1[3]), 0)
    t = norm(t + attention((t + tp, m + mp, m), A2i, a2i, A2o, a2o), 1)
    t = norm(t + relu(t @ W1.T + b1) @ W2.T + b2, 2)
    m = norm(m + attention((m + mp, t + tp, t), A3i, a3i, A3o, a3o), 3)
    return t, m


@mobilesam_two_way_block.twin
def _(
    g: Graph, t: Value, tp: Value, m: Value, mp: Array, A1: Array, a1: Array, A2i: Array,
    a2i: Array, A2o: Array, a2o: Array, A3i: Array, a3i: Array, A3o: Array, a3o: Array,
    W1: Array, b1: Array, W2: Array, b2: Array, ln: Array, Hn: int
) -> tuple[Value, Value]:  # fmt: skip
    def attention(inputs: tuple[Value, ...], w: Array, b: Array, wo: Array, bo: Array) -> Value:
        q, k, v = (linear(g, x, w[i], b[i]) for i, x in enumerate(inputs))
        return linear(g, heads_operators(g, q, k, v, Hn, wo.shape[1] // Hn), wo, bo)

    def norm(x: Value, branch: Value, i: int) -> Value:
        total = g.Add(x, branch)
        return g.LayerNormalization(total, ln[i, 0], ln[i, 1], axis=-1, epsilon=1e-5)

    placed = g.Add(t, tp)
    t = norm(t, attention((placed, placed, t), A1, a1, A1[3], a1[3]), 0)
    image = g.Add(m, mp)
    t = norm(t, attention((g.Add(t, tp), image, m), A2i, a2i, A2o, a2o), 1)
    t = norm(t, linear(g, g.Relu(linear(g, t, W1, b1)), W2, b2), 2)
    m = norm(m, attention((image, g.Add(t, tp), t), A3i, a3i, A3o, a3o), 3)
    return t, m
