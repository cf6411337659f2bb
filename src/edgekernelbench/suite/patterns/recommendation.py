"""Embedding tables and feature interactions."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import (
    Draw,
    activations,
    integers,
    near,
    on_grid,
    uniform,
    weights,
)
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import relu, sigmoid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("embedding_bag_sum", draw={"idx": integers("0", "V"), "table": activations()})
def embedding_bag_sum(idx: Array, table: Array) -> Array:
    return table[idx].sum(axis=1)


@embedding_bag_sum.twin
def _(g: Graph, idx: Value, table: Array) -> Value:
    return g.ReduceSum(g.Gather(g.value(table), idx), [1], keepdims=0)


@pattern(
    "embedding_bag_rowwise_q8",
    draw={"idx": integers("0", "V"), "sc": uniform(0.003, 0.009), "bi": near(-0.75, 0.5)},
)
def embedding_bag_rowwise_q8(idx: Array, q: Array, sc: Array, bi: Array) -> Array:
    rows = q[idx] * sc[idx][:, :, None] + bi[idx][:, :, None]
    return rows.sum(axis=1)


@embedding_bag_rowwise_q8.twin
def _(g: Graph, idx: Value, q: Array, sc: Array, bi: Array) -> Value:
    def of_rows(table: Array) -> Value:
        return g.Unsqueeze(g.Gather(g.value(table), idx), [2])

    levels = g.Cast(g.Gather(g.value(q), idx), to=1)
    return g.ReduceSum(g.Add(g.Mul(levels, of_rows(sc)), of_rows(bi)), [1], keepdims=0)


@pattern("dot_interaction_tril")
def dot_interaction_tril(x: Array) -> Array:
    i, j = np.tril_indices(x.shape[1], -1)  # pairs j < i, row by row
    return (x @ x.transpose(0, 2, 1))[:, i, j]


@dot_interaction_tril.twin
def _(g: Graph, x: Value, B: int, Fn: int) -> Value:
    return interactions(g, x, B, Fn)


def interactions(g: Graph, x: Value, B: int, Fn: int) -> Value:
    """`dot_interaction_tril` in ONNX."""
    i, j = np.tril_indices(Fn, -1)
    products = g.MatMul(x, g.Transpose(x, perm=[0, 2, 1]))
    return g.Gather(g.Reshape(products, [B, Fn * Fn]), i * Fn + j, axis=1)


def boundaries(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Ascending, on a grid on which features meet them."""
    return np.sort(on_grid(activations(spread=0.5), 0.125)(draw, spec), axis=1)


@pattern("bucketize", draw={"x": on_grid(activations(), 0.125), "bnd": boundaries})
def bucketize(x: Array, bnd: Array) -> Array:
    return (x[:, :, None] >= bnd).sum(axis=2)


@bucketize.twin
def _(g: Graph, x: Value, bnd: Array) -> Value:
    reached = g.GreaterOrEqual(g.Unsqueeze(x, [2]), bnd)
    return g.ReduceSum(g.Cast(reached, to=6), [2], keepdims=0)


@pattern("fm_second_order")
def fm_second_order(v: Array) -> Array:
    return 0.5 * (v.sum(axis=1) ** 2 - (v**2).sum(axis=1)).sum(axis=1)


@fm_second_order.twin
def _(g: Graph, v: Value) -> Value:
    return second_order(g, v)


def second_order(g: Graph, v: Value) -> Value:
    """`fm_second_order` in ONNX."""
    total = g.ReduceSum(v, [1], keepdims=0)
    difference = g.Sub(g.Mul(total, total), g.ReduceSum(g.Mul(v, v), [1], keepdims=0))
    return g.Mul(g.ReduceSum(difference, [1], keepdims=0), 0.5)


@pattern("cross_network_v2_layer")
def cross_network_v2_layer(x0: Array, x: Array, W: Array, b: Array) -> Array:
    return x0 * (x @ W.T + b) + x


@cross_network_v2_layer.twin
def _(g: Graph, x0: Value, x: Value, W: Array, b: Array) -> Value:
    return g.Add(g.Mul(x0, g.Gemm(x, W, b, transB=1)), x)


@pattern("din_attention_pooling", draw={"len": integers("1", "L+1"), "w2": weights("Hd", 2.0)})
def din_attention_pooling(
    q: Array, h: Array, len: Array, W1: Array, b1: Array, w2: Array, b2: Array, L: int
) -> Array:
    query = np.broadcast_to(q[:, None, :], h.shape)
    f = np.concatenate([query, h, query - h, query * h], axis=2)
    a = relu(f @ W1.T + b1) @ w2 + b2
    a = np.where(np.arange(L) < len[:, None], a, 0)
    return (a[:, :, None] * h).sum(axis=1)


@din_attention_pooling.twin
def _(
    g: Graph, q: Value, h: Value, len: Value, W1: Array, b1: Array, w2: Array, b2: Array, B: int,
    L: int, D: int
) -> Value:  # fmt: skip
    query = g.Expand(g.Unsqueeze(q, [1]), [B, L, D])
    f = g.Concat(query, h, g.Sub(query, h), g.Mul(query, h), axis=2)
    a = g.Add(g.MatMul(g.Relu(g.Add(g.MatMul(f, W1.T), b1)), w2), b2)
    valid = g.Less(np.arange(L, dtype=np.int32), g.Unsqueeze(len, [1]))
    weighted = g.Mul(h, g.Unsqueeze(g.Mul(a, g.cast(valid)), [2]))
    return g.ReduceSum(weighted, [1], keepdims=0)


HE = weights(gain=1.4)
"""Weights before a ReLU, which keep the scale."""


@pattern(
    "dlrm_small",
    draw={
        "idx": integers("0", "V"),
        "E": activations(0.7, spread=0.75),
        **dict.fromkeys(("w1", "w2", "w3", "w4", "t1", "t2"), HE),
    },
)
def dlrm_small(
    dense: Array, idx: Array, E: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array,
    b3: Array, w4: Array, b4: Array, t1: Array, c1: Array, t2: Array, c2: Array, t3: Array,
    c3: Array
) -> Array:  # fmt: skip
    z = dense
    for w, b in ((w1, b1), (w2, b2), (w3, b3), (w4, b4)):
        z = relu(z @ w.T + b)
    e = E[np.arange(26), idx]  # [B, 26, 16]
    v = np.concatenate([z[:, None, :], e], axis=1)
    y = np.concatenate([z, dot_interaction_tril(v)], axis=1)
    y = relu(y @ t1.T + c1)
    y = relu(y @ t2.T + c2)
    return sigmoid(y @ t3.T + c3)[:, 0]


@dlrm_small.twin
def _(
    g: Graph, dense: Value, idx: Value, E: Array, w1: Array, b1: Array, w2: Array, b2: Array,
    w3: Array, b3: Array, w4: Array, b4: Array, t1: Array, c1: Array, t2: Array, c2: Array,
    t3: Array, c3: Array, B: int
) -> Value:  # fmt: skip
    z = dense
    for w, b in ((w1, b1), (w2, b2), (w3, b3), (w4, b4)):
        z = g.Relu(g.Gemm(z, w, b, transB=1))
    v = g.Concat(g.Unsqueeze(z, [1]), field_embeddings(g, idx, E), axis=1)
    y = g.Concat(z, interactions(g, v, B, 27), axis=1)
    for w, b in ((t1, c1), (t2, c2)):
        y = g.Relu(g.Gemm(y, w, b, transB=1))
    return g.Squeeze(g.Sigmoid(g.Gemm(y, t3, c3, transB=1)), [1])


def field_embeddings(g: Graph, idx: Value, E: Array) -> Value:
    """E[f, idx[b,f]] in ONNX: one table, the rows of each field after those of the last."""
    fields, rows = E.shape[:2]
    first = np.arange(fields, dtype=np.int32) * rows
    table = E.reshape(fields * rows, *E.shape[2:])
    return g.Gather(g.value(table), g.Add(idx, first))


@pattern(
    "deepfm",
    draw={
        "idx": integers("0", "V"),
        "wl": weights("Fn", 1.5),
        "b0": near(-1.5, 0.3),  # clicks are rare
        "E": activations(0.1, spread=0.5),
        "w1": weights(gain=10.0),
        "w2": HE,
        "w3": weights(gain=2.5),
    },
)
def deepfm(
    idx: Array, wl: Array, b0: Array, E: Array, w1: Array, b1: Array, w2: Array, b2: Array,
    w3: Array, b3: Array, Fn: int
) -> Array:  # fmt: skip
    fields = np.arange(Fn)
    linear = b0 + wl[fields, idx].sum(axis=1)
    v = E[fields, idx]  # [B, Fn, D]
    h = relu(v.reshape(len(v), -1) @ w1.T + b1)
    h = relu(h @ w2.T + b2)
    return sigmoid(linear + fm_second_order(v) + (h @ w3.T + b3)[:, 0])


@deepfm.twin
def _(
    g: Graph, idx: Value, wl: Array, b0: Array, E: Array, w1: Array, b1: Array, w2: Array,
    b2: Array, w3: Array, b3: Array, B: int, Fn: int, D: int
) -> Value:  # fmt: skip
    linear = g.Add(g.ReduceSum(field_embeddings(g, idx, wl), [1], keepdims=0), b0)
    v = field_embeddings(g, idx, E)
    h = g.Reshape(v, [B, Fn * D])
    for w, b in ((w1, b1), (w2, b2)):
        h = g.Relu(g.Gemm(h, w, b, transB=1))
    deep = g.Squeeze(g.Gemm(h, w3, b3, transB=1), [1])
    return g.Sigmoid(g.Add(g.Add(linear, second_order(g, v)), deep))
