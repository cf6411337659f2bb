"""Control by sampled rollouts."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.functions import softmax
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def exploration(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Noise of deviation 0.3 on average, samples of differing boldness."""
    rng = draw.rng(spec.name)
    boldness = 0.3 * 2 ** rng.uniform(-0.75, 0.75, (spec.shape[0], 1, 1))
    return rng.standard_normal(spec.shape) * boldness


def rover_state(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Near the origin, facing along x within half a radian, at 2 to 3 m/s."""
    rng = draw.rng(spec.name)
    x, y = rng.uniform(-0.5, 0.5, 2)
    return np.array([x, y, rng.uniform(-0.5, 0.5), rng.uniform(2, 3)])


def smooth_path(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Nine metres along x from the origin on, swaying to both sides; its points in any order."""
    rng = draw.rng(spec.name)
    x = np.linspace(0, 9, spec.shape[0]) - rng.uniform(0.1, 0.5)
    phase, length = rng.uniform(0, 2 * np.pi), rng.uniform(4, 8)
    sway = np.sin(2 * np.pi * x / length + phase) - np.sin(phase)
    return rng.permutation(np.stack([x, rng.uniform(0.3, 0.8) * sway], axis=1))


@pattern(
    "mppi_bicycle_control",
    draw={
        "un": activations(0.2, spread=0.75),
        "eps": exploration,
        "s0": rover_state,
        "ref": smooth_path,
    },
)
def mppi_bicycle_control(
    un: Array, eps: Array, s0: Array, ref: Array, dt: float, Lw: float, lam: float
) -> Array:
    B, Lh, _ = eps.shape
    u = np.clip(un + eps, -1, 1)  # [sample, time, control]
    px, py, yaw, v = (np.full(B, value) for value in s0)
    cost = np.zeros(B)
    for t in range(Lh):
        throttle, steer = u[:, t, 0], u[:, t, 1]
        px, py, yaw, v = (
            px + v * np.cos(yaw) * dt,
            py + v * np.sin(yaw) * dt,
            yaw + v / Lw * np.tan(0.5 * steer) * dt,
            v + 2 * throttle * dt,
        )
        off_path = (px[:, None] - ref[:, 0]) ** 2 + (py[:, None] - ref[:, 1]) ** 2
        cost += off_path.min(axis=1) + 0.1 * (v - 3) ** 2
    w = softmax(-cost / lam)
    return (w[:, None, None] * u).sum(axis=0)


@mppi_bicycle_control.twin
def _(
    g: Graph, un: Value, eps: Value, s0: Value, ref: Value, dt: float, Lw: float, lam: float,
    B: int, Lh: int
) -> Value:  # fmt: skip
    u = g.Clip(g.Add(un, eps), np.float32(-1), np.float32(1))
    moves = g.op("Split", u, outputs=Lh, axis=1, num_outputs=Lh)
    state = g.Expand(g.Unsqueeze(s0, [0]), [B, 4])
    px, py, yaw, v = g.op("Split", state, outputs=4, axis=1, num_outputs=4)  # [B, 1]
    path = g.Transpose(ref, perm=[1, 0])
    path_x, path_y = g.op("Split", path, outputs=2, axis=0, num_outputs=2)  # [1, Nr]
    costs = []
    for move in moves:
        controls = g.Squeeze(move, [1])
        throttle, steer = g.op("Split", controls, outputs=2, axis=1, num_outputs=2)
        step = g.Mul(v, dt)
        px = g.Add(px, g.Mul(step, g.Cos(yaw)))
        py = g.Add(py, g.Mul(step, g.Sin(yaw)))
        yaw = g.Add(yaw, g.Mul(g.Div(step, Lw), g.Tan(g.Mul(steer, 0.5))))
        v = g.Add(v, g.Mul(throttle, 2 * dt))
        dx, dy, slow = g.Sub(px, path_x), g.Sub(py, path_y), g.Sub(v, 3.0)
        nearest = g.ReduceMin(g.Add(g.Mul(dx, dx), g.Mul(dy, dy)), [1], keepdims=1)
        costs.append(g.Add(nearest, g.Mul(g.Mul(slow, slow), 0.1)))
    w = g.Softmax(g.Div(g.Neg(g.Sum(*costs)), lam), axis=0)
    return g.ReduceSum(g.Mul(g.Unsqueeze(w, [2]), u), [0], keepdims=0)
