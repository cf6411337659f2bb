"""Random matrices and motions with the properties that algorithms ask of their inputs."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator
from edgekernelbench.suite.model import TensorSpec


def positive_definite(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """s D (G G^T / M + I) D for each matrix of a batch, diagonal D and scale s of its own."""
    rng = draw.rng(spec.name)
    G = rng.standard_normal(spec.shape)
    M = spec.shape[-1]
    A = G @ np.swapaxes(G, -1, -2) / M + np.eye(M)
    D = 2 ** rng.uniform(-0.75, 0.75, spec.shape[:-1])
    s = 2 ** rng.uniform(-1, 1, spec.shape[:-2])
    return A * D[..., :, None] * D[..., None, :] * s[..., None, None]


def unit_quaternions(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Uniform over all rotations; (w, x, y, z) along the last axis."""
    q = draw.rng(spec.name).standard_normal(spec.shape)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def rigid_motion(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """A rotation [3, 3] with a translation as the fourth column."""
    rng = draw.rng(spec.name)
    rotation, upper = np.linalg.qr(rng.standard_normal((3, 3)))
    rotation = rotation * np.sign(np.diag(upper))
    rotation[:, 0] *= np.linalg.det(rotation)  # no mirror
    return np.concatenate([rotation, 2 * rng.standard_normal((3, 1))], axis=1)


def stable_dynamics(radius: float) -> Generator:
    """A square matrix whose largest eigenvalue has that magnitude."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        A = draw.rng(spec.name).standard_normal(spec.shape)
        return A * radius / np.abs(np.linalg.eigvals(A)).max()

    return generate
