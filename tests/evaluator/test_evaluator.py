"""Every status that a kernel can get, on real processes and hostile libraries.

The "kernels" are C bodies (`child_fakes`), so that what the language forbids can be tried, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.session import TaskSession
from tests.evaluator.child_fakes import BODIES, N
from tests.evaluator.fakes import CARELESS, TARGET, FakeTask, make_evaluator, with_runner

CASES = [
    *CARELESS,
    ("zero", "wrong_result", "y"),
    ("nan", "wrong_result", "y"),
    ("cached", "wrong_result", "y"),
    ("gives_up", "wrong_result", "y"),
    ("segfault", "crashed", "SIGSEGV"),
    ("abort", "crashed", "SIGABRT"),
    ("exit", "crashed", "exit code 0"),
    ("late_crash", "crashed", "SIGABRT"),
    ("memory", "crashed", "SIGABRT"),
    ("loop", "run_timeout", "time limit"),
    ("garbage", "crashed", "out of form"),
    ("flood", "crashed", "out of form"),
    ("clock_from_the_future", "crashed", "times that cannot be"),
    ("forged_clock", "implausible", "parent's"),
    ("inputs_rewritten", "wrong_result", "outside of its arrays"),
    ("fork", "correct", ""),
    ("kill_parent", "correct", ""),
    ("chatty", "correct", ""),
    ("#crash", "compile_error", "SIGABRT"),
    ("#eat", "compile_error", "memory"),
    ("#bad_reply", "compile_error", "out of form"),
    ("#no_artifact", "compile_error", "unusable artifact"),
    ("#misfit", "wrong_shape_or_dtype", "'y' is f32(2048,)"),
    ("#huge", "over_budget", "workspace"),
    ("#syntax", "invalid_ir", "E100: what is this"),
    ("#f32", "compile_error", "has all of the task's dtypes"),
]


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with make_evaluator(tmp_path_factory.mktemp("cache")) as made:
        yield made


@pytest.fixture(scope="module")
def session(evaluator: Evaluator) -> Iterator[TaskSession]:
    with evaluator.session(FakeTask()) as made:
        yield made


def test_only_a_target_that_lacks_a_dtype_of_the_task_does_not_support_it(tmp_path: Path) -> None:
    target = TARGET.model_copy(update={"dtypes_missing": ("f32",)})
    with make_evaluator(tmp_path, target=target) as made, made.session(FakeTask()) as session:
        result = session.evaluate("#f32")
    assert result.status == "unsupported" and result.message == "no f32 here"


def test_correct(session: TaskSession) -> None:
    result = session.evaluate("correct")
    assert result.status == "correct", result.message
    performance = result.performance
    assert performance is not None and result.correctness is not None
    assert performance.low_us <= performance.median_us <= performance.high_us
    assert 0.1 < performance.median_us < 200
    assert performance.timer == "perf_counter_ns/child"
    assert performance.rounds >= 6 and len(performance.samples_us) >= performance.rounds
    assert performance.calls_per_sample > 1
    assert 6 <= len(performance.launch_overhead_readings_us) <= 9
    low, high = performance.launch_overhead_low_us, performance.launch_overhead_high_us
    assert low is not None and high is not None
    assert 0 < low <= performance.launch_overhead_us <= high
    assert result.correctness.checked_samples == 4
    assert result.correctness.checked_sets >= 1
    assert result.kernel_hash == "0" * 64
    assert result.resources is not None and result.resources.memory_bytes == 12 * N
    assert result.resources.first_call_us is not None
    assert result.environment is not None and result.environment.network == "isolated"
    assert result.timings["total"] >= result.timings["measure"] > 0
    assert Evaluation.model_validate_json(result.model_dump_json()) == result
    public = result.public()
    assert "seed" not in public and "samples_us" not in public["performance"]
    assert "launch_overhead_readings_us" not in public["performance"]


@pytest.mark.parametrize(("text", "status", "says"), CASES)
def test_status_and_the_next_is_right(
    session: TaskSession, text: str, status: str, says: str
) -> None:
    result = session.evaluate(text)
    assert result.status == status, (result.status, result.message)
    assert says in result.message
    assert (result.performance is None) == (status != "correct")
    assert (result.quarantined is None) == (status != "implausible")
    after = session.evaluate("correct")
    assert after.status == "correct", after.message


def test_all_bodies_are_used() -> None:
    tried = {text for text, _, _ in CASES}
    assert set(BODIES) - tried <= {"canary", "twice", "correct"}


def test_compile_timeout(tmp_path: Path) -> None:
    with make_evaluator(tmp_path, compile_s=0.5) as evaluator:
        result = evaluator.evaluate("#slow_compile", FakeTask())
    assert result.status == "compile_timeout", result.message


def test_run_time_allocation_failure_is_over_budget(tmp_path: Path) -> None:
    with make_evaluator(tmp_path, with_runner("RaisingRunner")) as evaluator:
        result = evaluator.evaluate("correct", FakeTask())
    assert result.status == "over_budget"
    assert "no workspace" in result.message


@pytest.mark.parametrize("broken", ["raises", "nan"])
def test_invalid_reference(evaluator: Evaluator, broken: str) -> None:
    result = evaluator.evaluate("correct", FakeTask(broken))
    assert result.status == "invalid_reference"
    assert "reference" in result.message


def test_broken_device_is_an_infra_error(tmp_path: Path) -> None:
    """A runner that cannot even be imported fails the canary, too."""
    with make_evaluator(tmp_path, with_runner("no_such_thing")) as evaluator:
        result = evaluator.evaluate("correct", FakeTask())
    assert result.status == "infra_error"
    assert "known to be good" in result.message


def test_server_that_cannot_start_is_an_infra_error(tmp_path: Path) -> None:
    from dataclasses import replace

    from edgekernelbench.evaluator.forkserver import ServerSpec
    from tests.evaluator.fakes import MACHINERY

    servers = {**MACHINERY.servers, "compile": ServerSpec("compile", ("not_there",), {})}
    with make_evaluator(tmp_path, replace(MACHINERY, servers=servers)) as evaluator:
        result = evaluator.evaluate("correct", FakeTask())
    assert result.status == "infra_error"


def test_unknown_baseline_and_foreign_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no baseline 'fastest'"):
        make_evaluator(tmp_path, baselines=("fastest",))


def test_inputs_are_secret_and_drawn_anew(evaluator: Evaluator) -> None:
    task = FakeTask()
    with evaluator.session(task) as session:
        first = session.evaluate("correct")
        second = session.evaluate("correct")
        session.redraw()
        third = session.evaluate("correct")
    assert first.seed is not None and second.seed is not None and third.seed is not None
    assert first.seed.input_seeds == second.seed.input_seeds
    assert (first.seed.pool_age, second.seed.pool_age, third.seed.pool_age) == (1, 2, 1)
    assert not set(first.seed.input_seeds) & set(third.seed.input_seeds)
    assert first.seed.const_seed != third.seed.const_seed
    assert len(set(first.seed.input_seeds)) == 3


def test_the_bill_of_an_evaluation(tmp_path: Path) -> None:
    with make_evaluator(tmp_path) as evaluator:
        bill = evaluator.evaluate("correct", FakeTask()).resources
    assert bill is not None and bill.facts is not None
    assert bill.memory_bytes and bill.memory_limit_bytes and bill.peak_rss_bytes is not None
    assert bill.build_seconds and bill.load_seconds and bill.first_call_us
    parts = bill.load_seconds + (bill.prepack_seconds or 0) + bill.first_call_us * 1e-6
    assert bill.first_run_seconds == pytest.approx(parts)
