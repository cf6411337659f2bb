"""Attempts that share a device: who measures is alone on the machine."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from edgekernelbench.agents.base import Budget, Device, Task
from edgekernelbench.agents.leka.layers import Patch
from edgekernelbench.agents.leka.screen import Screen, Screened
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.records.schema import Spent
from edgekernelbench.runs.bench import Bench, Stopped
from edgekernelbench.suite import load_suite
from tests.agents.leka.support import SOFTMAX, TARGET
from tests.agents.leka.support import Bench as Checks
from tests.factories import correct

WORKLOAD = load_suite().workloads["softmax_last__02"]
PATIENCE = 20.0


class Session:
    """Measures for as long as it is told to."""

    def __init__(self) -> None:
        self.measuring, self.go_on = threading.Event(), threading.Event()

    def evaluate(self, _text: str) -> Evaluation:
        self.measuring.set()
        assert self.go_on.wait(PATIENCE)
        self.measuring.clear()
        return correct("w", {}, None)

    def close(self) -> None: ...


class Machine:
    """An evaluator with one session and a lock that other processes see."""

    def __init__(self, folder: Path) -> None:
        self.only = Session()
        self.lock = FileLock(folder / "device.lock")

    def session(self, _task: Any) -> Session:
        return self.only

    def device_lock(self) -> FileLock:
        return self.lock


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def bench_of(machine: Any) -> Bench:
    return Bench(machine)


class Clock:
    """Of a budget."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_interpreted_waits_for_a_measurement(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The screen of one attempt, while another one's kernel is timed."""
    overlapped: list[bool] = []

    def watched(*args: Any) -> Any:
        overlapped.append(machine.only.measuring.is_set())
        return interpret(*args)

    monkeypatch.setattr("edgekernelbench.agents.leka.screen.interpret", watched)
    bench, asking = bench_of(machine), threading.Event()
    device = Checks(0).device()

    def hold() -> AbstractContextManager[float]:
        asking.set()
        return bench.hold()

    device.hold = hold
    kernel = parse(WORKLOAD.canonical()).kernel
    assert kernel is not None
    found: list[Any] = []
    screen = Screen(Task(WORKLOAD, TARGET), device, None)
    other = (Patch("compute", SOFTMAX),)
    measures = threading.Thread(target=bench.evaluate, args=(WORKLOAD, "text"))
    screens = threading.Thread(target=lambda: found.append(screen.patch(kernel, other)))
    measures.start()
    assert machine.only.measuring.wait(PATIENCE)
    screens.start()
    assert asking.wait(PATIENCE)
    screens.join(0.3)
    assert screens.is_alive() and not overlapped
    machine.only.go_on.set()
    for thread in (measures, screens):
        thread.join(PATIENCE)
    assert isinstance(found[0], Screened) and overlapped and not any(overlapped)


def test_while_the_device_is_held_nobody_measures_here_or_elsewhere(machine: Machine) -> None:
    bench = bench_of(machine)
    machine.only.go_on.set()
    measures = threading.Thread(target=bench.evaluate, args=(WORKLOAD, "text"))
    with bench.hold():
        measures.start()
        measures.join(0.3)
        assert measures.is_alive() and not machine.only.measuring.is_set()
        with pytest.raises(Timeout):
            FileLock(machine.lock.lock_file).acquire(timeout=0)
    measures.join(PATIENCE)
    assert not measures.is_alive() and not machine.lock.is_locked


def test_waiting_for_that_is_not_the_attempts_time() -> None:
    clock = Clock()

    class Waited:
        def __enter__(self) -> float:
            clock.now += 7
            return 7.0

        def __exit__(self, *_: object) -> None: ...

    budget = Budget(Spent(), clock)
    device = Device(lambda _text: correct("w", {}, None), budget, hold=Waited)
    with device.still():
        clock.now += 2
    assert budget.seconds == 2 and not device.broken


def test_a_closed_bench_is_held_and_reports_for_nobody(machine: Machine) -> None:
    bench = bench_of(machine)
    bench.close()
    with pytest.raises(Stopped), bench.hold():
        raise AssertionError("not reached")
    with pytest.raises(Stopped):
        bench.reports(["text"], Any)  # pyright: ignore[reportArgumentType]
    assert not machine.lock.is_locked


def test_what_fails_in_between_is_the_agents_and_lets_go(machine: Machine) -> None:
    bench = bench_of(machine)
    device = Device(lambda _text: correct("w", {}, None), Budget(Spent()), hold=bench.hold)
    with pytest.raises(ZeroDivisionError), device.still():
        raise ZeroDivisionError
    assert not device.broken and not machine.lock.is_locked
    bench.close()
    with pytest.raises(Stopped), device.still():
        raise AssertionError("not reached")
    assert device.broken
