"""Optimal control of linear plants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, weights
from edgekernelbench.suite.patterns.matrices import positive_definite, stable_dynamics
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


@dataclass(frozen=True)
class PlantRows:
    """The matrices of an ADMM iteration in a twin, where every vector is a row [1, n].

    A product M v then reads v M^T.
    """

    A: Value
    Bm: Value
    gain: Value
    Kinf: Value
    Qi: Value
    costate: Value
    input: Value

    @staticmethod
    def of(g: Graph, A: Array, Bm: Array, Kinf: Array, Qi: Array, Am: Array) -> PlantRows:
        matrices = (A.T, Bm.T, -Kinf.T, Kinf, Qi.T, Am, Bm)
        return PlantRows(*(g.value(np.ascontiguousarray(matrix)) for matrix in matrices))


def admm_forward(
    g: Graph, plant: PlantRows, x: Value, d: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Controls of each step, and states from ``x`` on."""
    controls, states = [], [x]
    for row in d:
        controls.append(g.Sub(g.MatMul(states[-1], plant.gain), row))
        driven = g.MatMul(controls[-1], plant.Bm)
        states.append(g.Add(g.MatMul(states[-1], plant.A), driven))
    return controls, states


def admm_backward(
    g: Graph, plant: PlantRows, q: Sequence[Value], last: Value, r: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Feedforward terms of each step, and costates up to ``last``."""
    feedforward, costates = [], [last]
    for row, cost in zip(reversed(r), reversed(q[: len(r)]), strict=True):
        later = costates[0]
        driven = g.Add(g.MatMul(later, plant.input), row)
        feedforward.insert(0, g.MatMul(driven, plant.Qi))
        change = g.Sub(g.MatMul(later, plant.costate), g.MatMul(row, plant.Kinf))
        costates.insert(0, g.Add(cost, change))
    return feedforward, costates


def rows_of(g: Graph, matrix: Value, count: int) -> tuple[Value, ...]:
    return g.op("Split", matrix, outputs=count, axis=0, num_outputs=count)


def slack_and_dual(
    g: Graph, u: Value, y: Value, rho: float, umin: float, umax: float
) -> tuple[Value, Value]:
    """The new dual y and the linear cost r."""
    z = g.Clip(g.Add(u, y), np.float32(umin), np.float32(umax))
    y_out = g.Sub(g.Add(y, u), z)
    return y_out, g.Mul(g.Sub(z, y_out), -rho)


@admm_mpc_iteration.twin
def _(
    g: Graph, x0: Value, A: Array, Bm: Array, Kinf: Array, Qi: Array, Am: Array, q: Value,
    d: Value, p: Value, y: Value, rho: float, umin: float, umax: float, Nh: int
) -> tuple[Value, Value, Value, Value]:  # fmt: skip
    plant = PlantRows.of(g, A, Bm, Kinf, Qi, Am)
    controls, _ = admm_forward(g, plant, g.Unsqueeze(x0, [0]), rows_of(g, d, Nh - 1))
    u = g.Concat(*controls, axis=0)
    y_out, r = slack_and_dual(g, u, y, rho, umin, umax)
    last = g.Slice(p, [Nh - 1], [Nh], [0])
    terms = admm_backward(g, plant, rows_of(g, q, Nh), last, rows_of(g, r, Nh - 1))
    feedforward, costates = terms
    return u, g.Concat(*feedforward, axis=0), g.Concat(*costates, axis=0), y_out


def regulated_plant(draw: Draw) -> dict[str, np.ndarray]:
    """A stable plant with the matrices that TinyMPC precomputes for it.

    Gain and inverse Hessian belong to the costs x^T x and (1 + rho) u^T u, so that the iterations
    converge.
    """
    n, m, rho = draw.size("n"), draw.size("m"), draw.sizes["rho"]
    A = stable_dynamics(0.95)(draw, draw.spec("A"))
    Bm = draw.rng("Bm").standard_normal((n, m)) / np.sqrt(n)
    Kinf, Qi, P = np.zeros((m, n)), np.eye(m), np.eye(n)
    for _ in range(200):
        Qi = np.linalg.inv((1 + rho) * np.eye(m) + Bm.T @ P @ Bm)
        Kinf = Qi @ Bm.T @ P @ A
        P = np.eye(n) + A.T @ P @ (A - Bm @ Kinf)
    return {"A": A, "Bm": Bm, "Kinf": Kinf, "Qi": Qi, "Am": A - Bm @ Kinf}


@pattern("tinympc_solve", draw={"q": activations(1.0, spread=1.0)})
def tinympc_solve(
    x0: Array, A: Array, Bm: Array, Kinf: Array, Qi: Array, Am: Array, q: Array, rho: float,
    umin: float, umax: float, It: int
) -> tuple[Array, Array]:  # fmt: skip
    Nh, m = len(q), Bm.shape[1]
    u, d, p, y = np.zeros((Nh - 1, m)), np.zeros((Nh - 1, m)), q, np.zeros((Nh - 1, m))
    for _ in range(It):
        u, d, p, y = admm_mpc_iteration(x0, A, Bm, Kinf, Qi, Am, q, d, p, y, rho, umin, umax)
    x = [x0]
    for k in range(Nh - 1):  # the states of the last forward pass
        x.append(A @ x[k] + Bm @ u[k])
    return u, np.stack(x)


tinympc_solve.inputs(regulated_plant)


@tinympc_solve.twin
def _(
    g: Graph, x0: Value, A: Array, Bm: Array, Kinf: Array, Qi: Array, Am: Array, q: Value,
    rho: float, umin: float, umax: float, m: int, Nh: int, It: int
) -> tuple[Value, Value]:  # fmt: skip
    plant = PlantRows.of(g, A, Bm, Kinf, Qi, Am)
    costs, start = rows_of(g, q, Nh), g.Unsqueeze(x0, [0])
    d = [g.value(np.zeros((1, m)))] * (Nh - 1)
    y = g.value(np.zeros((Nh - 1, m)))
    for iteration in range(It):
        controls, states = admm_forward(g, plant, start, d)
        u = g.Concat(*controls, axis=0)
        if iteration == It - 1:
            return u, g.Concat(*states, axis=0)
        y, r = slack_and_dual(g, u, y, rho, umin, umax)
        d, _ = admm_backward(g, plant, costs, costs[-1], rows_of(g, r, Nh - 1))
    raise AssertionError("at least one iteration")


@pattern(
    "riccati_recursion",
    draw={
        "A": stable_dynamics(0.99),
        "Bm": weights(gain=0.015),  # so weak a gain that the last iteration still counts
        "Qm": positive_definite,
        "Rm": positive_definite,
    },
    no_twin="ONNX has no linear solve",
)
def riccati_recursion(
    A: Array, Bm: Array, Qm: Array, Rm: Array, It: int
) -> tuple[Array, Array]:  # fmt: skip
    K, P = np.zeros(Bm.T.shape), Qm
    for _ in range(It):
        # The left-hand side is positive definite: a Cholesky factor serves.
        K = np.linalg.solve(Rm + Bm.T @ P @ Bm, Bm.T @ P @ A)
        P = Qm + A.T @ P @ (A - Bm @ K)
    return K, P
