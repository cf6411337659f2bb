"""Every status that a kernel can get on an OpenCL device, on real processes and PoCL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import Machinery, machinery
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.evaluator.device_fakes import BODIES, N
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
    ("segfault", "crashed", "SIG"),
    ("syntax", "compile_error", "E614: "),
    ("large_groups", "compile_error", "E613: groups of 8192 x 1 x 1 work items in k"),
    ("forever", "compile_error", "unusable artifact: one call needs more than 50000 launches"),
    ("steps", "correct", ""),
]


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("opencl")


@pytest.fixture(scope="module")
def plugs(target: Target) -> Machinery:
    return replace(
        machinery(target.threads, target.opencl),
        build_kernel=f"{HERE}:build_kernel",
        canary="#canary",
        baselines={"slow": f"{HERE}:SLOW", "wrong": f"{HERE}:WRONG"},
    )


@pytest.fixture(scope="module")
def evaluator(
    target: Target, plugs: Machinery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Evaluator]:
    settings = QUICK.model_copy(
        update={
            "compile_s": 12,
            "run_s": 5.0,
            "total_run_s": 120,
            "replicas": 2,
            "baselines": ("slow", "wrong"),
        }
    )
    cache = tmp_path_factory.mktemp("cache")
    with Evaluator(target, settings=settings, cache_dir=cache, machinery=plugs) as made:
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
    assert 0.1 < performance.low_us <= performance.median_us <= performance.high_us
    figures = performance.device
    assert figures is not None and figures.launches == 1
    assert 0 < figures.kernels_us <= performance.median_us * 3 and figures.host_us > 0
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
    result = session.evaluate(text)
    assert result.status == status, (result.status, result.message)
    assert says in result.message
    assert (result.performance is None) == (status != "correct")
    after = session.evaluate("correct")
    assert after.status == "correct", after.message


def test_all_bodies_are_used() -> None:
    tried = {text for text, _, _ in CASES}
    assert set(BODIES) - tried == {"canary", "twice", "correct", "shared"} and N == 4096
