"""Linear systems and inverses."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def lower_factor(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Diagonal 1 + |N|, the rest N / M; numbers above the diagonal are there to be ignored."""
    rng = draw.rng(spec.name)
    M = spec.shape[0]
    L = rng.standard_normal(spec.shape) / M
    np.fill_diagonal(L, 1 + np.abs(rng.standard_normal(M)))
    return L


@pattern(
    "triangular_solve_lower",
    draw={"L_": lower_factor},
    no_twin="ONNX has no triangular solve",
)
def triangular_solve_lower(L_: Array, B: Array) -> Array:
    X = np.zeros(B.shape)
    for i in range(len(B)):
        X[i] = (B[i] - L_[i, :i] @ X[:i]) / L_[i, i]
    return X


def tridiagonal_systems(draw: Draw) -> dict[str, np.ndarray]:
    """Diagonals beside others in [-1, 1].

    Every other system, the first included, has rows that hardly dominate, so that far ones have an
    effect. The others have magnitudes of 4 + |N|, each at its own scale. Numbers outside of the
    matrix (first of ``a``, last of ``c``) are there to be ignored.
    """
    rng, shape = draw.rng("b"), draw.shape("b")
    magnitude = 4 + np.abs(rng.standard_normal(shape))
    signs = rng.choice([-1.0, 1.0], shape)
    scale = 2 ** rng.uniform(-1, 1, (shape[0], 1))
    weak = np.arange(shape[0]) % 2 == 0
    scale[weak] = 1
    bands = {name: draw.rng(name).uniform(-1, 1, shape) for name in ("a", "c")}
    for band in bands.values():
        band[weak] = np.copysign(0.9 + 0.1 * np.abs(band[weak]), band[weak])
    magnitude[weak] = 0.02 + np.abs(bands["a"][weak]) + np.abs(bands["c"][weak])
    return {"b": magnitude * signs * scale, **{k: band * scale for k, band in bands.items()}}


@pattern("tridiagonal_solve_batched", no_twin="ONNX has no tridiagonal solve")
def tridiagonal_solve_batched(a: Array, b: Array, c: Array, d: Array) -> Array:
    _, M = b.shape
    cp, dp, x = np.zeros(b.shape), np.zeros(b.shape), np.zeros(b.shape)
    cp[:, 0] = c[:, 0] / b[:, 0]
    dp[:, 0] = d[:, 0] / b[:, 0]
    for i in range(1, M):
        pivot = b[:, i] - a[:, i] * cp[:, i - 1]
        cp[:, i] = c[:, i] / pivot
        dp[:, i] = (d[:, i] - a[:, i] * dp[:, i - 1]) / pivot
    x[:, M - 1] = dp[:, M - 1]
    for i in reversed(range(M - 1)):
        x[:, i] = dp[:, i] - cp[:, i] * x[:, i + 1]
    return x


tridiagonal_solve_batched.inputs(tridiagonal_systems)


def well_conditioned(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """s * (G/2 + 3 I) for each matrix of a batch, each with a scale s of its own."""
    rng = draw.rng(spec.name)
    A = rng.standard_normal(spec.shape) / 2 + 3 * np.eye(3)
    return A * 2 ** rng.uniform(-1, 1, (spec.shape[0], 1, 1))


@pattern("inverse3x3_batched", draw={"A": well_conditioned})
def inverse3x3_batched(A: Array) -> Array:
    r0, r1, r2 = A[:, 0], A[:, 1], A[:, 2]  # rows
    adjugate = np.stack([np.cross(r1, r2), np.cross(r2, r0), np.cross(r0, r1)], axis=2)
    det = (r0 * np.cross(r1, r2)).sum(axis=1)
    return adjugate / det[:, None, None]


@inverse3x3_batched.twin
def _(g: Graph, A: Value) -> Value:
    # Row i of the cofactors is the cross product of the rows i+1 and i+2; every row of A
    # times its cofactors sums to the determinant.
    following, last = g.Gather(A, [1, 2, 0], axis=1), g.Gather(A, [2, 0, 1], axis=1)
    ahead = g.Mul(g.Gather(following, [1, 2, 0], axis=2), g.Gather(last, [2, 0, 1], axis=2))
    behind = g.Mul(g.Gather(following, [2, 0, 1], axis=2), g.Gather(last, [1, 2, 0], axis=2))
    cofactors = g.Sub(ahead, behind)
    det = g.ReduceSum(g.Mul(A, cofactors), [2], keepdims=1)
    return g.Transpose(g.Div(cofactors, det), perm=[0, 2, 1])
