"""Small dense factorisations and solves."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern


def positive_definite(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """s * (G G^T / M + I) for each matrix of a batch, each with a scale s of its own."""
    rng = draw.rng(spec.name)
    G = rng.standard_normal(spec.shape)
    M = spec.shape[-1]
    A = G @ np.swapaxes(G, -1, -2) / M + np.eye(M)
    return A * 2 ** rng.uniform(-1, 1, spec.shape[:-2])[..., None, None]


@pattern(
    "cholesky_batched",
    draw={"A": positive_definite},
    no_twin="ONNX has no factorisations",
)
def cholesky_batched(A: Array) -> Array:
    _, M, _ = A.shape
    L = np.zeros(A.shape)
    for j in range(M):
        L[:, j, j] = np.sqrt(A[:, j, j] - (L[:, j, :j] ** 2).sum(axis=1))
        for i in range(j + 1, M):
            rest = A[:, i, j] - (L[:, i, :j] * L[:, j, :j]).sum(axis=1)
            L[:, i, j] = rest / L[:, j, j]
    return L
