"""Chains of the transformer's feed-forward and residual paths."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, integers, near, on_grid, uniform, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import gelu, layer_norm, relu, rms_norm, sigmoid, silu
from edgekernelbench.suite.patterns.ranges import faint_levels, with_faint_slices
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


@residual_add_rms_norm.inputs
def faint_sums(draw: Draw) -> dict[str, np.ndarray]:
    """Both terms are faint in the same rows, so that eps counts there."""
    levels = faint_levels(draw, "x", (draw.shape("x")[0], 1), float(draw.sizes["eps"]))
    terms = {name: activations()(draw, draw.spec(name)) for name in ("x", "r")}
    sizes = np.sqrt(((terms["x"] + terms["r"]) ** 2).mean(axis=1, keepdims=True))
    factors = np.where(levels > 0, levels / sizes, 1)
    return {name: factors * values for name, values in terms.items()}


@residual_add_rms_norm.twin
def _(graph: Graph, x: Value, r: Value, g: Array, eps: float) -> tuple[Value, Value]:
    h = graph.Add(x, r)
    return h, blocks.rms_norm(graph, h, g, eps)


@pattern("gelu_mlp")
def gelu_mlp(x: Array, W1: Array, b1: Array, W2: Array, b2: Array) -> Array:
    return gelu(x @ W1.T + b1) @ W2.T + b2


@gelu_mlp.twin
def _(g: Graph, x: Value, W1: Array, b1: Array, W2: Array, b2: Array) -> Value:
    return g.Gemm(g.Gelu(g.Gemm(x, W1, b1, transB=1)), W2, b2, transB=1)


@pattern("residual_add_layer_norm", draw={"gamma": near(1.0)})
def residual_add_layer_norm(x: Array, r: Array, gamma: Array, beta: Array, eps: float) -> Array:
    return layer_norm(x + r, gamma, beta, eps)


residual_add_layer_norm.inputs(faint_sums)


@residual_add_layer_norm.twin
def _(g: Graph, x: Value, r: Value, gamma: Array, beta: Array, eps: float) -> Value:
    return g.LayerNormalization(g.Add(x, r), gamma, beta, axis=-1, epsilon=eps)


@pattern(
    "rms_norm_linear",
    draw={"x": with_faint_slices(activations(), axes=(1,), eps=1e-5), "g": near(1.0)},
)
def rms_norm_linear(x: Array, g: Array, W: Array) -> Array:
    return rms_norm(x, g, 1e-5) @ W.T


@rms_norm_linear.twin
def _(graph: Graph, x: Value, g: Array, W: Array) -> Value:
    return graph.MatMul(blocks.rms_norm(graph, x, g, 1e-5), W.T)


@pattern("lora_linear")
def lora_linear(x: Array, W: Array, A: Array, B: Array, alpha_r: float) -> Array:
    return x @ W.T + alpha_r * ((x @ A.T) @ B.T)


@lora_linear.twin
def _(g: Graph, x: Value, W: Array, A: Array, B: Array, alpha_r: float) -> Value:
    side = g.MatMul(g.MatMul(x, A.T), B.T)
    return g.Add(g.MatMul(x, W.T), g.Mul(side, alpha_r))


def repeated_rows(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Rows that occur twice on average, so that the largest logit usually has a tie."""
    rows = on_grid(weights("C", 8.0), 2.0**-12)(draw, spec)
    rng = draw.rng(spec.name).spawn(1)[0]
    return rows[rng.integers(0, max(1, len(rows) // 2), len(rows))]


# On these grids every order of summation is exact in float32, and a copy of W in f16 is not W.
@pattern(
    "lm_head_argmax",
    draw={"x": on_grid(activations(spread=0.5), 2.0**-4), "W": repeated_rows},
)
def lm_head_argmax(x: Array, W: Array) -> tuple[Array, Array]:
    logits = W @ x
    best = int(np.argmax(logits))  # the first of equals
    return np.array([best]), logits[[best]]


@lm_head_argmax.twin
def _(g: Graph, x: Value, W: Array) -> tuple[Value, Value]:
    logits = g.MatMul(blocks.wide(g, x), W.T.astype(np.float32))
    best = g.ArgMax(logits, axis=0, keepdims=1)
    return g.Cast(best, to=6), g.ReduceMax(logits, [0], keepdims=1)


@pattern(
    "bert_embedding_layer_norm",
    draw={
        "id": integers("0", "V"),
        "seg": integers("0", "2"),
        **{name: weights("4") for name in ("Wt", "Wp", "Ws")},
        "gamma": near(1.0),
    },
)
def bert_embedding_layer_norm(
    id: Array, seg: Array, Wt: Array, Wp: Array, Ws: Array, gamma: Array, beta: Array, L: int
) -> Array:
    return layer_norm(Wt[id] + Wp[:L] + Ws[seg], gamma, beta, 1e-12)


@bert_embedding_layer_norm.twin
def _(
    g: Graph, id: Value, seg: Value, Wt: Array, Wp: Array, Ws: Array, gamma: Array, beta: Array,
    L: int
) -> Value:  # fmt: skip
    words, segments = g.Gather(g.value(Wt), id), g.Gather(g.value(Ws), seg)
    e = g.Add(g.Add(words, Wp[:L]), segments)
    return g.LayerNormalization(e, gamma, beta, axis=-1, epsilon=1e-12)


def token_shift(x: Array) -> Array:
    """Each token's predecessor; zeros before the first."""
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


@pattern("rwkv_channel_mix", draw={"mk": uniform(0.0, 1.0), "mr": uniform(0.0, 1.0)})
def rwkv_channel_mix(x: Array, mk: Array, mr: Array, Wk: Array, Wr: Array, Wv: Array) -> Array:
    previous = token_shift(x)
    xk = x * mk + previous * (1 - mk)
    xr = x * mr + previous * (1 - mr)
    return sigmoid(xr @ Wr.T) * (relu(xk @ Wk.T) ** 2 @ Wv.T)


@rwkv_channel_mix.twin
def _(g: Graph, x: Value, mk: Array, mr: Array, Wk: Array, Wr: Array, Wv: Array, L: int) -> Value:
    return channel_mix_operators(g, x, (mk, mr), (Wk, Wr, Wv), L)


def channel_mix_operators(
    g: Graph, x: Value, mixes: tuple[Array, Array], matrices: tuple[Array, Array, Array], L: int
) -> Value:
    """`rwkv_channel_mix` of x[L,C] in ONNX."""
    Wk, Wr, Wv = matrices
    previous = token_shift_operators(g, x, L)
    xk, xr = (g.Add(g.Mul(x, m), g.Mul(previous, 1 - m)) for m in mixes)
    hidden = g.Relu(g.MatMul(xk, Wk.T))
    return g.Mul(g.Sigmoid(g.MatMul(xr, Wr.T)), g.MatMul(g.Mul(hidden, hidden), Wv.T))


def token_shift_operators(g: Graph, x: Value, L: int) -> Value:
    return g.Slice(g.Pad(x, [1, 0, 0, 0]), [0], [L], [0])


def token_mask(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Ones and zeros; one row has no token, the others have the first one."""
    rng = draw.rng(spec.name)
    mask = rng.random(spec.shape) < 0.75
    mask[:, 0] = True
    mask[rng.integers(len(mask))] = False
    return mask.astype(np.float32)


@pattern("masked_mean_pool_l2norm", draw={"a": token_mask})
def masked_mean_pool_l2norm(x: Array, a: Array) -> Array:
    count = np.maximum(a.sum(axis=1, keepdims=True), 1e-9)
    m = (a[:, :, None] * x).sum(axis=1) / count
    return m / np.maximum(np.sqrt((m**2).sum(axis=1, keepdims=True)), 1e-12)


@masked_mean_pool_l2norm.twin
def _(g: Graph, x: Value, a: Value) -> Value:
    count = g.Max(g.ReduceSum(a, [1], keepdims=1), 1e-9)
    m = g.Div(g.ReduceSum(g.Mul(x, g.Unsqueeze(a, [2])), [1], keepdims=0), count)
    return g.Div(m, g.Max(g.ReduceL2(m, [1], keepdims=1), 1e-12))
