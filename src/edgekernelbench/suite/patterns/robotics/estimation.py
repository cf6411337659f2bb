# ruff: noqa: E741  (the table calls the log odds l)
"""Maps, particle filters, Kalman filters and attitude filters."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, activations, uniform, weights
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.matrices import (
    positive_definite,
    stable_dynamics,
    unit_quaternions,
)
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def sparse_mask(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Bytes, three of ten not zero."""
    rng = draw.rng(spec.name)
    return np.where(rng.random(spec.shape) < 0.3, rng.integers(1, 256, spec.shape), 0)


@pattern(
    "occupancy_log_odds_update",
    draw={"l": uniform(-2.0, 3.5), "hit": sparse_mask, "miss": sparse_mask},
)
def occupancy_log_odds_update(
    l: Array, hit: Array, miss: Array, lo_hit: float, lo_miss: float, lo_min: float, lo_max: float
) -> Array:
    change = np.where(hit != 0, lo_hit, np.where(miss != 0, lo_miss, 0))
    return np.clip(l + change, lo_min, lo_max)


@occupancy_log_odds_update.twin
def _(
    g: Graph, l: Value, hit: Value, miss: Value, lo_hit: float, lo_miss: float, lo_min: float,
    lo_max: float
) -> Value:  # fmt: skip
    was_hit, was_missed = g.cast(hit, DType.BOOL), g.cast(miss, DType.BOOL)
    change = g.Where(was_hit, lo_hit, g.Where(was_missed, lo_miss, 0.0))
    return g.Clip(g.Add(l, change), np.float32(lo_min), np.float32(lo_max))


def particle_weights(draw: Draw) -> dict[str, np.ndarray]:
    """Weights in units of 1/256 that sum to L/2, and u0 in odd units of 1/256.

    Sums are then exact in float32, and none comes nearer than 1/512 to a threshold, whose own
    rounding error is far smaller.
    """
    L, rng = draw.size("L"), draw.rng("w")
    shares = rng.uniform(0, 1, L)
    w = rng.multinomial(128 * L, shares / shares.sum()) / 256
    u0 = (2 * draw.rng("u0").integers(0, 128, 1) + 1) / 256
    return {"w": w, "u0": u0}


@pattern("systematic_resample")
def systematic_resample(w: Array, u0: Array) -> Array:
    L = len(w)
    c = np.cumsum(w)
    u = (np.arange(L) + u0) / L * c[L - 1]
    below = (c <= u[:, None]).sum(axis=1)  # how many sums are at most u[m]
    return np.minimum(below, L - 1)


systematic_resample.inputs(particle_weights)


@systematic_resample.twin
def _(g: Graph, w: Value, u0: Value, L: int) -> Value:
    c = g.CumSum(w, np.int64(0))
    total = g.Slice(c, [L - 1], [L], [0])
    u = g.Mul(g.Div(g.Add(u0, np.arange(L, dtype=np.float64)), float(L)), total)
    passed = g.LessOrEqual(c, g.Unsqueeze(u, [1]))
    below = g.ReduceSum(g.cast(passed, DType.S32), [1], keepdims=0)
    return g.Min(below, np.int32(L - 1))


MOTION = stable_dynamics(0.95)


@pattern(
    "kalman_predict",
    draw={"Pm": positive_definite, "Fm": MOTION, "Qm": positive_definite},
)
def kalman_predict(x: Array, Pm: Array, Fm: Array, Qm: Array) -> tuple[Array, Array]:
    return x @ Fm.T, Fm @ Pm @ Fm.T + Qm


@kalman_predict.twin
def _(g: Graph, x: Value, Pm: Value, Fm: Array, Qm: Array) -> tuple[Value, Value]:
    spread = g.MatMul(g.MatMul(Fm, Pm), Fm.T)
    return g.MatMul(x, Fm.T), g.Add(spread, Qm)


@pattern(
    "kalman_update",
    draw={"Pm": positive_definite, "Hm": weights(), "Rm": positive_definite},
    no_twin="ONNX has no linear solve",
)
def kalman_update(x: Array, Pm: Array, z: Array, Hm: Array, Rm: Array) -> tuple[Array, Array]:
    S = Hm @ Pm @ Hm.T + Rm
    K = Pm @ Hm.T @ np.linalg.inv(S)  # S is positive definite: a Cholesky factor serves
    innovation = z - x @ Hm.T
    x_out = x + (K @ innovation[:, :, None])[:, :, 0]
    return x_out, Pm - K @ S @ K.transpose(0, 2, 1)


def gravity_readings(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Accelerations near (0, 0, 1), each reading at a scale of its own."""
    rng = draw.rng(spec.name)
    a = np.array([0.0, 0.0, 1.0]) + 0.2 * rng.standard_normal(spec.shape)
    return a * 2 ** rng.uniform(-1, 1, (*spec.shape[:2], 1))


@pattern(
    "madgwick_imu_update",
    draw={"w": activations(), "a": gravity_readings, "q0": unit_quaternions},
    no_twin="ONNX would need a loop over the samples",
)
def madgwick_imu_update(w: Array, a: Array, q0: Array, beta: float, dt: float) -> Array:
    B, L, _ = w.shape
    a = a / np.sqrt((a**2).sum(axis=2, keepdims=True))
    q = np.zeros((B, L, 4))
    now = q0
    for t in range(L):
        q0, q1, q2, q3 = now.T
        ax, ay, az = a[:, t].T
        wx, wy, wz = w[:, t].T
        f1 = 2 * (q1 * q3 - q0 * q2) - ax
        f2 = 2 * (q0 * q1 + q2 * q3) - ay
        f3 = 1 - 2 * q1**2 - 2 * q2**2 - az
        s0 = -2 * q2 * f1 + 2 * q1 * f2
        s1 = 2 * q3 * f1 + 2 * q0 * f2 - 4 * q1 * f3
        s2 = -2 * q0 * f1 + 2 * q3 * f2 - 4 * q2 * f3
        s3 = 2 * q1 * f1 + 2 * q2 * f2
        s = np.stack([s0, s1, s2, s3], axis=1)
        s = s / np.maximum(np.sqrt((s**2).sum(axis=1, keepdims=True)), 1e-12)
        turn0 = -q1 * wx - q2 * wy - q3 * wz  # q * (0, w)
        turn1 = q0 * wx + q2 * wz - q3 * wy
        turn2 = q0 * wy - q1 * wz + q3 * wx
        turn3 = q0 * wz + q1 * wy - q2 * wx
        turn = np.stack([turn0, turn1, turn2, turn3], axis=1)
        now = now + dt * (0.5 * turn - beta * s)
        now = now / np.sqrt((now**2).sum(axis=1, keepdims=True))
        q[:, t] = now
    return q
