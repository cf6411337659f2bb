"""Filters with fixed coefficients."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value

NO_RECURSION = "ONNX has no recursive filter"


def unequal_channels(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Noise, channels at scales from 2**-1.5 to 2**1.5 in random order, however few they are."""
    rng = draw.rng(spec.name)
    scales = rng.permutation(2 ** np.linspace(-1.5, 1.5, spec.shape[0]))
    return rng.standard_normal(spec.shape) * scales[:, None]


def fir(x: Array, h: Array) -> Array:
    """y[c, n] = sum_k h[k] x[c, n-k], x = 0 before the first sample."""
    L, NT = x.shape[1], len(h)
    padded = np.pad(x, [(0, 0), (NT - 1, 0)])
    y = np.zeros(x.shape)
    for k in range(NT):
        y += h[k] * padded[:, NT - 1 - k : NT - 1 - k + L]
    return y


def fir_twin(g: Graph, x: Value, h: Array, step: int = 1) -> Value:
    """x[C, L], every channel filtered as a batch item of its own."""
    flipped = np.ascontiguousarray(h[::-1])[None, None]
    y = g.Conv(g.Unsqueeze(x, [1]), flipped, pads=[len(h) - 1, 0], strides=[step])
    return g.Squeeze(y, [1])


@pattern("fir_direct", draw={"x": unequal_channels, "h": weights("NT")})
def fir_direct(x: Array, h: Array) -> Array:
    return fir(x, h)


@fir_direct.twin
def _(g: Graph, x: Value, h: Array) -> Value:
    return fir_twin(g, x, h)


@pattern("fir_decimate", draw={"h": weights("NT")})
def fir_decimate(x: Array, h: Array, L: int, Dn: int) -> Array:
    return fir(x, h)[:, : L // Dn * Dn : Dn]


@fir_decimate.twin
def _(g: Graph, x: Value, h: Array, L: int, Dn: int) -> Value:
    whole = x if L % Dn == 0 else g.Slice(x, [0], [L // Dn * Dn], [1])
    return fir_twin(g, whole, h, step=Dn)


def q15_taps(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Taps at which full-scale noise comes out near full scale, so that some samples saturate."""
    gain = 27000 / np.sqrt(spec.size)
    taps = draw.rng(spec.name).normal(0, gain, spec.shape)
    return np.clip(np.rint(taps), -32768, 32767).astype(np.int64)


@pattern(
    "fir_q15",
    draw={"h": q15_taps},
    no_twin="ONNX has no convolution of 16-bit integers with a 64-bit sum",
)
def fir_q15(x: Array, h: Array) -> Array:
    acc = np.zeros(len(x), np.int64)
    for k in range(len(h)):
        acc[k:] += h[k] * x[: len(x) - k]
    return np.clip(acc >> 15, -32768, 32767)


def stable_sections(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Rows (b0, b1, b2, a1, a2), poles within 0.93, noise of unit power after every section."""
    rng = draw.rng(spec.name)
    count = spec.shape[0]
    delay = np.exp(-2j * np.pi * np.arange(2048) / 2048)
    response, rows = np.ones(2048, complex), []
    poles, zeros = rng.uniform(0.3, 0.93, count), rng.uniform(0.2, 1.0, count)
    angles = rng.uniform(0, np.pi, (2, count))
    for pole, zero, (at, null) in zip(poles, zeros, angles.T, strict=True):
        a = np.array([1, -2 * pole * np.cos(at), pole**2])
        b = np.array([1, -2 * zero * np.cos(null), zero**2])
        response *= np.polyval(b[::-1], delay) / np.polyval(a[::-1], delay)
        gain = np.sqrt((np.abs(response) ** 2).mean())
        response /= gain
        rows.append([*(b / gain), a[1], a[2]])
    return np.array(rows)


def biquad(x: Array, section: Array) -> Array:
    """One section over one channel, in transposed direct form II."""
    b0, b1, b2, a1, a2 = section.tolist()
    z1 = z2 = 0.0
    y = []
    for sample in x.tolist():
        y.append(b0 * sample + z1)
        z1 = b1 * sample - a1 * y[-1] + z2
        z2 = b2 * sample - a2 * y[-1]
    return np.array(y)


@pattern("biquad_cascade_df2t", draw={"sos": stable_sections}, no_twin=NO_RECURSION)
def biquad_cascade_df2t(x: Array, sos: Array) -> Array:
    y = x.copy()
    for channel in range(len(y)):
        for section in sos:
            y[channel] = biquad(y[channel], section)
    return y


@pattern("iir_first_order", no_twin=NO_RECURSION)
def iir_first_order(x: Array, a: float) -> Array:
    y = np.zeros(x.shape)
    previous = x[:, 0]
    for n in range(x.shape[1]):
        previous = a * previous + (1 - a) * x[:, n]
        y[:, n] = previous
    return y


@pattern("median_filter_1d")
def median_filter_1d(x: Array) -> Array:
    L = x.shape[1]
    padded = np.pad(x, [(0, 0), (2, 2)], mode="edge")
    window = np.stack([padded[:, k : k + L] for k in range(5)])
    return np.sort(window, axis=0)[2]


@median_filter_1d.twin
def _(g: Graph, x: Value, L: int) -> Value:
    padded = g.Pad(x, [0, 2, 0, 2], mode="edge")
    window = g.Concat(
        *(g.Unsqueeze(g.Slice(padded, [k], [k + L], [1]), [2]) for k in range(5)), axis=2
    )
    largest, _ = g.op("TopK", window, [3], outputs=2, axis=2)
    return g.Squeeze(g.Slice(largest, [2], [3], [2]), [2])


def pulse_density(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """-1 and +1, their mean a slow sine in each channel."""
    rng = draw.rng(spec.name)
    C, L = spec.shape
    cycles, phase = rng.uniform(2, 8, (C, 1)), rng.uniform(0, 2 * np.pi, (C, 1))
    loudness = rng.uniform(0.2, 0.9, (C, 1))
    mean = loudness * np.sin(2 * np.pi * cycles * np.arange(L) / L + phase)
    return np.where(rng.uniform(-1, 1, spec.shape) < mean, 1, -1)


@pattern("cic_decimator_s32", draw={"x": pulse_density})
def cic_decimator_s32(x: Array, L: int, Rr: int) -> Array:
    for _ in range(3):  # integrators: these sums wrap in s32, which cannot change the result
        x = np.cumsum(x, axis=1)
    y = x[:, Rr - 1 : L // Rr * Rr : Rr]
    for _ in range(3):  # combs
        y = y - np.pad(y, [(0, 0), (1, 0)])[:, :-1]
    return y


@cic_decimator_s32.twin
def _(g: Graph, x: Value, L: int, Rr: int) -> Value:
    y = g.cast(x, DType.S64)
    for _ in range(3):
        y = g.CumSum(y, np.int64(1))
    y = g.Slice(y, [Rr - 1], [L // Rr * Rr], [1], [Rr])
    for _ in range(3):
        y = g.Sub(y, g.Pad(y, [0, 1, 0, -1]))
    return g.cast(y, DType.S32)


@pattern("pan_tompkins_energy", draw={"x": unequal_channels, "h": weights("NT")})
def pan_tompkins_energy(x: Array, h: Array, Wn: int) -> Array:
    derivative = np.array([2, 1, 0, -1, -2]) / 8
    squares = fir(fir(x, h), derivative) ** 2
    return fir(squares, np.full(Wn, 1 / Wn))


@pan_tompkins_energy.twin
def _(g: Graph, x: Value, h: Array, Wn: int) -> Value:
    derivative = np.array([2.0, 1, 0, -1, -2]) / 8
    d = fir_twin(g, fir_twin(g, x, h), derivative)
    squares = g.Unsqueeze(g.Mul(d, d), [1])
    mean = g.AveragePool(squares, kernel_shape=[Wn], pads=[Wn - 1, 0], count_include_pad=1)
    return g.Squeeze(mean, [1])
