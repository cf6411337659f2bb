"""The search on a device: candidates timed by launch plans on PoCL, results held to the CPU's."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.baselines import packs, tvm_tuned
from edgekernelbench.baselines.base import Recipe
from edgekernelbench.baselines.schedules import GpuSchedule, device_name
from edgekernelbench.baselines.tunable import Tunable, tunable
from edgekernelbench.baselines.tuning import Errand, Means, errands, search
from edgekernelbench.compilers.tvm.tuning.bench import Bench
from edgekernelbench.compilers.tvm.tuning.decide import decide
from edgekernelbench.compilers.tvm.tuning.forked import Declined, Place, Say, Servant
from edgekernelbench.compilers.tvm.tuning.graph import standalone
from edgekernelbench.compilers.tvm.tuning.search import Trial, as_json, replay
from edgekernelbench.errors import UsageError
from edgekernelbench.runs.tuning import TuneConfig, tune
from edgekernelbench.targets.gpus import cuda_target
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.placement import host_cores, slots
from edgekernelbench.targets.registry import find_target
from tests.baselines.tuned_worker import matmul


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("opencl")


@pytest.fixture
def means(target: Target, tmp_path: Path) -> Means:
    cores = host_cores()
    return Means(target, slots(cores, len(cores))[0], tmp_path / "parts", tmp_path / "turn")


@pytest.fixture
def bench(means: Means) -> Iterator[Bench]:
    with means.bench() as made:
        yield made


def module_of(target: Target) -> Any:
    task = tunable(matmul(), target)
    assert isinstance(task, Tunable)
    (function,) = task.functions.values()
    return standalone(function)


def bound(module: Any, spoil: bool = False) -> Trial:
    """A thread an element; the product in eight bits if so wished."""
    from tvm.s_tir import Schedule

    schedule: Any = Schedule(module)
    product, last = (schedule.get_sblock(name) for name in ("matmul", "compute"))
    if spoil:
        schedule.unsafe_set_dtype(product, 0, "int8")
    for block in (product, last):
        rows, columns = schedule.get_loops(block)[:2]
        schedule.bind(rows, "blockIdx.x")
        schedule.bind(columns, "threadIdx.x")
    return Trial(as_json(schedule.trace), 1.0)


def test_candidates_are_timed_and_refusals_are_reasons(target: Target, bench: Bench) -> None:
    module = module_of(target)
    good = replay(bound(module).trace, module).mod
    right, refused, again = bench.measure([good, module, good], None)
    assert right.error is None and 0 < right.value < 1e6 and again.error is None
    assert refused.value is None and refused.error
    (rough,) = bench.measure([good], right.value / 1e3)
    assert rough.value > 0


def test_the_fastest_with_the_results_of_the_cpu_is_chosen(target: Target, bench: Bench) -> None:
    module = module_of(target)
    wrong, right = bound(module, spoil=True), bound(module)
    decision = decide(module, [Trial(wrong.trace, 0.5), right], bench)
    assert decision.best is not None and decision.best.trace == right.trace and decision.checked
    decision = decide(module, [wrong], bench)
    assert decision.best is None and "wrong results" in decision.remarks[0]


def test_a_search_is_replayed(
    target: Target, means: Means, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = errands(matmul(), target, 2)
    assert isinstance(wanted, list)
    (errand,) = wanted
    assert isinstance(errand, Errand)
    found = search(matmul(), errand, None, means, lambda _told: None)
    assert isinstance(found, GpuSchedule) and found.device == device_name(target) and found.checked
    assert found.backend == "opencl" and found.driver and found.trials == 2
    told: dict[str, Recipe] = {}
    for name, changes in {"own": {}, "other": {"arch": "Mali", "device": "Mali"}}.items():
        pack, folder = tmp_path / f"{name}.jsonl", tmp_path / name
        pack.write_text(found.model_copy(update=changes).model_dump_json() + "\n")
        folder.mkdir()
        monkeypatch.setenv(packs.PACKS_VARIABLE, str(pack))
        recipe = tvm_tuned.BASELINE.prepare(matmul(), target, folder)
        assert isinstance(recipe, Recipe) and recipe.kind == "device-kernel"
        told[name] = recipe
    assert told["own"].scored is None and "transferred" not in told["own"].route
    assert told["other"].scored is False and "transferred from Mali" in told["other"].route


def test_without_a_device_there_is_nothing_to_measure_on(tmp_path: Path) -> None:
    config = TuneConfig((), cuda_target("sm_87"), tmp_path / "a.jsonl", 2)
    with pytest.raises(UsageError, match="measured on a device"):
        tune(config, lambda _told: None, lambda _ended: None)


def test_a_servant_goes_on_behind_what_ends_it() -> None:
    def answer(question: Any, say: Say) -> Any:
        match question:
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "fail":
                raise ValueError("broken")
            case "hang":
                time.sleep(60)
            case "slow":
                for _ in range(4):
                    time.sleep(0.3)
                    say(None)
            case "decline":
                raise Declined("no such thing")
        return [question, os.getpid()]

    servant = Servant(answer, Place(silence_s=0.8))
    try:
        first = servant.ask("a").value
        assert servant.ask("slow").value == ["slow", first[1]]
        assert servant.ask("decline").error == "no such thing"
        assert servant.ask("b").value == ["b", first[1]]
        assert servant.ask("crash").error == "the process crashed"
        second = servant.ask("c").value
        assert second[1] != first[1]
        assert servant.ask("fail").error == "ValueError: broken"
        assert servant.ask("hang").error == "no word for 0.8 s"
        assert servant.ask("d").value[0] == "d"
    finally:
        servant.close()
