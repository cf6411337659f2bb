"""Every status that a kernel can get on an NVIDIA device that is there, with the bodies of
`device_fakes` in CUDA: what hangs or faults costs one evaluation, and the next is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import machinery
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.evaluator.fakes import QUICK, FakeTask

HERE = "tests.evaluator.device_fakes"

CASES = [
    ("wrong", "wrong_result", "y"),
    ("nothing", "wrong_result", "y"),
    ("half", "wrong_result", "y"),
    ("behind", "wrong_result", "wrote 4 byte(s) outside of its arrays, behind 'y'"),
    ("before", "wrong_result", "outside of its arrays, behind 'x'"),
    ("input", "wrong_result", "changed its input 'x'"),
    ("space", "crashed", "wrote outside of its workspace 't'"),
    ("loop", "run_timeout", "time limit"),
    ("segfault", "crashed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("syntax", "compile_error", "E614: "),
    ("large_groups", "compile_error", "E613: blocks of 8192 x 1 x 1 threads in k"),
    ("forever", "compile_error", "unusable artifact: one call needs more than 50000 launches"),
    ("steps", "correct", ""),
    ("shared", "correct", ""),
]


@pytest.fixture(scope="module")
def target() -> Target:
    try:
        return find_target("cuda")
    except UsageError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="module")
def session(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskSession]:
    plugs = replace(
        machinery(target.threads, target.device),
        build_kernel=f"{HERE}:build_kernel",
        canary="#canary",
        baselines={"slow": f"{HERE}:SLOW", "wrong": f"{HERE}:WRONG"},
    )
    effort = {"run_s": 5.0, "total_run_s": 120, "replicas": 2, "baselines": ("slow", "wrong")}
    settings = QUICK.model_copy(update=effort)
    cache = tmp_path_factory.mktemp("cache")
    with (
        Evaluator(target, settings=settings, cache_dir=cache, machinery=plugs) as evaluator,
        evaluator.session(FakeTask()) as made,
    ):
        yield made


def test_correct(session: TaskSession) -> None:
    result = session.evaluate("correct")
    assert result.status == "correct", result.message
    performance = result.performance
    assert performance is not None and performance.device is not None
    assert 0.5 < performance.median_us < 100 and performance.device.launches == 1
    assert result.baselines["slow"].status == "measured" and result.best == "slow"
    assert result.baselines["wrong"].status == "wrong_result"


@pytest.mark.parametrize(("text", "status", "says"), CASES)
def test_status_and_the_next_is_right(
    session: TaskSession, text: str, status: str, says: str
) -> None:
    result = session.evaluate(text)
    assert result.status == status, (result.status, result.message)
    assert says in result.message
    after = session.evaluate("correct")
    assert after.status == "correct", after.message
