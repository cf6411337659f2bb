"""Fourier, cosine and wavelet transforms."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.dsp.fourier import (
    TABLE,
    as_complex,
    as_pairs,
    dft_matrix,
    irfft,
    irfft_twin,
    rfft,
    rfft_twin,
    twiddles,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("fft_complex_1d", draw={"tw": twiddles}, inert={"tw": TABLE})
def fft_complex_1d(x: Array, tw: Array) -> Array:
    return as_pairs(as_complex(x) @ dft_matrix(tw))


@fft_complex_1d.twin
def _(g: Graph, x: Value) -> Value:
    return g.DFT(x)


@pattern("rfft_1d", draw={"tw": twiddles}, inert={"tw": TABLE})
def rfft_1d(x: Array, tw: Array) -> Array:
    return as_pairs(rfft(x, tw))


@rfft_1d.twin
def _(g: Graph, x: Value, NF: int) -> Value:
    return rfft_twin(g, x, NF)


@pattern("irfft_1d", draw={"tw": twiddles}, inert={"tw": TABLE})
def irfft_1d(X: Array, tw: Array) -> Array:
    return irfft(as_complex(X), tw)


@irfft_1d.twin
def _(g: Graph, X: Value, NF: int) -> Value:
    return irfft_twin(g, X, NF)


def quarter_cosines(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """cos(pi j / (2 M)) for j below 4 M."""
    return np.cos(2 * np.pi * np.arange(spec.size) / spec.size)


@pattern("dct_ii_1d", draw={"ct": quarter_cosines}, inert={"ct": TABLE})
def dct_ii_1d(x: Array, ct: Array, M: int, K: int) -> Array:
    k, n = np.arange(K)[:, None], np.arange(M)
    basis = ct[k * (2 * n + 1) % (4 * M)]
    scale = np.where(np.arange(K) == 0, np.sqrt(1 / M), np.sqrt(2 / M))
    return x @ basis.T * scale


@dct_ii_1d.twin
def _(g: Graph, x: Value, M: int, K: int) -> Value:
    k, n = np.arange(K), np.arange(M)[:, None]
    basis = np.sqrt(2 / M) * np.cos(np.pi * k * (2 * n + 1) / (2 * M))
    basis[:, 0] = np.sqrt(1 / M)
    return g.MatMul(x, basis)


@pattern("dwt_1d_level", draw={"lo": weights("NT"), "hi": weights("NT")})
def dwt_1d_level(x: Array, lo: Array, hi: Array, L: int, NT: int) -> tuple[Array, Array]:
    a, d = np.zeros((len(x), L // 2)), np.zeros((len(x), L // 2))
    for k in range(NT):
        samples = x[:, (2 * np.arange(L // 2) + k) % L]
        a += lo[k] * samples
        d += hi[k] * samples
    return a, d


@dwt_1d_level.twin
def _(g: Graph, x: Value, lo: Array, hi: Array, NT: int) -> tuple[Value, Value]:
    periodic = g.Concat(x, g.Slice(x, [0], [NT - 2], [1]), axis=1)
    bank = np.stack([lo, hi])[:, None]
    bands = g.Conv(g.Unsqueeze(periodic, [1]), bank, strides=[2])
    a, d = g.op("Split", bands, outputs=2, axis=1, num_outputs=2)
    return g.Squeeze(a, [1]), g.Squeeze(d, [1])
