"""Careless kernels against which inputs are drawn: each fails on every seed that is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from edgekernelbench.suite import load_suite
from edgekernelbench.suite.model import Arrays, Workload

SEEDS = range(3)


def fails(id: str, careless: Callable[[Workload, Arrays], Mapping[str, np.ndarray]]) -> bool:
    """Whether the careless answer is wrong under every seed."""
    workload = load_suite().workloads[id]
    verdicts = []
    for seed in SEEDS:
        inputs = workload.inputs(seed)
        truth = workload.truth(inputs, cache=False)
        answer = careless(workload, inputs)
        with np.errstate(invalid="ignore"):
            stored = {s.name: answer[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
        verdicts.append(workload.compare(stored, truth).passed)
    return not any(verdicts)


def bound(workload: Workload, **bindings: float) -> Workload:
    rebound = {**workload.bindings, **bindings}
    return Workload.model_validate({**workload.model_dump(), "bindings": rebound})


@pytest.mark.parametrize(
    "id",
    [
        "batch_norm_inference_nchw__02",
        "layer_norm_last__02",
        "rms_norm__01",
        "rms_norm__03",
    ],
)
def test_a_forgotten_eps(id: str) -> None:
    assert fails(id, lambda task, inputs: bound(task, eps=0.0).truth(inputs, cache=False))


def half_up(x: Any, *_: Any, **__: Any) -> np.ndarray:
    return np.floor(np.asarray(x) + 0.5)


def half_away(x: Any, *_: Any, **__: Any) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


@pytest.mark.parametrize("rounding", [half_up, half_away])
@pytest.mark.parametrize(
    "id",
    [
        "dynamic_quant_linear__02",
        "qadd_s8__01",
        "qdepthwise_bias_requant_s8_nhwc__01",
        "qlinear_bias_requant_s8__01",
        "quantize_q8_0_blocks__02",
        "requantize_s32_s8_float__01",
    ],
)
def test_halves_rounded_otherwise(
    id: str, rounding: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(task: Workload, inputs: Arrays) -> Arrays:
        with monkeypatch.context() as patched:
            patched.setattr(np, "rint", rounding)
            return task.truth(inputs, cache=False)

    assert fails(id, careless)


def bare_softmax(x: np.ndarray) -> np.ndarray:
    """In float32, and without the maximum taken off."""
    with np.errstate(all="ignore"):
        e = np.exp(x.astype(np.float32))
        return np.nan_to_num(e / e.sum(axis=-1, keepdims=True)).astype(np.float64)


@pytest.mark.parametrize(
    ("id", "module"),
    [
        ("separable_self_attention__02", "attention.linear"),
    ],
)
def test_a_bare_softmax(id: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = import_module(f"edgekernelbench.suite.patterns.{module}")

    def careless(task: Workload, inputs: Arrays) -> Arrays:
        with monkeypatch.context() as patched:
            patched.setattr(where, "softmax", bare_softmax)
            return task.truth(inputs, cache=False)

    assert fails(id, careless)


@pytest.mark.parametrize("id", ["nms_static__01", "nms_static__02"])
def test_suppression_at_the_threshold(id: str) -> None:
    def careless(task: Workload, inputs: Arrays) -> Arrays:
        lower = float(task.bindings["thr"]) * (1 - 1e-9)
        return bound(task, thr=lower).truth(inputs, cache=False)

    assert fails(id, careless)


@pytest.mark.parametrize(("id", "axis"), [("argmax_last__01", 1), ("argmax_last__02", 1)])
def test_largest_of_a_cheaper_copy(id: str, axis: int) -> None:
    def careless(_: Workload, inputs: Arrays) -> Arrays:
        levels = np.rint(inputs["x"] * (127 / np.abs(inputs["x"]).max()))
        return {"y": levels.argmax(axis=axis)}

    assert fails(id, careless)


def test_a_maximum_that_skips_small_rows() -> None:
    def careless(_: Workload, inputs: Arrays) -> Arrays:
        size = np.square(inputs["x"].astype(np.float64)).mean(axis=1)
        return {"y": inputs["x"][size > np.quantile(size, 0.1)].max(axis=0)}

    assert fails("reduce_max_axis0__01", careless)


@pytest.mark.parametrize("id", ["riccati_recursion__01", "riccati_recursion__02"])
def test_fewer_iterations(id: str) -> None:
    def careless(task: Workload, inputs: Arrays) -> Arrays:
        return bound(task, It=4 * task.sizes["It"] // 5).truth(inputs, cache=False)

    assert fails(id, careless)


@pytest.mark.parametrize(
    ("id", "output"),
    [
        ("gated_linear_recurrence__01", "y"),
        ("gated_linear_recurrence__02", "y"),
        ("lstm_sequence__01", "h"),
        ("lstm_sequence__02", "h"),
        ("lstm_sequence__03", "h"),
    ],
)
def test_a_sequence_in_pieces(id: str, output: str) -> None:
    """The second half from a zero state, a quarter of the steps before it."""

    def careless(task: Workload, inputs: Arrays) -> Arrays:
        right = task.truth(inputs, cache=False)[output]
        half, begin = len(right) // 2, len(right) // 4
        later = inputs["x"].copy()
        later[:begin] = 0
        pieces = task.truth({**inputs, "x": later}, cache=False)[output]
        return {output: np.concatenate([right[:half], pieces[half:]])}

    assert fails(id, careless)


@pytest.mark.parametrize("id", ["tridiagonal_solve_batched__01", "tridiagonal_solve_batched__02"])
def test_a_system_in_pieces(id: str) -> None:
    """Eight rows beyond its half taken for all that count."""

    def careless(task: Workload, inputs: Arrays) -> Arrays:
        right = task.truth(inputs, cache=False)["x"]
        half = right.shape[1] // 2
        cut = {name: inputs[name].copy() for name in "ac"}
        cut["a"][:, half - 8] = cut["c"][:, half - 9] = 0
        pieces = task.truth({**inputs, **cut}, cache=False)["x"]
        return {"x": np.concatenate([right[:, :half], pieces[:, half:]], axis=1)}

    assert fails(id, careless)


@pytest.mark.parametrize("id", ["dtw_distance__01", "dtw_distance__02"])
def test_paths_near_the_diagonal(id: str) -> None:
    """Only a quarter of the frames to either side of it."""

    def careless(_: Workload, inputs: Arrays) -> Arrays:
        a, b = inputs["a"].astype(np.float64), inputs["b"].astype(np.float64)
        M, (Q, N, _unused) = len(a), b.shape
        D = np.full((M + 1, N + 1, Q), np.inf)
        D[0, 0] = 0
        for i in range(M):
            for j in range(max(0, i - N // 4), min(N, i + N // 4 + 1)):
                before = np.minimum(np.minimum(D[i, j + 1], D[i + 1, j]), D[i, j])
                D[i + 1, j + 1] = np.abs(a[i] - b[:, j]).sum(axis=1) + before
        return {"y": D[M, N]}

    assert fails(id, careless)


def test_weights_in_half_their_bytes() -> None:
    def careless(task: Workload, inputs: Arrays) -> Arrays:
        W = inputs["W"].astype(np.float16).astype(np.float32)
        return task.truth({**inputs, "W": W}, cache=False)

    assert fails("lm_head_argmax__01", careless)


def test_a_path_is_in_no_order() -> None:
    steps = np.diff(load_suite().workloads["mppi_bicycle_control__01"].inputs(0)["ref"][:, 0])
    assert min((steps < 0).mean(), (steps > 0).mean()) > 0.2
