"""Recurrences over time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator, activations, uniform, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import relu, sigmoid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def step_sizes(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Positive step sizes of a state-space model: softplus of normal numbers around -3."""
    return np.log1p(np.exp(draw.rng(spec.name).normal(-3, 1, spec.shape)))


def decay_rates(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Negative rates around -1, -2, ... along the state, so that every scan decays."""
    rates = -(1.0 + np.arange(spec.shape[-1]))
    return rates * 2 ** draw.rng(spec.name).uniform(-0.5, 0.5, spec.shape)


def saturating(generator: Generator) -> Generator:
    """Biases of which some drive their gate to its end, where a bare ``exp`` overflows."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name).spawn(1)[0]
        far = rng.permutation(spec.size).reshape(spec.shape) % 32 == 0
        return generator(draw, spec) + far * rng.choice([-60.0, 60.0], spec.shape)

    return generate


def lstm_operator(
    g: Graph, x: Value, Wx: Array, Wh: Array, b: Array, h: Value | None = None,
    c: Value | None = None
) -> tuple[Value, Value, Value]:  # fmt: skip
    """ONNX's LSTM over x[L,1,I] from h, c[1,1,Hd]: all h [L,1,1,Hd], last h and c [1,1,Hd]."""

    def iofc(gates: Array) -> Array:
        i, f, c, o = np.split(gates, 4)
        return np.concatenate([i, o, f, c])[None]

    bias = np.concatenate([iofc(b), np.zeros_like(b)[None]], axis=1)
    size = Wh.shape[1]
    operands = (x, iofc(Wx), iofc(Wh), bias, None, h, c) if h else (x, iofc(Wx), iofc(Wh), bias)
    steps, last_h, last_c = g.op("LSTM", *operands, outputs=3, hidden_size=size)
    return steps, last_h, last_c


def gru_operator(
    g: Graph, x: Value, Wx: Array, Uh: Array, bx: Array, bh: Array, h: Value | None = None
) -> Value:
    """ONNX's GRU over x[L,1,I] from h[1,1,Hd]: all h [L,1,1,Hd]."""

    def zrh(gates: Array) -> Array:
        r, z, n = np.split(gates, 3)
        return np.concatenate([z, r, n])[None]

    bias = np.concatenate([zrh(bx), zrh(bh)], axis=1)
    operands = (x, zrh(Wx), zrh(Uh), bias, *((None, h) if h else ()))
    return g.GRU(*operands, hidden_size=Uh.shape[1], linear_before_reset=1)


def gates_by_channel(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Gates in [0.8, 1]; in one channel of four so near to 1 that it hardly forgets."""
    rng = draw.rng(spec.name)
    leaks = np.where(rng.permutation(spec.shape[1]) % 4 == 0, 0.01, 0.2)
    return 1 - leaks * rng.uniform(0, 1, spec.shape)


@pattern(
    "gated_linear_recurrence",
    draw={"f": gates_by_channel},
    no_twin="a scan whose decay changes; ONNX has it only as a Scan over a subgraph",
)
def gated_linear_recurrence(f: Array, x: Array, h0: Array) -> Array:
    h = h0
    y = np.zeros(x.shape)
    for t in range(len(x)):
        h = f[t] * h + (1 - f[t]) * x[t]
        y[t] = h
    return y


def far_keys(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Keys of which some channels lie where a bare ``exp`` overflows or vanishes."""
    channels = spec.shape[1]
    rng = draw.rng(spec.name).spawn(1)[0]
    far = rng.permutation(channels) % 8 == 0
    offsets = far * rng.choice([-100.0, 100.0], channels)
    return activations(1.0, spread=0.5)(draw, spec) + offsets


def channel_decay(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Negative logarithms of decay, from slow to immediate."""
    return -np.exp(draw.rng(spec.name).uniform(-3, 1, spec.shape))


@pattern(
    "rwkv4_wkv",
    draw={"w": channel_decay, "k": far_keys},
    no_twin="a scan over exponents; ONNX has it only as a Scan over a subgraph",
)
def rwkv4_wkv(w: Array, u: Array, k: Array, v: Array) -> Array:
    L, C = k.shape
    a, b, p = np.zeros(C), np.zeros(C), np.full(C, -1e38)  # sums, scaled by exp(-p)
    y = np.zeros((L, C))
    for t in range(L):
        q = np.maximum(p, u + k[t])
        old, new = np.exp(p - q), np.exp(u + k[t] - q)
        y[t] = (old * a + new * v[t]) / (old * b + new)
        q = np.maximum(p + w, k[t])
        old, new = np.exp(p + w - q), np.exp(k[t] - q)
        a, b, p = old * a + new * v[t], old * b + new, q
    return y


@pattern(
    "mamba_selective_scan",
    draw={"dt": step_sizes, "A": decay_rates},
    no_twin="a scan with an exponential decay; ONNX has it only as a Scan over a subgraph",
)
def mamba_selective_scan(x: Array, dt: Array, A: Array, B: Array, C: Array, D: Array) -> Array:
    h = np.zeros(A.shape)  # state [Di, Ns]
    y = np.zeros(x.shape)
    for t in range(len(x)):
        h = np.exp(dt[t][:, None] * A) * h + (dt[t] * x[t])[:, None] * B[t]
        y[t] = h @ C[t] + D * x[t]
    return y


@pattern("ssm_state_step", draw={"dt": step_sizes, "A": decay_rates})
def ssm_state_step(
    h: Array, x: Array, dt: Array, A: Array, B: Array, C: Array, D: Array
) -> tuple[Array, Array]:
    h = np.exp(dt[:, None] * A) * h + (dt * x)[:, None] * B
    return h, h @ C + D * x


@ssm_state_step.twin
def _(
    g: Graph, h: Value, x: Value, dt: Value, A: Array, B: Value, C: Value, D: Array
) -> tuple[Value, Value]:
    h, x, dt, B, C = (blocks.wide(g, value) for value in (h, x, dt, B, C))
    decay = g.Exp(g.Mul(g.Unsqueeze(dt, [1]), A))
    h = g.Add(g.Mul(decay, h), g.Mul(g.Unsqueeze(g.Mul(dt, x), [1]), B))
    y = g.Add(g.MatMul(h, C), g.Mul(x, D.astype(np.float32)))
    return g.cast(h), g.cast(y)


@pattern("rwkv_matrix_state_step", draw={"w": uniform(0.8, 1.0)})
def rwkv_matrix_state_step(
    S: Array, r: Array, k: Array, v: Array, w: Array, u: Array
) -> tuple[Array, Array]:
    kv = k[:, :, None] * v[:, None, :]
    y = np.einsum("hi,hij->hj", r, S + u[:, :, None] * kv)
    return y, w[:, :, None] * S + kv


@rwkv_matrix_state_step.twin
def _(g: Graph, S: Value, r: Value, k: Value, v: Value, w: Value, u: Array) -> tuple[Value, Value]:
    kv = g.Mul(g.Unsqueeze(k, [2]), g.Unsqueeze(v, [1]))
    read = g.MatMul(g.Unsqueeze(r, [1]), g.Add(S, g.Mul(kv, u[:, :, None])))
    return g.Squeeze(read, [1]), g.Add(g.Mul(g.Unsqueeze(w, [2]), S), kv)


@pattern(
    "lstm_cell",
    draw={
        "h": activations(0.5, spread=0.5),
        "Wx": weights("I", 1.5),
        "Wh": weights("Hd", 1.5),
        "b": saturating(weights()),
    },
)
def lstm_cell(x: Array, h: Array, c: Array, Wx: Array, Wh: Array, b: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(Wx @ x + Wh @ h + b, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


@lstm_cell.twin
def _(
    g: Graph, x: Value, h: Value, c: Value, Wx: Array, Wh: Array, b: Array
) -> tuple[Value, Value]:
    x, h, c = (g.Unsqueeze(value, [0, 1]) for value in (x, h, c))
    _, h, c = lstm_operator(g, x, Wx, Wh, b, h, c)
    return g.Squeeze(h, [0, 1]), g.Squeeze(c, [0, 1])


@pattern(
    "gru_cell",
    draw={
        "h": activations(0.5, spread=0.5),
        "Wx": weights("I", 1.5),
        "Uh": weights("Hd", 1.5),
        "b": saturating(weights()),
    },
)
def gru_cell(x: Array, h: Array, Wx: Array, Uh: Array, b: Array, cb: Array) -> Array:
    xr, xz, xn = np.split(Wx @ x + b, 3)
    hr, hz, hn = np.split(Uh @ h + cb, 3)
    z = sigmoid(xz + hz)
    n = np.tanh(xn + sigmoid(xr + hr) * hn)
    return (1 - z) * n + z * h


@gru_cell.twin
def _(g: Graph, x: Value, h: Value, Wx: Array, Uh: Array, b: Array, cb: Array) -> Value:
    x, h = g.Unsqueeze(x, [0, 1]), g.Unsqueeze(h, [0, 1])
    return g.Squeeze(gru_operator(g, x, Wx, Uh, b, cb, h), [0, 1, 2])


def remembering(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Biases of the gates i, f, g, o; in one unit of eight the forget gate stays nearly open."""
    b = weights()(draw, spec)
    units = spec.shape[0] // 4
    keeps = draw.rng(spec.name).spawn(1)[0].permutation(units) % 8 == 0
    b[units : 2 * units][keeps] += 8
    return b


@pattern(
    "lstm_sequence",
    draw={"Wx": weights("I", 2.0), "Wh": weights("Hd", 1.5), "b": remembering},
)
def lstm_sequence(x: Array, Wx: Array, Wh: Array, b: Array) -> Array:
    h = c = np.zeros(Wh.shape[1])
    steps = []
    for x_t in x:
        i, f, g, o = np.split(Wx @ x_t + Wh @ h + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.array(steps)


@lstm_sequence.twin
def _(g: Graph, x: Value, Wx: Array, Wh: Array, b: Array) -> Value:
    steps, _, _ = lstm_operator(g, g.Unsqueeze(x, [1]), Wx, Wh, b)
    return g.Squeeze(steps, [1, 2])


@pattern("svdf_step", draw={"Wt": weights("Rk*Mt")})
def svdf_step(
    x: Array, state: Array, Wf: Array, Wt: Array, b: Array, U: int, Rk: int
) -> tuple[Array, Array]:
    features = Wf @ x
    state = np.concatenate([state[:, 1:], features[:, None]], axis=1)
    y = b + (state * Wt).sum(axis=1).reshape(U, Rk).sum(axis=1)
    return relu(y), state


@svdf_step.twin
def _(
    g: Graph, x: Value, state: Value, Wf: Array, Wt: Array, b: Array, U: int, Rk: int, Mt: int
) -> tuple[Value, Value]:
    features = g.MatMul(g.value(Wf), g.Unsqueeze(x, [1]))
    state = g.Concat(g.Slice(state, [1], [Mt], [1]), features, axis=1)
    filtered = g.ReduceSum(g.Mul(state, Wt), [1], keepdims=0)
    y = g.ReduceSum(g.Reshape(filtered, [U, Rk]), [1], keepdims=0)
    return g.Relu(g.Add(y, b)), state


def gate_offsets(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """zeta and nu before their sigmoids, near where training starts."""
    return np.array([1.0, -4.0]) + 0.5 * draw.rng(spec.name).standard_normal(spec.shape)


@pattern(
    "fastgrnn_sequence",
    draw={"W": weights("I", 1.5), "U": weights("Hd", 3.0), "zn": gate_offsets},
    no_twin="no operator has its gates; ONNX has it only as a Scan over a subgraph",
)
def fastgrnn_sequence(x: Array, W: Array, U: Array, bz: Array, bh: Array, zn: Array) -> Array:
    zeta, nu = sigmoid(zn)
    h = np.zeros(len(U))
    for x_t in x:
        pre = W @ x_t + U @ h
        z = sigmoid(pre + bz)
        h = z * h + (zeta * (1 - z) + nu) * np.tanh(pre + bh)
    return h
