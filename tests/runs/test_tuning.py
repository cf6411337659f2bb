"""Dealing out searches to slots of cores. Searches are made up; processes and the pack are real."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.baselines import packs, schedules
from edgekernelbench.baselines.schedules import CpuSchedule, identity
from edgekernelbench.baselines.tuning import Errand, Progress, TrialFile
from edgekernelbench.compilers.tvm.tuning.search import Trial
from edgekernelbench.runs import tuning
from edgekernelbench.runs.tuning import Result, TuneConfig, Tuned
from edgekernelbench.suite import Workload
from edgekernelbench.suite.find import find_subset
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.placement import Core, Slot

TASKS: list[Workload] = list(find_subset("agent"))[:6]
TARGET = host_target().model_copy(update={"threads": 2})
BUSY_S = 0.15


def key(number: int) -> str:
    return f"{number:016x}"


def schedule(errand: Errand, wanted: int, slot: str) -> str:
    """Found on a slot that is kept in ``reason``."""
    made = CpuSchedule(
        function=errand.function,
        name=errand.name,
        workload=errand.workload,
        arch=schedules.arch_of(TARGET),
        cpu=schedules.cpu_of(TARGET),
        host="h",
        vector_bits=256,
        threads=2,
        compiler=schedules.compiler_version(),
        trials=wanted,
        wanted=wanted,
        guide="random",
        reason=slot,
    )
    return made.model_dump_json()


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def meet(folder: Path, count: int) -> None:
    """Waits until so many processes are here at once."""
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < deadline, "the others do not come"
        time.sleep(0.01)


class Scene:
    """Sixteen cores, made-up plans of the tasks, and what the searches told.

    Attributes:
        plans: by number of the task: numbers of functions, or a reason; None crashes.
        crashing, late: numbers of functions whose search crashes, or ends before all is measured.
        together: searches that must run at once before any ends.
        told, ended: what the run said.
    """

    def __init__(self, folder: Path) -> None:
        self.pack = folder / "pack.jsonl"
        self.plans: dict[int, Any] = {}
        self.crashing: set[int] = set()
        self.late: set[int] = set()
        self.together = 1
        self.told: list[Progress] = []
        self.ended: list[Tuned] = []

    def plan(self, workload: Workload, config: TuneConfig, _slot: Slot, _say: Any) -> Any:
        found = self.plans[TASKS.index(workload)]
        if isinstance(found, list):
            rows = [Errand(workload.id, key(n), f"f{n}", config.trials) for n in found]
            return [asdict(row) for row in rows]
        return crash() if found is None else found

    def search(
        self, _workload: Any, errand: Errand, known: Any, _config: Any, parts: Path,
        _turn: Path, deadline: float, slot: Slot, say: Callable[[Any], None],
    ) -> Any:  # fmt: skip
        number = int(errand.function, 16)
        began = time.monotonic()
        time.sleep(BUSY_S if number not in self.late else deadline - began + 0.01)
        meet(self.pack.parent / "meeting", self.together)
        if number in self.crashing:
            crash()
        file = TrialFile(parts, identity(errand.function, TARGET))
        file.begin(0, [Trial(None, 1.0)])
        assert known is None or known.wanted < errand.wanted
        where = f"{AFFINITY[-1]} {began} {time.monotonic()}"
        say(asdict(Progress(errand.workload, errand.name, 7, errand.wanted, 7, 1.0, "searching")))
        return schedule(errand, 5 if number in self.late else errand.wanted, where)

    def run(self, tasks: int, **changes: Any) -> Result:
        config = TuneConfig(tuple(TASKS[:tasks]), TARGET, self.pack, 8)
        return tuning.tune(replace(config, **changes), self.told.append, self.ended.append)

    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """Of each slot, by its processors: begin and end of its searches."""
        found: dict[str, list[tuple[float, float]]] = {}
        for one in packs.read_pack(self.pack):
            cpus, _, times = one.reason.partition("] ")
            began, end = map(float, times.split())
            found.setdefault(cpus + "]", []).append((began, end))
        return {cpus: sorted(spans) for cpus, spans in found.items()}


AFFINITY: list[list[int]] = []


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path)
    monkeypatch.setenv("EDGEKERNELBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tuning, "_preload", lambda: None)
    monkeypatch.setattr(tuning, "_plan", made.plan)
    monkeypatch.setattr(tuning, "_search", made.search)
    monkeypatch.setattr(tuning, "host_cores", lambda: tuple(Core((n,)) for n in range(16)))
    # There are no sixteen processors here: children note what they would be bound to.
    monkeypatch.setattr(os, "sched_setaffinity", lambda _pid, cpus: AFFINITY.append(sorted(cpus)))
    yield made
    AFFINITY.clear()


def states(result: Result) -> list[str]:
    return [task.state for task in result.tasks]


def test_eight_pairs_of_cores_work_side_by_side(scene: Scene) -> None:
    scene.plans = {n: list(range(8 * n, 8 * n + 8)) for n in range(4)}
    scene.together = 8
    result = scene.run(4)
    assert result.slots == 8 and states(result) == ["tuned"] * 4
    assert result.trials == 32 * 7
    spans = scene.spans()
    assert set(spans) == {f"[{n}, {n + 1}]" for n in range(0, 16, 2)}
    assert sum(map(len, spans.values())) == 32
    for own in spans.values():  # one at a time on a pair
        assert all(end <= later for (_, end), (later, _) in pairwise(own))


def test_the_number_of_slots_can_be_chosen(scene: Scene) -> None:
    scene.plans = {0: list(range(6))}
    assert scene.run(1, jobs=2).slots == 2
    assert len(scene.spans()) == 2


def test_a_function_of_several_tasks_is_searched_once_and_little_tasks_come_first(
    scene: Scene,
) -> None:
    scene.plans = {0: [1, 2, 3], 1: [1], 2: [3, 4]}
    result = scene.run(3, jobs=1)
    assert states(result) == ["tuned"] * 3
    assert [int(s.function, 16) for s in packs.read_pack(scene.pack)] == [1, 3, 4, 2]
    assert [task.workload for task in scene.ended] == [TASKS[n].id for n in (1, 2, 0)]


def test_what_the_pack_holds_is_not_searched_again(scene: Scene) -> None:
    scene.plans = {0: [1, 2], 1: [2, 3]}
    scene.run(1)
    before = scene.pack.read_text()
    parts = scene.pack.with_name("pack.jsonl.parts")
    TrialFile(parts, identity(key(1), TARGET)).begin(0, [Trial(None, 1.0)])  # of a killed run
    assert scene.run(1).trials == 0 and scene.pack.read_text() == before
    assert not parts.exists()
    assert scene.run(2).trials == 7
    assert scene.pack.read_text().startswith(before)
    assert scene.run(2, trials=9).trials == 3 * 7


def test_a_crash_costs_one_function(scene: Scene) -> None:
    scene.plans = {0: [1, 2], 1: [2, 3]}
    scene.crashing = {1}
    result = scene.run(2)
    assert states(result) == ["failed", "tuned"]
    assert result.tasks[0].message == "f1: the process crashed"
    assert {int(s.function, 16) for s in packs.read_pack(scene.pack)} == {2, 3}
    scene.crashing = set()
    assert states(scene.run(2)) == ["tuned", "tuned"]


def test_tasks_that_cannot_be_planned(scene: Scene) -> None:
    scene.plans = {0: "no operator", 1: None, 2: [1]}
    result = scene.run(3)
    assert states(result) == ["unavailable", "failed", "tuned"]
    assert [task.message for task in result.tasks] == ["no operator", "the process crashed", ""]


def test_time_runs_out(scene: Scene) -> None:
    """A search that ended early is kept with its trials, and gone on with later."""
    scene.plans = {0: [1], 1: [2, 3]}
    scene.late = {1}
    result = scene.run(2, jobs=1, minutes=3 / 60)
    assert states(result) == ["unfinished"] * 2
    (kept,) = packs.read_pack(scene.pack)
    assert kept.wanted == 5
    assert [*scene.pack.with_name("pack.jsonl.parts").iterdir()]
    scene.late = set()
    assert states(scene.run(2)) == ["tuned"] * 2
    assert not scene.pack.with_name("pack.jsonl.parts").exists()
