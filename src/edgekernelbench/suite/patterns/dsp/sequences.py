"""Comparisons along time: pitch, alignment, decoding."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, on_grid
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def voiced_frames(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A tone in noise in each frame, above or below an offset; frames of differing loudness.

    The offset cancels in differences, but not in those of rounded samples.
    """
    rng = draw.rng(spec.name)
    B, length = spec.shape
    period, phase = rng.uniform(15, 150, (B, 1)), rng.uniform(0, 2 * np.pi, (B, 1))
    tone = np.sin(2 * np.pi * np.arange(length) / period + phase)
    offset = rng.uniform(4, 8, (B, 1)) * rng.choice([-1, 1], (B, 1))
    loudness = 2 ** rng.uniform(-1.5, 1.5, (B, 1))
    return (tone + 0.3 * rng.standard_normal(spec.shape) + offset) * loudness


@pattern("yin_difference", draw={"x": voiced_frames})
def yin_difference(x: Array, Wn: int, MT: int) -> Array:
    d = np.zeros((len(x), MT))
    for tau in range(MT):
        d[:, tau] = ((x[:, :Wn] - x[:, tau : tau + Wn]) ** 2).sum(axis=1)
    return d


@yin_difference.twin
def _(g: Graph, x: Value, Wn: int, MT: int) -> Value:
    shifted = g.Gather(x, np.arange(MT)[:, None] + np.arange(Wn), axis=1)
    difference = g.Sub(g.Unsqueeze(g.Slice(x, [0], [Wn], [1]), [1]), shifted)
    return g.ReduceSum(g.Mul(difference, difference), [2], keepdims=0)


def stretched_frames(draw: Draw) -> dict[str, np.ndarray]:
    """Half of the templates are the frames themselves in noise, stretched at one end: their best
    paths lie far from the diagonal."""
    a = activations()(draw, draw.spec("a"))
    b = activations()(draw, draw.spec("b"))
    rng = draw.rng("b").spawn(1)[0]
    M, (Q, N, _) = len(a), b.shape
    for q in range(0, Q, 2):
        bend = rng.choice([0.25, 4.0]) * 2 ** rng.uniform(-0.25, 0.25)
        at = np.rint((M - 1) * (np.arange(N) / max(1, N - 1)) ** bend).astype(int)
        b[q] = a[at] + 0.1 * b[q]
    return {"a": a, "b": b}


@pattern("dtw_distance", no_twin="ONNX has no dynamic programming over two axes")
def dtw_distance(a: Array, b: Array) -> Array:
    M, (Q, N, _) = len(a), b.shape
    D = np.full((M + 1, N + 1, Q), np.inf)  # with a border before the first row and column
    D[0, 0] = 0
    for i in range(M):
        cost = np.abs(a[i] - b).sum(axis=2)  # [Q, N]
        for j in range(N):
            before = np.minimum(np.minimum(D[i, j + 1], D[i + 1, j]), D[i, j])
            D[i + 1, j + 1] = cost[:, j] + before
    return D[M, N]


dtw_distance.inputs(stretched_frames)


GRID = 1 / 2048


def log_likelihoods(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """On a grid on which float32 sums are exact, so that equal paths tie.

    They lie so far below zero on average that path scores hardly grow.
    """
    values = activations()(draw, spec) - 0.75 * np.sqrt(spec.shape[-1])
    return np.rint(values / GRID) * GRID


SCORES = on_grid(activations(), GRID)


@pattern(
    "viterbi_forward",
    draw={"pi": SCORES, "A": SCORES, "e": log_likelihoods},
    no_twin="ONNX would need a loop over the frames",
)
def viterbi_forward(pi: Array, A: Array, e: Array) -> tuple[Array, Array]:
    L, Sv = e.shape
    v, bp = np.zeros((L, Sv)), np.zeros((L, Sv), np.int64)
    v[0] = pi + e[0]
    for t in range(1, L):
        scores = v[t - 1][:, None] + A  # from i (rows) to j
        bp[t] = scores.argmax(axis=0)  # the lowest index on ties
        v[t] = e[t] + scores.max(axis=0)
    return v, bp
