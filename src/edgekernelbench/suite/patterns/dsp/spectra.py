"""Short-time spectra, and features from them."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.dsp.fourier import (
    TABLE,
    as_complex,
    cosine_window,
    irfft,
    irfft_basis,
    rfft,
    rfft_basis,
    rfft_twin,
    twiddles,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def mel_bank(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Triangles [bins, bands] over band edges that lie ever wider apart, each with a gain."""
    bins, bands = spec.shape
    rng = draw.rng(spec.name)
    widths = np.geomspace(1.0, 8.0, bands + 1) * rng.uniform(0.9, 1.1, bands + 1)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    edges *= (bins - 1) / edges[-1]
    k = np.arange(bins)[:, None]
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rise, fall = (k - low) / (centre - low), (high - k) / (high - centre)
    nearest = np.abs(k - centre) <= 0.5  # a narrow band still sees one bin
    triangle = np.maximum(np.minimum(rise, fall), 0.05 * nearest)
    return triangle * 2 ** rng.uniform(-1, 1, bands)


def some_silence(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Every sixteenth frame is silent, and another one so faint that powers are near the floor."""
    values = activations()(draw, spec)
    rng = draw.rng(spec.name).spawn(1)[0]
    frame = rng.permutation(len(values)) % 16
    values[frame == 0] = 0
    faint = frame == 1
    values[faint] = 2.0**-18 * rng.standard_normal(values[faint].shape)
    return values


@pattern("log_mel_filterbank", draw={"X": some_silence, "fb": mel_bank})
def log_mel_filterbank(X: Array, fb: Array) -> Array:
    power = (X**2).sum(axis=2)
    return np.log(np.maximum(power @ fb, 1e-10))


@log_mel_filterbank.twin
def _(g: Graph, X: Value, fb: Array) -> Value:
    power = g.ReduceSum(g.Mul(X, X), [2], keepdims=0)
    return g.Log(g.Max(g.MatMul(power, fb), 1e-10))


def frames(x: Array, length: int, hop: int) -> Array:
    """x[f*hop : f*hop + length] for all f that fit."""
    count = 1 + (len(x) - length) // hop
    return x[np.arange(count)[:, None] * hop + np.arange(length)]


def frames_twin(g: Graph, x: Value, count: int, length: int, hop: int) -> Value:
    return g.Gather(x, np.arange(count)[:, None] * hop + np.arange(length))


def recording(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Noise in sixteen pieces of differing loudness; two of them are silent."""
    rng = draw.rng(spec.name)
    loudness = 2 ** rng.uniform(-2, 1, 16)
    loudness[rng.choice(16, 2, replace=False)] = 0
    piece = np.arange(spec.size) * 16 // spec.size
    return rng.standard_normal(spec.size) * loudness[piece]


TABLES = {"win": cosine_window, "tw": twiddles}


@pattern("stft_magnitude", draw={"x": recording, **TABLES}, inert={"tw": TABLE})
def stft_magnitude(x: Array, win: Array, tw: Array, NF: int, hop: int) -> Array:
    return np.abs(rfft(win * frames(x, NF, hop), tw))


@stft_magnitude.twin
def _(g: Graph, x: Value, win: Array, NF: int, hop: int) -> Value:
    # A convolution with the windowed rows of the DFT, as exported speech models have it.
    filters = (rfft_basis(NF) * win[:, None, None]).reshape(NF, 1, -1).transpose(2, 1, 0)
    spectrum = g.Conv(g.Unsqueeze(x, [0, 1]), filters, strides=[hop])
    pairs = g.Reshape(spectrum, [NF // 2 + 1, 2, -1])
    return g.Transpose(g.ReduceL2(pairs, [1], keepdims=0), perm=[1, 0])


def cepstral_basis(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """The first columns of the orthonormal DCT-II, each lifted by a gain of its own."""
    NB, NC = spec.shape
    n, k = np.arange(NB)[:, None], np.arange(NC)
    basis = np.sqrt(2 / NB) * np.cos(np.pi * k * (2 * n + 1) / (2 * NB))
    basis[:, 0] = np.sqrt(1 / NB)
    return basis * 2 ** draw.rng(spec.name).uniform(-0.5, 0.5, NC)


@pattern(
    "mfcc",
    draw={"x": recording, "fb": mel_bank, "dct": cepstral_basis, **TABLES},
    inert={"tw": TABLE},
)
def mfcc(
    x: Array, win: Array, tw: Array, fb: Array, dct: Array, NWn: int, hop: int, NF: int
) -> Array:
    emphasised = x - 0.97 * np.append(0, x[:-1])
    windowed = win * frames(emphasised, NWn, hop)
    spectrum = rfft(np.pad(windowed, [(0, 0), (0, NF - NWn)]), tw)
    mel = np.abs(spectrum) ** 2 @ fb
    return np.log(np.maximum(mel, 1e-6)) @ dct


@mfcc.twin
def _(
    g: Graph, x: Value, win: Array, fb: Array, dct: Array, NWn: int, hop: int, NF: int, NFr: int
) -> Value:
    emphasised = g.Sub(x, g.Mul(g.Pad(x, [1, -1]), 0.97))
    windowed = g.Mul(frames_twin(g, emphasised, NFr, NWn, hop), win)
    spectrum = rfft_twin(g, g.Pad(windowed, [0, 0, 0, NF - NWn]), NF)
    power = g.ReduceSumSquare(spectrum, [2], keepdims=0)
    return g.MatMul(g.Log(g.Max(g.MatMul(power, fb), 1e-6)), dct)


@pattern("istft_overlap_add", draw=TABLES, inert={"tw": TABLE})
def istft_overlap_add(X: Array, win: Array, tw: Array, NF: int, hop: int) -> Array:
    synthesised = win * irfft(as_complex(X), tw)
    y, weight = (np.zeros((len(X) - 1) * hop + NF) for _ in range(2))
    for f, frame in enumerate(synthesised):
        y[f * hop : f * hop + NF] += frame
        weight[f * hop : f * hop + NF] += win**2
    return y / np.maximum(weight, 1e-8)


@istft_overlap_add.twin
def _(g: Graph, X: Value, win: Array, NFr: int, NF: int, hop: int) -> Value:
    # A transposed convolution whose filters are the windowed rows of the inverse DFT.
    weight = np.zeros((NFr - 1) * hop + NF)
    for f in range(NFr):
        weight[f * hop : f * hop + NF] += win.astype(np.float64) ** 2
    planes = g.Transpose(g.Flatten(X, axis=1), perm=[1, 0])
    filters = (irfft_basis(NF) * win).reshape(-1, 1, NF)
    y = g.ConvTranspose(g.Unsqueeze(planes, [0]), filters, strides=[hop])
    return g.Squeeze(g.Mul(y, 1 / np.maximum(weight, 1e-8)), [0, 1])
