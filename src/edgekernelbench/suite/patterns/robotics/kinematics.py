"""Arms: forward and inverse kinematics."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def arm_geometry(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Rows (th0, d, a, alpha) of an arm: any angles, offsets and lengths below 0.6."""
    rng = draw.rng(spec.name)
    J = spec.shape[0]
    th0, alpha = rng.uniform(-np.pi, np.pi, J), rng.uniform(-np.pi, np.pi, J)
    d, a = rng.uniform(-0.6, 0.6, J), rng.uniform(-0.6, 0.6, J)
    return np.stack([th0, d, a, alpha], axis=1)


@pattern(
    "forward_kinematics_chain",
    draw={"theta": activations(1.5, spread=1.0), "dh": arm_geometry},
)
def forward_kinematics_chain(theta: Array, dh: Array) -> Array:
    B, J = theta.shape
    T = np.zeros((B, 4, 4)) + np.eye(4)
    for i in range(J):
        th0, d, a, alpha = dh[i]
        c, s = np.cos(theta[:, i] + th0), np.sin(theta[:, i] + th0)
        ca, sa = np.cos(alpha), np.sin(alpha)
        zero, one = np.zeros(B), np.ones(B)
        DH = np.array([
            [c, -s * ca, s * sa, a * c],
            [s, c * ca, -c * sa, a * s],
            [zero, sa * one, ca * one, d * one],
            [zero, zero, zero, one],
        ])  # fmt: skip
        T = T @ DH.transpose(2, 0, 1)
    return T[:, :3]


@forward_kinematics_chain.twin
def _(g: Graph, theta: Value, dh: Array, J: int) -> Value:
    # Each joint's matrix is linear in cosine and sine: DH = c * P + s * Q + R.
    th0, d, a, alpha = dh.astype(np.float64).T
    P, Q, R = (np.zeros((J, 4, 4)) for _ in range(3))
    P[:, 0, 0], P[:, 0, 3], P[:, 1, 1], P[:, 1, 2] = 1, a, np.cos(alpha), -np.sin(alpha)
    Q[:, 1, 0], Q[:, 1, 3], Q[:, 0, 1], Q[:, 0, 2] = 1, a, -np.cos(alpha), np.sin(alpha)
    R[:, 2, 1], R[:, 2, 2], R[:, 2, 3], R[:, 3, 3] = np.sin(alpha), np.cos(alpha), d, 1
    angle = g.Unsqueeze(g.Add(theta, th0), [2, 3])
    joints = g.Add(g.Add(g.Mul(g.Cos(angle), P), g.Mul(g.Sin(angle), Q)), R)
    first, *others = g.op("Split", joints, outputs=J, axis=1, num_outputs=J)
    T = first
    for joint in others:
        T = g.MatMul(T, joint)
    return g.Squeeze(g.Slice(T, [0], [3], [2]), [1])


def jacobians(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Singular values in [0.3, 2]: the damping matters and rounding does not."""
    rng = draw.rng(spec.name)
    B, rows, n = spec.shape
    U, _, Vt = np.linalg.svd(rng.standard_normal((B, rows, n)), full_matrices=False)
    values = np.exp(rng.uniform(np.log(0.3), np.log(2), (B, 1, min(rows, n))))
    return U * values @ Vt


@pattern(
    "damped_least_squares_ik_step",
    draw={"J": jacobians},
    no_twin="ONNX has no linear solve",
)
def damped_least_squares_ik_step(J: Array, e: Array, lam: float) -> Array:
    Jt = J.transpose(0, 2, 1)
    damped = J @ Jt + lam**2 * np.eye(6)  # positive definite: a Cholesky factor serves
    return (Jt @ np.linalg.solve(damped, e[:, :, None]))[:, :, 0]
