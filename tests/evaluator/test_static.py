"""The header of a submission is compared with the task's, and the differences are explained."""

from __future__ import annotations

import pytest

from edgekernelbench.evaluator.static import Interface, check_text, static_check
from edgekernelbench.targets.gpus import opencl_target
from edgekernelbench.targets.host import host_target
from tests.adversarial.tasks import Dense

TASK = Dense()
RIGHT = TASK.canonical()


def test_right() -> None:
    result = static_check(RIGHT, TASK, host_target())
    assert result.ok and result.step == "lower" and result.diagnostics == ()
    assert set(result.seconds) == {"parse", "elaborate", "verify", "header", "lower"}
    assert result.kernel is not None and result.kernel.name == "dense"


def test_without_a_task_any_header_will_do() -> None:
    assert static_check(RIGHT.replace("M=32", "M=8")).ok


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("Y: f32[M, N]", "Y: f16[M, N]", ["E502"]),
        ("W: const", "W:", ["E502"]),
        ("M=32, K=48", "K=48, M=32", ["E501"]),
        ("M=32", "M=16", ["E502", "E502", "E503"]),
        ("N=64]", "N=64, P=2]", ["E501"]),
        ("kernel dense", "kernel mine", []),
    ],
)
def test_differences(old: str, new: str, codes: list[str]) -> None:
    text = RIGHT.replace(old, new)
    assert text != RIGHT
    result = check_text(text, Interface.of(TASK))
    assert [d.rule.code for d in result.diagnostics] == codes
    assert result.ok == (not codes)
    for diagnostic in result.diagnostics:
        assert diagnostic.span is not None
        assert diagnostic.help == (f"copy the task's header: {TASK.header()}",)


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("M=32, K=48", "K=48, M=32", "K"),
        ("N=64]", "N=64, P=2]", "P"),
        ("X: f32[M, K], W:", "XX: f32[M, K], W:", "XX"),
        ("-> (Y: f32[M, N])", "-> (Y: f32[M, N], Z: f32[M])", "Z"),
        (", b: const f32[N]", "", "kernel"),
    ],
)
def test_the_first_name_that_differs_is_underlined(old: str, new: str, marked: str) -> None:
    text = "# a task\n" + TASK.header().replace(old, new)
    text += " { compute { " + ("Z[i] = 0 " if marked == "Z" else "") + "Y[i, j] = W[0, j] } }"
    found = check_text(text, Interface.of(TASK)).diagnostics
    (diagnostic,) = (d for d in found if d.severity == "error")
    assert diagnostic.rule.code == "E501" and diagnostic.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == marked


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("", "parse"),
        (TASK.kernel("Y[i, j] = nonsense(X[i, 0])"), "elaborate"),
        (TASK.kernel("Y[i, j] = b[j + 1]"), "verify"),
    ],
)
def test_first_failing_step_is_named(text: str, step: str) -> None:
    result = static_check(text, TASK, host_target())
    assert not result.ok and result.step == step and result.diagnostics


def test_a_dtype_that_the_target_lacks_is_told_before_anything_runs() -> None:
    half = "kernel k(x: f16[8]) -> (y: f16[8]) { compute { y[i] = x[i] } }"
    target = opencl_target().model_copy(update={"dtypes_missing": ("f16",)})
    found = static_check(half, None, target).diagnostics
    assert [(d.rule.code, d.severity) for d in found] == [("E504", "warning")]
    assert "f16" in found[0].message
    assert static_check(half, None, opencl_target()).diagnostics == ()
