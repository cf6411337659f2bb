"""Crashes, hangs, memory and exceptions of an input are caught, and a run goes on behind them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fuzz.corpus import ROOT
from tests.fuzz.engine import Batch, Failure, Finding, Most, Progress, run_batches
from tests.fuzz.store import Store


def crash() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "never"


def hang() -> str:
    while True:
        pass


def wait_forever() -> str:
    time.sleep(1000)
    return "never"


def take_memory() -> str:
    return f"{len(bytearray(200 << 20))}"


def raise_key() -> str:
    raise KeyError("x")


def find() -> str:
    raise Finding("wrong", "by much")


@dataclass
class Odd:
    """A job that does what its table says for a seed, else nothing."""

    deeds: dict[int, Callable[[], str]] = field(default_factory=dict)
    name: str = "odd"
    batch: int = 10
    cpu_s: float = 0.3
    wall_s: float = 60
    memory_bytes: int | None = 100 << 20

    def prepare(self) -> None:
        pass

    def text(self, seed: int) -> str:
        if seed == 77:
            raise ValueError("no text")
        return f"input {seed}"

    def check(self, text: str, seed: int, most: Most) -> str:
        most.note("size", float(seed % 7), seed)
        assert text == f"input {seed}"
        return self.deeds.get(seed, lambda: "fine")()


def run(job: Odd, count: int = 20) -> list[Batch]:
    ranges = [(low, low + job.batch) for low in range(0, count, job.batch)]
    return sorted(run_batches(job, ranges, 2), key=lambda batch: batch.start)


def test_each_fault_is_kept_with_its_input() -> None:
    deeds = {2: crash, 4: hang, 5: take_memory, 11: raise_key, 13: find}
    batches = run(Odd(deeds))
    kinds = {f.seed: f.kind for batch in batches for f in batch.failures}
    assert kinds == {
        2: "crash SIGSEGV",
        4: "hang",
        5: "exception MemoryError in test_engine.py:take_memory",
        11: "exception KeyError in test_engine.py:raise_key",
        13: "wrong",
    }
    assert all(f.text == f"input {f.seed}" for batch in batches for f in batch.failures)
    assert sum(sum(batch.counts.values()) for batch in batches) == 20


def test_a_generator_that_fails_is_a_failure() -> None:
    (batch,) = run_batches(Odd(), [(77, 78)], 1)
    assert [failure.kind for failure in batch.failures] == ["generator"]


def test_what_waits_without_using_the_cpu_is_stalled() -> None:
    (batch,) = run_batches(Odd({1: wait_forever}, wall_s=1.5), [(0, 3)], 1)
    assert [(f.seed, f.kind) for f in batch.failures] == [(1, "stalled")]
    assert batch.counts == {"fine": 2, "failed": 1}


def test_a_crash_loses_no_count_and_no_measure() -> None:
    (batch,) = run_batches(Odd({7: crash}), [(0, 10)], 1)
    assert batch.counts == {"fine": 9, "failed": 1}
    assert batch.most.values["size"] == (6.0, 6)
    assert batch.most.values["process_mb"][0] > 5


def test_progress_is_whole_while_it_is_replaced() -> None:
    progress = Progress(5)
    assert (progress.seed, progress.state()) == (5, {})
    progress.save({"n": 1})
    progress._memory[16] = 255  # a child that dies while it writes the next state
    assert progress.state() == {"n": 1}
    progress.save({"n": 2})
    assert progress.state() == {"n": 2}
    with pytest.raises(ValueError, match="outcomes must be few"):
        progress.save({"n": "x" * 100_000})


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(Batch(0, 10), "a")
    store.add(Batch(20, 25), "a")
    with store.batches.open("a") as file:
        file.write('{"start": 25, "en')  # cut off while writing
    assert list(store.missing(40, 10)) == [(10, 20), (25, 35), (35, 40)]
    store.lock()
    store.add(Batch(25, 35), "b")
    assert list(store.missing(40, 10)) == [(10, 20), (35, 40)]
    summary = store.summary()
    assert (summary["inputs"], summary["revisions"]) == (25, {"a": 15, "b": 10})


def test_only_one_process_writes(tmp_path: Path) -> None:
    Store(tmp_path).lock()
    holder = Store(tmp_path)
    holder.lock()
    with pytest.raises(BlockingIOError):
        Store(tmp_path).lock()


def test_a_batch_that_is_run_again_replaces_the_one_before(tmp_path: Path) -> None:
    store = Store(tmp_path)
    broken = [Failure("odd", seed, "wrong", "", f"input {seed}") for seed in (3, 4)]
    store.add(Batch(0, 10, failures=broken), "a")
    store.add(Batch(10, 20), "a")
    assert store.failed() == [(0, 10)] and store.summary()["failures"] == {"wrong": [3, 4]}
    store.add(Batch(0, 10, failures=broken[1:]), "b")
    summary = store.summary()
    assert (summary["inputs"], summary["failures"]) == (20, {"wrong": [4]})
    assert not store.input_file(3).exists() and store.input_file(4).read_text() == "input 4"


KILLED = """
import os, sys, tests.fuzz.engine as engine
from tests.fuzz.test_engine import Odd, wait_forever
print(os.getpid(), flush=True)
def slow():
    print(os.getpid(), flush=True)
    return wait_forever()
list(engine.run_batches(Odd({0: slow}), [(0, 1)], 1))
"""


def test_children_die_with_a_parent_that_is_killed() -> None:
    run_ = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert run_.stdout is not None
    parent, child = int(run_.stdout.readline()), int(run_.stdout.readline())
    os.kill(parent, signal.SIGKILL)
    run_.wait()
    for _ in range(100):
        if not Path(f"/proc/{child}").exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{child} lives on")


def test_no_batch_begins_after_the_time_is_up() -> None:
    assert list(run_batches(Odd(), [(0, 10)], 1, seconds=0)) == []


def test_a_batch_cut_short_keeps_its_failures(tmp_path: Path) -> None:
    store = Store(tmp_path / "odd")
    for batch in run(Odd({3: find})):
        store.add(batch, "a")
    assert store.summary()["failures"] == {"wrong": [3]}
    assert (tmp_path / "odd" / "odd-3.ekir").read_text() == "input 3"


def test_a_run_killed_in_the_middle_ends_as_one_that_was_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "parser", "--jobs", "1", "--count", "5000"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    subprocess.run([*command, "--out", str(whole)], check=True, capture_output=True, cwd=ROOT)
    cut = subprocess.Popen([*command, "--out", str(parts)], cwd=ROOT, start_new_session=True)
    batches = parts / "parser" / "batches.jsonl"
    while not (batches.exists() and batches.read_text().count("\n") >= 2):
        assert cut.poll() is None
        time.sleep(0.01)
    os.kill(cut.pid, signal.SIGKILL)
    cut.wait()
    before = Store(parts / "parser").summary()["inputs"]
    assert 0 < before < 5000
    subprocess.run([*command, "--out", str(parts)], check=True, capture_output=True, cwd=ROOT)
    found = [json.loads((out / "result.json").read_text()) for out in (whole, parts)]
    one, other = (result["parts"]["parser"] for result in found)
    assert one["inputs"] == other["inputs"] == 5000
    assert one["counts"] == other["counts"]
