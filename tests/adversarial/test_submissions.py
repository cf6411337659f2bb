"""Hostile and broken kernel texts through the real compiler: each gets its own status, none
harms the next."""

from __future__ import annotations

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from tests.adversarial.tasks import Dense

TASK = Dense()
RIGHT = TASK.canonical()
DOT = "sum[k: K](X[i, k] * W[k, j])"

CASES = {
    # not a kernel
    "empty": ("", "invalid_ir"),
    "prose": ("I am sorry, I cannot write kernels.", "invalid_ir"),
    "python": ("import os; os.system('touch /tmp/owned')", "invalid_ir"),
    "deep": (TASK.kernel("Y[i, j] = " + "(" * 50_000 + "1" + ")" * 50_000), "invalid_ir"),
    "long": (TASK.kernel("Y[i, j] = " + " + ".join(["b[j]"] * 200_000)), "invalid_ir"),
    "minus": ("-" * 1_000_000, "invalid_ir"),
    "100 MB": ("a" * 100_000_000, "invalid_ir"),
    "lone surrogate": (RIGHT.replace("relu", "re\ud800lu"), "invalid_ir"),
    "surrogate in a comment": ("# \udfff\n" + TASK.kernel("Y[i, j] = 0"), None),
    "null bytes": (RIGHT.replace("relu", "re\0lu"), "invalid_ir"),
    # another interface
    "other dtype": (RIGHT.replace("Y: f32[M, N]", "Y: f16[M, N]"), "wrong_shape_or_dtype"),
    "other shape": (RIGHT.replace("Y: f32[M, N]", "Y: f32[N, M]"), None),
    "not const": (RIGHT.replace("W: const", "W:"), "wrong_shape_or_dtype"),
    "const input": (RIGHT.replace("X: f32", "X: const f32"), "wrong_shape_or_dtype"),
    "other size": (RIGHT.replace("M=32", "M=16"), None),
    "other name": (RIGHT.replace("b: const", "c: const").replace("b[j]", "c[j]"), "invalid_ir"),
    "extra output": (
        RIGHT.replace("-> (Y", "-> (Z: f32[1], Y").replace("compute {", "compute { Z[i] = 1"),
        "invalid_ir",
    ),
    # out of bounds
    "out of bounds": (TASK.kernel(f"Y[i, j] = {DOT} + b[j + 1]"), "invalid_ir"),
    "data index": (TASK.kernel("Y[i, j] = b[s32(X[i, 0])]"), "invalid_ir"),
    # cheats
    "zero": (TASK.kernel("Y[i, j] = 0"), "wrong_result"),
    "constant": (TASK.kernel("Y[i, j] = 0.1"), "wrong_result"),
    "nan": (TASK.kernel(f"Y[i, j] = {DOT} * (0.0 / 0.0)"), None),
    "no bias": (TASK.kernel(f"Y[i, j] = relu({DOT})"), "wrong_result"),
    "half the sum": (
        TASK.kernel("Y[i, j] = relu(sum[k: K//2](X[i, k] * W[k, j]) + b[j])"),
        "wrong_result",
    ),
    "last row unwritten": (
        TASK.kernel(f"Y[i, j] = relu({DOT} + b[j]) if i < M - 1 else 0"),
        "wrong_result",
    ),
    # resources
    "endless": (
        TASK.kernel(
            "seq t: 2000000000 { h: f32[t, j: N] = pad(h[t-1, j], b[j]) * 0.5 + X[0, 0] }\n"
            "Y[i, j] = h[1999999999, j]"
        ),
        None,
    ),
    "long loop": (
        TASK.kernel(
            "s[i: M, j: N] = sum[k: K, t: 100000, u: 1000](X[i, k] * W[k, j] * f32(t * u % 7))\n"
            "Y[i, j] = s[i, j]"
        ),
        "run_timeout",
    ),
    "huge stage": (
        TASK.kernel(
            "t[p: 30000, q: 30000] = X[p % M, q % K]\n"
            "u[p: 30000] = sum[q: 30000](t[p, 29999 - q] * t[29999 - p, q])\n"
            "Y[i, j] = u[i]",
            "schedule for cpu { loops t (p, q) }",
        ),
        "over_budget",
    ),
    "huge unroll": (
        TASK.kernel(
            "acc[i: M, j: N] = sum[k: K, t: 64](X[i, k] * W[k, j] * f32(t))\nY[i, j] = acc[i, j]",
            "schedule for cpu { loops acc (unroll i, unroll k, unroll t, unroll j) }",
        ),
        "compile_error",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_submission(evaluator: Evaluator, name: str) -> None:
    text, status = CASES[name]
    with evaluator.session(TASK) as session:
        result = session.evaluate(text)
        after = session.evaluate(RIGHT)
    print(name, result.status, result.message)
    assert result.status != "correct"
    assert result.status != "infra_error", result.message
    if status is not None:
        assert result.status == status, result.message
    assert result.performance is None
    assert after.status == "correct", after.message


def test_right(evaluator: Evaluator) -> None:
    result = evaluator.evaluate(RIGHT, TASK)
    assert result.status == "correct", result.message
