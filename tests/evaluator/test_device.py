"""Every status that a kernel can get on an OpenCL device, on real processes and PoCL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.evaluator import device_session
from tests.evaluator.device_fakes import BODIES, N
from tests.evaluator.device_session import check_status, device_evaluator
from tests.evaluator.fakes import FakeTask

CASES = [
    *device_session.CASES,
    ("segfault", "crashed", "SIG"),
    ("syntax", "compile_error", "E614: "),
    ("large_groups", "over_budget", "E613: groups of 8192 x 1 x 1 work items in k"),
    ("forever", "compile_error", "unusable artifact: one call needs more than 50000 launches"),
]


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("opencl")


@pytest.fixture(scope="module")
def evaluator(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    cache = tmp_path_factory.mktemp("cache")
    with device_evaluator(target, cache, compile_s=12, run_s=5.0) as made:
        yield made


@pytest.fixture(scope="module")
def session(evaluator: Evaluator) -> Iterator[TaskSession]:
    with evaluator.session(FakeTask()) as made:
        yield made


def test_correct(session: TaskSession) -> None:
    result = session.evaluate("correct")
    assert result.status == "correct", result.message
    performance = result.performance
    assert performance is not None and result.resources is not None
    assert performance.timer == "opencl profiling events, first start to last end/child"
    assert 0 < performance.low_us <= performance.median_us <= performance.high_us
    figures = performance.device
    assert figures is not None and figures.launches == 1
    assert figures.kernels_us > 0 and figures.host_us > 0
    assert performance.replicas == 2 and performance.launch_overhead_us > 0
    assert result.resources.peak_rss_bytes is None
    assert result.baselines["slow"].status == "measured" and result.best == "slow"
    assert result.baselines["wrong"].status == "wrong_result"
    assert result.environment is not None and result.environment.network == "isolated"
    assert "pyopencl" in result.environment.versions
    assert Evaluation.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(("text", "status", "says"), CASES)
def test_status_and_the_next_is_right(
    session: TaskSession, text: str, status: str, says: str
) -> None:
    check_status(session, text, status, says)


def test_all_bodies_are_used() -> None:
    tried = {text for text, _, _ in CASES}
    assert set(BODIES) - tried == {"canary", "twice", "correct", "shared"} and N == 4096
