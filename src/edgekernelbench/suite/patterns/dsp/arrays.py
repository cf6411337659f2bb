"""Microphone arrays, and statistics over time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, integers
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.dsp.fourier import (
    TABLE,
    as_complex,
    as_pairs,
    irfft,
    twiddles,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


@pattern("delay_and_sum_beamform", draw={"dl": integers("-12", "13")})
def delay_and_sum_beamform(x: Array, dl: Array) -> Array:
    Mm, L = x.shape
    y = np.zeros((len(dl), L))
    for m in range(Mm):
        at = np.arange(L) + dl[:, m, None]
        inside = (at >= 0) & (at < L)
        y += np.where(inside, x[m, np.clip(at, 0, L - 1)], 0) / Mm
    return y


@delay_and_sum_beamform.twin
def _(g: Graph, x: Value, dl: Array, L: int, Mm: int) -> Value:
    border = int(np.abs(dl).max())
    padded = g.Reshape(g.Pad(x, [0, border, 0, border]), [-1])
    row = np.arange(Mm)[:, None] * (L + 2 * border) + border
    at = row + dl[:, :, None].astype(np.int64) + np.arange(L)
    return g.ReduceMean(g.Gather(padded, at), [1], keepdims=0)


def delayed_pair(draw: Draw) -> dict[str, np.ndarray]:
    """Spectra of noise, and of the same delayed by at most MT samples with other noise.

    Half of the frames are band-limited: their upper bins are exactly zero, or products of them
    below the floor.
    """
    B, bins, _ = draw.shape("X1")
    NF, MT = draw.size("NF"), draw.size("MT")
    rng = draw.rng("X1")
    level = 2 ** rng.uniform(-1, 1, (B, 1))
    cutoff = np.where(rng.random((B, 1)) < 0.5, bins, bins * 9 // 10)
    rest = rng.choice([0.0, 2.0**-17], (B, 1))
    band = np.where(np.arange(bins) < cutoff, 1, rest)
    X1 = level * band * as_complex(rng.standard_normal((B, bins, 2)))
    rng = draw.rng("X2")
    delay = rng.integers(-MT, MT + 1, (B, 1))
    shifted = X1 * np.exp(-2j * np.pi * np.arange(bins) * delay / NF)
    noise = 0.2 * level * band * as_complex(rng.standard_normal((B, bins, 2)))
    return {"X1": as_pairs(X1), "X2": as_pairs(shifted + noise)}


@pattern("gcc_phat", draw={"tw": twiddles}, inert={"tw": TABLE})
def gcc_phat(X1: Array, X2: Array, tw: Array, MT: int) -> tuple[Array, Array]:
    product = as_complex(X1) * as_complex(X2).conj()
    phase = product / np.maximum(np.abs(product), 1e-9)
    r = irfft(phase, tw)[:, np.arange(-MT, MT + 1)]  # negative lags from the end
    return r, r.argmax(axis=1)


gcc_phat.inputs(delayed_pair)


@gcc_phat.twin
def _(
    g: Graph, X1: Value, X2: Value, NF: int, MT: int
) -> tuple[Value, Value]:  # fmt: skip
    re1, im1 = g.op("Split", X1, outputs=2, axis=2, num_outputs=2)
    re2, im2 = g.op("Split", X2, outputs=2, axis=2, num_outputs=2)
    re = g.Add(g.Mul(re1, re2), g.Mul(im1, im2))
    im = g.Sub(g.Mul(im1, re2), g.Mul(re1, im2))
    product = g.Concat(re, im, axis=2)
    phase = g.Div(product, g.Max(g.ReduceL2(product, [2], keepdims=1), 1e-9))
    angle = 2 * np.pi * np.arange(NF // 2 + 1)[:, None] * np.arange(-MT, MT + 1) / NF
    basis = np.stack([np.cos(angle), -np.sin(angle)], axis=1) * 2 / NF
    basis[[0, -1]] /= 2
    r = g.MatMul(g.Flatten(phase, axis=1), basis.reshape(-1, 2 * MT + 1))
    lag = g.ArgMax(r, axis=1, keepdims=0, select_last_index=0)
    return r, g.cast(lag, DType.S32)


def channels_off_zero(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Channels of differing mean and scale; one of twenty is dead.

    In float16 one of eight hardly varies: else errors of a cheaper format would average out.
    """
    rng = draw.rng(spec.name)
    C = spec.shape[0]
    mean, scale = rng.standard_normal((C, 1)), 2 ** rng.uniform(-1.5, 1.5, (C, 1))
    alive = rng.random((C, 1)) > 0.05
    noise = rng.standard_normal(spec.shape)
    if spec.dtype is DType.F16:
        steady = rng.permutation(C)[:, None] % 8 == 0
        noise *= np.where(steady, 0.005, 1)
        mean += np.where(steady, 2 * np.sign(mean), 0)
    return (noise + mean) * scale * alive


@pattern("statistics_pooling", draw={"x": channels_off_zero})
def statistics_pooling(x: Array) -> Array:
    mu = x.mean(axis=1)
    variance = (x**2).mean(axis=1) - mu**2
    return np.concatenate([mu, np.sqrt(np.maximum(variance, 1e-5))])


@statistics_pooling.twin
def _(g: Graph, x: Value) -> Value:
    wide = g.cast(x, DType.F32)
    mu = g.ReduceMean(wide, [1], keepdims=0)
    square = g.ReduceMean(g.Mul(wide, wide), [1], keepdims=0)
    variance = g.Max(g.Sub(square, g.Mul(mu, mu)), np.float32(1e-5))
    return g.cast(g.Concat(mu, g.Sqrt(variance), axis=0))
