"""The sums of `benchmarks/throughput.py`, on rows made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import throughput
from tests.factories import baseline, correct


def _row(number: int, process: int, mib: float) -> dict[str, Any]:
    return {
        "number": number, "process": process, "workload": "a__01", "status": "correct",
        "seconds": 1.5, "waited": 0.5, "kernel": 0.1, "baselines": 0.2,
        "timings": {"total": 1.0, "build": 0.25}, "rss": int(mib * 2**20),
    }  # fmt: skip


def test_the_wait_for_the_device_is_not_counted() -> None:
    told = throughput.summary([_row(n, 1, 100) for n in range(4)])
    assert (told["evaluations"], told["a_minute"], told["median_seconds"]) == (4, 60.0, 1.0)
    assert (told["share_in_the_kernel"], told["share_in_baselines"]) == (0.1, 0.2)
    assert told["share_by_step"] == {"build": 0.25}


def test_memory_is_looked_at_process_by_process_once_it_is_warm() -> None:
    growing = [_row(n, 1, 100 + n * 0.01) for n in range(3 * throughput.WARM)]
    short = [_row(n, 2, 500) for n in range(5)]
    first, second = throughput.summary([*growing, *short])["memory"]
    assert first["mib_a_thousand"] == pytest.approx(10.0, rel=0.01)
    assert (second["mib_a_thousand"], second["last_mib"]) == (None, 500.0)


def test_time_in_kernels_is_that_of_counted_calls() -> None:
    found = correct("a__01", {"tvm": baseline(2.0, 1.9)}, "tvm")
    own, rivals = throughput.kernel_seconds(found)
    assert own == pytest.approx(8 * 10e-6) and rivals == 0.0


def test_every_task_has_had_its_turn_when_memory_is_looked_at() -> None:
    assert 0 < 2 * len(throughput.small_tasks()) * throughput.IN_A_ROW <= throughput.WARM
