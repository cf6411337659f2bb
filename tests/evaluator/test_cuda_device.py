"""Every status that a kernel can get on an NVIDIA device that is there, with the bodies of
`device_fakes` in CUDA: what hangs or faults costs one evaluation, and the next is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.evaluator import device_session
from tests.evaluator.device_session import check_status, device_evaluator
from tests.evaluator.fakes import FakeTask

CASES = [
    *device_session.CASES,
    ("segfault", "crashed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("syntax", "compile_error", "E614: "),
    ("large_groups", "over_budget", "E613: blocks of 8192 x 1 x 1 threads in k"),
    ("forever", "compile_error", "unusable artifact: one call needs more than 50000 launches"),
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
    cache = tmp_path_factory.mktemp("cache")
    with (
        device_evaluator(target, cache, run_s=5.0) as evaluator,
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
    check_status(session, text, status, says)
