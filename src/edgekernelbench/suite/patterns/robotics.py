"""Estimation, planning and control."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def linear_plant(draw: Draw) -> dict[str, np.ndarray]:
    """A stable plant A, Bm, a small feedback Kinf, an inverse Hessian Qi, Am = A - Bm Kinf."""
    n, m = draw.size("n"), draw.size("m")
    A = draw.rng("A").standard_normal((n, n))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    Bm = draw.rng("Bm").standard_normal((n, m)) / np.sqrt(n)
    Kinf = 0.15 * draw.rng("Kinf").standard_normal((m, n))
    root = draw.rng("Qi").standard_normal((m, m))
    Qi = np.linalg.inv(5 * np.eye(m) + root @ root.T)
    return {"A": A, "Bm": Bm, "Kinf": Kinf, "Qi": Qi, "Am": A - Bm @ Kinf}


@pattern(
    "admm_mpc_iteration",
    draw={name: activations(0.4, spread=1.0) for name in ("d", "y")},
)
def admm_mpc_iteration(
    x0: Array, A: Array, Bm: Array, Kinf: Array, Qi: Array, Am: Array, q: Array, d: Array,
    p: Array, y: Array, rho: float, umin: float, umax: float
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    steps = len(d)  # Nh - 1
    u, d_out, p_out = np.zeros(d.shape), np.zeros(d.shape), np.zeros(p.shape)
    x = x0
    for k in range(steps):  # forward
        u[k] = -Kinf @ x - d[k]
        x = A @ x + Bm @ u[k]
    z = np.clip(u + y, umin, umax)
    y_out = y + u - z
    r = -rho * (z - y_out)
    p_out[steps] = p[steps]
    for k in reversed(range(steps)):  # backward
        d_out[k] = Qi @ (Bm.T @ p_out[k + 1] + r[k])
        p_out[k] = q[k] + Am.T @ p_out[k + 1] - Kinf.T @ r[k]
    return u, d_out, p_out, y_out


admm_mpc_iteration.inputs(linear_plant)


@admm_mpc_iteration.twin
def _(
    g: Graph, x0: Value, A: Array, Bm: Array, Kinf: Array, Qi: Array, Am: Array, q: Value,
    d: Value, p: Value, y: Value, rho: float, umin: float, umax: float, Nh: int
) -> tuple[Value, Value, Value, Value]:  # fmt: skip
    def row(rows: Value, k: int) -> Value:
        return g.Slice(rows, [k], [k + 1], [0])

    # Every vector is a row [1, n], so that a product M v reads v M^T.
    x, controls = g.Unsqueeze(x0, [0]), []
    for k in range(Nh - 1):
        controls.append(g.Sub(g.MatMul(x, -Kinf.T), row(d, k)))
        x = g.Add(g.MatMul(x, A.T), g.MatMul(controls[-1], Bm.T))
    u = g.Concat(*controls, axis=0)
    z = g.Clip(g.Add(u, y), np.float32(umin), np.float32(umax))
    y_out = g.Sub(g.Add(y, u), z)
    r = g.Mul(g.Sub(z, y_out), -rho)
    costates, feedforward = [row(p, Nh - 1)], []
    for k in reversed(range(Nh - 1)):
        later, r_k = costates[0], row(r, k)
        feedforward.insert(0, g.MatMul(g.Add(g.MatMul(later, Bm), r_k), Qi.T))
        change = g.Sub(g.MatMul(later, Am), g.MatMul(r_k, Kinf))
        costates.insert(0, g.Add(row(q, k), change))
    return u, g.Concat(*feedforward, axis=0), g.Concat(*costates, axis=0), y_out
