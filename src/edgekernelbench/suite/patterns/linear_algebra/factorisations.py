"""Factorisations of small dense matrices, a batch at a time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.matrices import positive_definite
from edgekernelbench.suite.patterns.registry import Array, pattern

NO_TWIN = "ONNX has no factorisations"


def diagonally_dominant(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """s * (G + M I) for each matrix of a batch, each with a scale s of its own."""
    rng = draw.rng(spec.name)
    M = spec.shape[-1]
    A = rng.standard_normal(spec.shape) + M * np.eye(M)
    return A * 2 ** rng.uniform(-1, 1, spec.shape[:-2])[..., None, None]


def scaled_columns(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Normal numbers, each column of each matrix at a scale of its own."""
    rng = draw.rng(spec.name)
    B, _, N = spec.shape
    return rng.standard_normal(spec.shape) * 2 ** rng.uniform(-1, 1, (B, 1, N))


@pattern(
    "cholesky_batched",
    draw={"A": positive_definite},
    no_twin=NO_TWIN,
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


@pattern("lu_nopivot_batched", draw={"A": diagonally_dominant}, no_twin=NO_TWIN)
def lu_nopivot_batched(A: Array) -> Array:
    _, M, _ = A.shape
    LU = A.copy()
    for k in range(M):
        LU[:, k + 1 :, k] /= LU[:, k, k][:, None]
        LU[:, k + 1 :, k + 1 :] -= LU[:, k + 1 :, k][:, :, None] * LU[:, k, k + 1 :][:, None, :]
    return LU


@pattern("qr_gram_schmidt", draw={"A": scaled_columns}, no_twin=NO_TWIN)
def qr_gram_schmidt(A: Array) -> tuple[Array, Array]:
    B, _, N = A.shape
    V = A.copy()
    Q, R = np.zeros(A.shape), np.zeros((B, N, N))
    for j in range(N):
        R[:, j, j] = np.sqrt((V[:, :, j] ** 2).sum(axis=1))
        Q[:, :, j] = V[:, :, j] / R[:, j, j][:, None]
        for k in range(j + 1, N):
            R[:, j, k] = (Q[:, :, j] * V[:, :, k]).sum(axis=1)
            V[:, :, k] -= R[:, j, k][:, None] * Q[:, :, j]
    return Q, R


def gram_matrices(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """s * G G^T for each matrix of a batch, each with a scale s of its own."""
    rng = draw.rng(spec.name)
    G = rng.standard_normal(spec.shape)
    return G @ np.swapaxes(G, -1, -2) * 2 ** rng.uniform(-1, 1, (spec.shape[0], 1, 1))


def jacobi_rotate(A: Array, p: int, q: int) -> Array:
    """J^T A J with the plane rotation J that makes A[:, p, q] zero."""
    skip = np.abs(A[:, p, q]) < 1e-12
    theta = (A[:, q, q] - A[:, p, p]) / (2 * np.where(skip, 1, A[:, p, q]))
    sign = np.where(theta < 0, -1, 1)
    t = np.where(skip, 0, sign / (np.abs(theta) + np.sqrt(theta**2 + 1)))
    c = 1 / np.sqrt(t**2 + 1)
    s = t * c
    J = np.zeros(A.shape) + np.eye(3)
    J[:, p, p], J[:, p, q], J[:, q, p], J[:, q, q] = c, s, -s, c
    return J.transpose(0, 2, 1) @ A @ J


@pattern(
    "jacobi_eigen3x3_batched",
    draw={"A": gram_matrices},
    no_twin="ONNX has no eigenvalues",
)
def jacobi_eigen3x3_batched(A: Array) -> Array:
    for _ in range(5):  # sweeps
        for p, q in ((0, 1), (0, 2), (1, 2)):
            A = jacobi_rotate(A, p, q)
    return np.sort(np.diagonal(A, axis1=1, axis2=2), axis=1)
