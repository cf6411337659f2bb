"""Filters and predictors that are fitted to the signal."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern


def echo_path(draw: Draw) -> dict[str, np.ndarray]:
    """A far-end signal x, and d: x through a short random filter, with some noise."""
    x = activations()(draw, draw.spec("x"))
    B, L = x.shape
    rng = draw.rng("d")
    taps = min(16, L)
    d = 0.01 * rng.standard_normal((B, L))
    for channel, filtered in zip(x, d, strict=True):
        filtered += np.convolve(channel, rng.standard_normal(taps) / np.sqrt(taps))[:L]
    return {"x": x, "d": d}


@pattern("nlms_adaptive_filter", no_twin="ONNX would need a loop over the samples")
def nlms_adaptive_filter(x: Array, d: Array, NT: int, mu: float, eps: float) -> Array:
    B, L = x.shape
    padded = np.pad(x, [(0, 0), (NT - 1, 0)])
    w, e = np.zeros((B, NT)), np.zeros((B, L))
    for n in range(L):
        recent = padded[:, n : n + NT][:, ::-1]  # x[n], x[n-1], ..., x[n-NT+1]
        e[:, n] = d[:, n] - (w * recent).sum(axis=1)
        power = eps + (recent**2).sum(axis=1)
        w += (mu * e[:, n] / power)[:, None] * recent
    return e


nlms_adaptive_filter.inputs(echo_path)


def autocorrelations(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Of windowed noise with one resonance a frame, r[0] raised by 1e-4."""
    rng = draw.rng(spec.name)
    B, lags = spec.shape
    N = 16 * lags
    pole = rng.uniform(0.4, 0.75, (B, 1)) * np.exp(1j * rng.uniform(0, np.pi, (B, 1)))
    delay = np.exp(-2j * np.pi * np.arange(N // 2 + 1) / N)
    colour = 1 / ((1 - pole * delay) * (1 - pole.conj() * delay))
    noise = np.fft.irfft(colour * np.fft.rfft(rng.standard_normal((B, N))), N)
    noise *= 2 ** rng.uniform(-1, 1, (B, 1)) * np.hanning(N)
    r = np.fft.irfft(np.abs(np.fft.rfft(noise, 2 * N)) ** 2)[:, :lags] / N
    r[:, 0] *= 1.0001
    return r


@pattern(
    "levinson_durbin",
    draw={"r": autocorrelations},
    no_twin="ONNX has no Toeplitz solve",
)
def levinson_durbin(r: Array) -> Array:
    B, lags = r.shape
    a = np.zeros((B, lags))
    a[:, 0] = 1
    E = r[:, 0]
    for i in range(1, lags):
        k = -(r[:, i] + (a[:, 1:i] * r[:, i - 1 : 0 : -1]).sum(axis=1)) / E
        a[:, 1:i] = a[:, 1:i] + k[:, None] * a[:, i - 1 : 0 : -1]
        a[:, i] = k
        E = E * (1 - k**2)
    return a
