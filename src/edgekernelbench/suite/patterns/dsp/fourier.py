"""Discrete Fourier transforms as sums, and the tables that transforms take as inputs."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array
from edgekernelbench.suite.twin import Graph, Value

TABLE = "a table that its size fixes: every draw is the same"
"""Why an exact table counts as inert."""


def twiddles(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """(cos, -sin)(2 pi j / NF)."""
    NF = spec.shape[0]
    angle = 2 * np.pi * np.arange(NF) / NF
    return np.stack([np.cos(angle), -np.sin(angle)], axis=1)


def cosine_window(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """a - (1-a) cos(2 pi n / N), a in [0.54, 0.6]: of Hamming's kind, never near zero."""
    rng = draw.rng(spec.name)
    a, N = rng.uniform(0.54, 0.6), spec.shape[0]
    window = a - (1 - a) * np.cos(2 * np.pi * np.arange(N) / N)
    return window * 2 ** rng.uniform(-0.5, 0.5)


def dft_matrix(tw: Array) -> Array:
    """exp(-2 pi i k n / NF) for all k and n, from tw[j] = (cos, -sin)(2 pi j / NF)."""
    NF = len(tw)
    turns = np.outer(np.arange(NF), np.arange(NF)) % NF
    return (tw[:, 0] + 1j * tw[:, 1])[turns]


def rfft(x: Array, tw: Array) -> Array:
    """Complex X[b, k] = sum_n x[b,n] exp(-2 pi i k n / NF) for k = 0..NF/2."""
    return x @ dft_matrix(tw)[:, : len(tw) // 2 + 1]


def irfft(X: Array, tw: Array) -> Array:
    """The real x[b, n] whose half spectrum is X; imaginary parts of both ends are ignored."""
    NF = len(tw)
    twice = np.full(NF // 2 + 1, 2)  # for the mirrored half
    twice[[0, -1]] = 1
    return np.real(twice * X @ dft_matrix(tw)[: NF // 2 + 1].conj()) / NF


def as_complex(pairs: Array) -> Array:
    return pairs[..., 0] + 1j * pairs[..., 1]


def as_pairs(z: Array) -> Array:
    return np.stack([np.real(z), np.imag(z)], axis=-1)


def rfft_basis(NF: int) -> Array:
    """exp(-2 pi i k n / NF) as pairs [NF, NF/2+1, 2]."""
    angle = 2 * np.pi * np.arange(NF)[:, None] * np.arange(NF // 2 + 1) / NF
    return np.stack([np.cos(angle), -np.sin(angle)], axis=2)


def irfft_basis(NF: int) -> Array:
    """[NF/2+1, 2, NF]: what the real and imaginary part of each bin add to each sample."""
    twice = np.full((NF // 2 + 1, 1, 1), 2 / NF)
    twice[[0, -1]] = 1 / NF
    return rfft_basis(NF).transpose(1, 2, 0) * twice


def is_power_of_two(n: int) -> bool:
    """ONNX Runtime's DFT is exact enough at such lengths only; at others it loses two digits."""
    return n & (n - 1) == 0


def rfft_twin(g: Graph, x: Value, NF: int) -> Value:
    """x[B, NF] to [B, NF/2+1, 2]."""
    if is_power_of_two(NF):
        return g.DFT(g.Unsqueeze(x, [2]), onesided=1)
    return g.Reshape(g.MatMul(x, rfft_basis(NF).reshape(NF, -1)), [0, NF // 2 + 1, 2])


def irfft_twin(g: Graph, X: Value, NF: int) -> Value:
    """X[B, NF/2+1, 2] to [B, NF]."""
    if not is_power_of_two(NF):
        return g.MatMul(g.Flatten(X, axis=1), irfft_basis(NF).reshape(-1, NF))
    # The inverse wants the whole spectrum.
    inner = g.Slice(X, [NF // 2 - 1], [0], [1], [-1])
    mirrored = g.Mul(inner, np.array([1.0, -1.0]))
    x = g.DFT(g.Concat(X, mirrored, axis=1), inverse=1)
    return g.Squeeze(g.Slice(x, [0], [1], [2]), [2])
