"""Recurrent networks with all their weights."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, near, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.attention.biased import location_sensitive_attention
from edgekernelbench.suite.patterns.attention.twins import location_attention
from edgekernelbench.suite.patterns.functions import layer_norm, relu, sigmoid
from edgekernelbench.suite.patterns.ranges import with_faint_slices
from edgekernelbench.suite.patterns.recurrent import (
    gru_operator,
    lstm_cell,
    lstm_operator,
    lstm_sequence,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def conv1d(x: Array, w: Array, b: Array) -> Array:
    """Over frames, without a border: x[L,C], w[K,C,R] to [L-R+1,K]."""
    R = w.shape[2]
    frames = len(x) - R + 1
    return b + sum(x[r : r + frames] @ w[:, :, r].T for r in range(R))


def gru(x: Array, Wx: Array, Uh: Array, bx: Array, bh: Array) -> Array:
    """All hidden states from a zero start; gates in the order reset, update, new."""
    h = np.zeros(Uh.shape[1])
    steps = []
    for x_t in x:
        xr, xz, xn = np.split(Wx @ x_t + bx, 3)
        hr, hz, hn = np.split(Uh @ h + bh, 3)
        z = sigmoid(xz + hz)
        n = np.tanh(xn + sigmoid(xr + hr) * hn)
        h = (1 - z) * n + z * h
        steps.append(h)
    return np.array(steps)


@pattern(
    "rnnoise_network",
    draw={
        "Wx": weights("Hd", 2.0),
        "Uh": weights("Hd", 1.5),
        "Wg": weights("Hd"),
        "Wv": weights("Hd"),
    },
)
def rnnoise_network(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, Wx: Array, Uh: Array, bx: Array,
    bh: Array, Wg: Array, bg: Array, Wv: Array, bv: Array
) -> tuple[Array, Array]:  # fmt: skip
    c1 = np.tanh(conv1d(x, w1, b1))
    states = [np.tanh(conv1d(c1, w2, b2))]
    for i in range(3):
        states.append(gru(states[-1], Wx[i], Uh[i], bx[i], bh[i]))
    z = np.concatenate(states, axis=1)
    return sigmoid(z @ Wg.T + bg), sigmoid(z @ Wv.T + bv)


@rnnoise_network.twin
def _(
    g: Graph, x: Value, w1: Array, b1: Array, w2: Array, b2: Array, Wx: Array, Uh: Array,
    bx: Array, bh: Array, Wg: Array, bg: Array, Wv: Array, bv: Array
) -> tuple[Value, Value]:  # fmt: skip
    def head(z: Value, w: Array, b: Array) -> Value:
        return g.Sigmoid(g.Add(g.MatMul(z, w.T), b))

    channels = g.Transpose(g.Unsqueeze(x, [0]), perm=[0, 2, 1])
    c1 = g.Tanh(g.Conv(channels, w1, b1))
    c2 = g.Tanh(g.Conv(c1, w2, b2))
    steps = [g.Transpose(c2, perm=[2, 0, 1])]  # [L, 1, Hd]
    for i in range(3):
        states = gru_operator(g, steps[-1], Wx[i], Uh[i], bx[i], bh[i])
        steps.append(g.Squeeze(states, [1]))
    z = g.Squeeze(g.Concat(*steps, axis=2), [1])
    return head(z, Wg, bg), head(z, Wv, bv)


@pattern(
    "dtln_separation_core",
    draw={
        "x": with_faint_slices(activations(), axes=(1,), eps=1e-7, share=0.25),
        "g": near(1.0),
        "Wx1": weights("I", 1.5),
        "Wh1": weights("Hd", 2.5),
        "Wx2": weights("Hd", 3.0),
        "Wh2": weights("Hd", 2.5),
        "Wm": weights("Hd", 3.0),
    },
)
def dtln_separation_core(
    x: Array, g: Array, c: Array, Wx1: Array, Wh1: Array, b1: Array, Wx2: Array, Wh2: Array,
    b2: Array, Wm: Array, bm: Array, norm: int
) -> Array:  # fmt: skip
    a = layer_norm(x, g, c, 1e-7) if norm else x
    h = lstm_sequence(a, Wx1, Wh1, b1)
    h = lstm_sequence(h, Wx2, Wh2, b2)
    return sigmoid(h @ Wm + bm) * x


@dtln_separation_core.twin
def _(
    graph: Graph, x: Value, g: Array, c: Array, Wx1: Array, Wh1: Array, b1: Array, Wx2: Array,
    Wh2: Array, b2: Array, Wm: Array, bm: Array, norm: int
) -> Value:  # fmt: skip
    a = graph.LayerNormalization(x, g, c, axis=-1, epsilon=1e-7) if norm else x
    h = graph.Unsqueeze(a, [1])
    for layer in ((Wx1, Wh1, b1), (Wx2, Wh2, b2)):
        steps, _, _ = lstm_operator(graph, h, *layer)
        h = graph.Squeeze(steps, [1])
    mask = graph.Sigmoid(graph.Gemm(graph.Squeeze(h, [1]), Wm, bm))
    return graph.Mul(mask, x)


def fourier_basis(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Cosines above sines under a window; how sharp the window is differs from draw to draw."""
    rows, taps = spec.shape
    n = np.arange(taps)
    window = np.sin(np.pi * n / taps) ** draw.rng(spec.name).uniform(1.0, 3.0)
    angles = 2 * np.pi * np.arange(rows // 2)[:, None] * n / taps
    basis = np.concatenate([np.cos(angles), -np.sin(angles)])
    return basis * window / np.sqrt(taps)


@pattern(
    "silero_vad_chunk",
    draw={
        "basis": fourier_basis,
        **{name: weights(gain=1.4) for name in ("w1", "w2", "w3", "w4")},
        "Wx": weights("C", 1.5),
        "Wh": weights("C", 1.5),
        "h0": activations(0.5, spread=0.5),
        "wf": weights("C", 2.0),
    },
)
def silero_vad_chunk(
    x: Array, basis: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array,
    w4: Array, b4: Array, Wx: Array, Wh: Array, bl: Array, h0: Array, c0: Array, wf: Array,
    bf: Array
) -> tuple[Array, Array, Array]:  # fmt: skip
    samples = np.pad(x, (0, 64), mode="reflect")
    frames = np.array([basis @ samples[t : t + 256] for t in range(0, 385, 128)])
    z = np.sqrt(frames[:, :129] ** 2 + frames[:, 129:] ** 2)
    for w, b, stride in ((w1, b1, 1), (w2, b2, 2), (w3, b3, 2), (w4, b4, 1)):
        z = relu(conv1d(np.pad(z, [(1, 1), (0, 0)]), w, b)[::stride])
    h, c = lstm_cell(z[0], h0, c0, Wx, Wh, bl)
    return sigmoid(wf @ relu(h) + bf), h, c


@silero_vad_chunk.twin
def _(
    g: Graph, x: Value, basis: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array,
    b3: Array, w4: Array, b4: Array, Wx: Array, Wh: Array, bl: Array, h0: Value, c0: Value,
    wf: Array, bf: Array
) -> tuple[Value, Value, Value]:  # fmt: skip
    samples = g.Pad(g.Unsqueeze(x, [0, 1]), [0, 0, 0, 0, 0, 64], mode="reflect")
    spectrum = g.Conv(samples, basis[:, None], strides=[128])
    real, imaginary = g.op("Split", spectrum, outputs=2, axis=1, num_outputs=2)
    z = g.Sqrt(g.Add(g.Mul(real, real), g.Mul(imaginary, imaginary)))
    for w, b, stride in ((w1, b1, 1), (w2, b2, 2), (w3, b3, 2), (w4, b4, 1)):
        z = g.Relu(g.Conv(z, w, b, strides=[stride], pads=[1, 1]))
    step = g.Transpose(z, perm=[2, 0, 1])
    h0, c0 = g.Unsqueeze(h0, [0, 1]), g.Unsqueeze(c0, [0, 1])
    _, h, c = lstm_operator(g, step, Wx, Wh, bl, h0, c0)
    h, c = g.Squeeze(h, [0, 1]), g.Squeeze(c, [0, 1])
    return g.Sigmoid(g.Add(g.MatMul(g.Relu(h), wf), bf)), h, c


@pattern(
    "tacotron2_decoder_step",
    draw={
        "ha": activations(0.5, spread=0.5),
        "hd": activations(0.5, spread=0.5),
        "P1": weights(gain=1.4),
        "P2": weights(gain=1.4),
        "Wq": weights("Hd", 2.0),
        "wf": weights("2*31", 1.5),
        "vv": weights("Da", 2.5),
        "Wm": weights(gain=1.5),
    },
)
def tacotron2_decoder_step(
    mel: Array, ctx: Array, w2: Array, ha: Array, ca: Array, hd: Array, cd: Array, P1: Array,
    P2: Array, Ax: Array, Ah: Array, ab: Array, Wq: Array, Mem: Array, wf: Array, Wl: Array,
    vv: Array, enc: Array, Dx: Array, Dh: Array, db: Array, Wm: Array, bm: Array
) -> tuple[Array, ...]:  # fmt: skip
    prenet = relu(P2 @ relu(P1 @ mel))
    ha, ca = lstm_cell(np.concatenate([prenet, ctx]), ha, ca, Ax, Ah, ab)
    ctx, w = location_sensitive_attention(Wq @ ha, Mem, w2, wf, Wl, vv, enc)
    hd, cd = lstm_cell(np.concatenate([ha, ctx]), hd, cd, Dx, Dh, db)
    out = Wm @ np.concatenate([hd, ctx]) + bm  # 80 mel bands, then the gate
    return out, ctx, w, ha, ca, hd, cd


@tacotron2_decoder_step.twin
def _(
    g: Graph, mel: Value, ctx: Value, w2: Value, ha: Value, ca: Value, hd: Value, cd: Value,
    P1: Array, P2: Array, Ax: Array, Ah: Array, ab: Array, Wq: Array, Mem: Value, wf: Array,
    Wl: Array, vv: Array, enc: Value, Dx: Array, Dh: Array, db: Array, Wm: Array, bm: Array
) -> tuple[Value, ...]:  # fmt: skip
    def cell(
        parts: tuple[Value, Value], h: Value, c: Value, Wx: Array, Wh: Array, b: Array
    ) -> tuple[Value, Value]:
        step, h, c = (g.Unsqueeze(v, [0, 1]) for v in (g.Concat(*parts, axis=0), h, c))
        _, h, c = lstm_operator(g, step, Wx, Wh, b, h, c)
        return g.Squeeze(h, [0, 1]), g.Squeeze(c, [0, 1])

    prenet = g.Relu(g.MatMul(g.Relu(g.MatMul(mel, P1.T)), P2.T))
    ha, ca = cell((prenet, ctx), ha, ca, Ax, Ah, ab)
    ctx, w = location_attention(g, g.MatMul(ha, Wq.T), Mem, w2, wf, Wl, vv, enc)
    hd, cd = cell((ha, ctx), hd, cd, Dx, Dh, db)
    out = g.Add(g.MatMul(g.Concat(hd, ctx, axis=0), Wm.T), bm)
    return out, ctx, w, ha, ca, hd, cd
