"""Rigid bodies in time."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def flight_states(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Position, velocity, a unit quaternion and body rates."""
    state = activations(1.0, spread=1.0)(draw, spec).astype(np.float64)
    state[:, 6:10] /= np.linalg.norm(state[:, 6:10], axis=1, keepdims=True)
    return state


def quadrotor(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """(m, Jx, Jy, Jz, l, c, dt) of craft between half and twice a common one's."""
    common = np.array([1.0, 0.1, 0.1, 0.2, 0.25, 0.1, 0.05])
    return common * 2 ** draw.rng(spec.name).uniform(-1, 1, spec.shape)


def hamilton(a: Array, b: Array) -> Array:
    """Products of quaternions (w, x, y, z) along the last axis."""
    aw, av, bw, bv = a[:, :1], a[:, 1:], b[:, :1], b[:, 1:]
    scalar = aw * bw - (av * bv).sum(axis=1, keepdims=True)
    return np.concatenate([scalar, aw * bv + bw * av + np.cross(av, bv)], axis=1)


def quadrotor_derivative(s: Array, u: Array, prm: Array) -> Array:
    """d/dt of the state (p, v, q, w)."""
    mass, inertia, (arm, drag) = prm[0], prm[1:4], prm[4:6]
    v, q, w = s[:, 3:6], s[:, 6:10], s[:, 10:13]
    q0, q1, q2, q3 = q.T
    up = [2 * (q1 * q3 + q0 * q2), 2 * (q2 * q3 - q0 * q1), 1 - 2 * (q1**2 + q2**2)]
    thrust = u.sum(axis=1) / mass  # along R(q) (0, 0, 1), whatever the norm of q
    acceleration = np.array([0, 0, -9.81]) + np.stack(up, axis=1) * thrust[:, None]
    u0, u1, u2, u3 = u.T
    torque = np.stack([arm * (u1 - u3), arm * (u2 - u0), drag * (u0 - u1 + u2 - u3)], axis=1)
    rates = np.concatenate([np.zeros((len(w), 1)), w], axis=1)
    return np.concatenate(
        [v, acceleration, 0.5 * hamilton(q, rates), (torque - np.cross(w, inertia * w)) / inertia],
        axis=1,
    )


@pattern(
    "rk4_quadrotor_step",
    draw={"s": flight_states, "u": activations(3.0), "prm": quadrotor},
)
def rk4_quadrotor_step(s: Array, u: Array, prm: Array) -> Array:
    dt = prm[6]
    k1 = quadrotor_derivative(s, u, prm)
    k2 = quadrotor_derivative(s + dt / 2 * k1, u, prm)
    k3 = quadrotor_derivative(s + dt / 2 * k2, u, prm)
    k4 = quadrotor_derivative(s + dt * k3, u, prm)
    s_out = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    s_out[:, 6:10] /= np.sqrt((s_out[:, 6:10] ** 2).sum(axis=1, keepdims=True))
    return s_out


def cross(g: Graph, a: Value, b: Value) -> Value:
    """Of rows [B, 3]."""
    a1, a2 = g.Gather(a, [1, 2, 0], axis=1), g.Gather(a, [2, 0, 1], axis=1)
    b1, b2 = g.Gather(b, [1, 2, 0], axis=1), g.Gather(b, [2, 0, 1], axis=1)
    return g.Sub(g.Mul(a1, b2), g.Mul(a2, b1))


@rk4_quadrotor_step.twin
def _(g: Graph, s: Value, u: Value, prm: Array) -> Value:
    mass, *_, arm, drag, dt = (float(number) for number in prm)
    inertia = prm[1:4].astype(np.float64)
    mixer = np.array([[0, -arm, drag], [arm, 0, -drag], [0, arm, drag], [-arm, 0, -drag]])
    thrust = g.Div(g.ReduceSum(u, [1], keepdims=1), mass)
    spin_up = g.MatMul(u, mixer / inertia)

    def derivative(state: Value) -> Value:
        _, v, q, w = g.op("Split", state, [3, 3, 4, 3], outputs=4, axis=1)
        qw, qv = g.op("Split", q, [1, 3], outputs=2, axis=1)
        # e3 rotated by q: e3 + 2 qw (qv x e3) + 2 qv x (qv x e3)
        aside = g.MatMul(qv, np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]]))
        tilt = g.Add(g.Mul(qw, aside), cross(g, qv, aside))
        up = g.Add(g.Mul(tilt, 2.0), np.array([0.0, 0, 1]))
        acceleration = g.Add(g.Mul(up, thrust), np.array([0, 0, -9.81]))
        scalar = g.Neg(g.ReduceSum(g.Mul(qv, w), [1], keepdims=1))
        turn = g.Concat(scalar, g.Add(g.Mul(qw, w), cross(g, qv, w)), axis=1)
        gyration = g.Div(cross(g, w, g.Mul(w, inertia)), inertia)
        return g.Concat(v, acceleration, g.Mul(turn, 0.5), g.Sub(spin_up, gyration), axis=1)

    k1 = derivative(s)
    k2 = derivative(g.Add(s, g.Mul(k1, dt / 2)))
    k3 = derivative(g.Add(s, g.Mul(k2, dt / 2)))
    k4 = derivative(g.Add(s, g.Mul(k3, dt)))
    total = g.Add(g.Add(k1, g.Mul(g.Add(k2, k3), 2.0)), k4)
    moved = g.Add(s, g.Mul(total, dt / 6))
    before, q, after = g.op("Split", moved, [6, 4, 3], outputs=3, axis=1)
    return g.Concat(before, g.Div(q, g.ReduceL2(q, [1], keepdims=1)), after, axis=1)
