"""Crashes, hangs, memory and exceptions of an input are caught, and a run goes on behind them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.engine import Batch, Finding, Store, run_batches


def crash() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "never"


def hang() -> str:
    while True:
        pass


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
    memory_bytes: int | None = 100 << 20

    def prepare(self) -> None:
        pass

    def text(self, seed: int) -> str:
        if seed == 77:
            raise ValueError("no text")
        return f"input {seed}"

    def check(self, text: str, seed: int) -> str:
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


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(Batch(0, 10))
    store.add(Batch(20, 25))
    with store.batches.open("a") as file:
        file.write('{"start": 25, "en')  # cut off while writing
    assert list(store.missing(40, 10)) == [(10, 20), (25, 35), (35, 40)]
    assert store.summary()["inputs"] == 15


def test_no_batch_begins_after_the_time_is_up() -> None:
    assert list(run_batches(Odd(), [(0, 10)], 1, seconds=0)) == []


def test_a_batch_cut_short_keeps_its_failures(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for batch in run(Odd({3: find})):
        store.add(batch)
    assert store.summary()["failures"] == {"wrong": 1}
    assert (tmp_path / "odd-3.ekir").read_text() == "input 3"
