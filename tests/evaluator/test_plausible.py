"""The roofline gate lets everything honest pass, and stops what cannot be."""

from __future__ import annotations

from edgekernelbench.evaluator.parentclock import Clocks
from edgekernelbench.evaluator.plausible import implausible, least_seconds
from edgekernelbench.targets.peaks import Bandwidth, Peaks
from tests.evaluator.fakes import FakeTask

PEAKS = Peaks(
    target="llvm",
    cpu="test",
    threads=2,
    flops_f32=200e9,
    bandwidths=(
        Bandwidth(working_set=32 << 10, bytes_per_s=200e9, kernel="copy"),
        Bandwidth(working_set=256 << 20, bytes_per_s=20e9, kernel="copy"),
    ),
    kernels={},
    date="2025-01-01",
    method="none",
)


class BigTask(FakeTask):
    flops = 10**9
    bytes_touched = 10**7


def verdict(us: float, parent: float | None = None, task: FakeTask | None = None) -> str:
    clocks = None if parent is None else Clocks(parent, us)
    return implausible(task or BigTask(), us, 1.0, clocks, PEAKS, 1.1)


def test_roofline() -> None:
    least, roof = least_seconds(BigTask(), PEAKS)
    assert roof == "operations" and least == 10**9 / 4 / 200e9
    assert verdict(least * 1e6) == ""
    assert verdict(least * 1e6 / 1.05) == ""
    assert "roofline (operations" in verdict(least * 1e6 / 1.2)


def test_winograd_and_saturated_peaks_pass() -> None:
    """2.25 times fewer operations at the very peak."""
    assert verdict(10**9 / 2.25 / 200e9 * 1e6) == ""


def test_narrow_dtypes_are_bound_by_bytes_only() -> None:
    task = BigTask()
    task.dtype = "s8"  # type: ignore[misc]
    assert verdict(20.0, task=task) == ""


def test_a_call_is_not_cheaper_than_a_call() -> None:
    assert "a call alone costs" in verdict(0.2, task=FakeTask())


def test_parent_clock() -> None:
    task = FakeTask()
    assert verdict(100, parent=250, task=task) == ""
    assert "parent's" in verdict(100, parent=350, task=task)


def test_without_peaks_only_the_clocks_speak() -> None:
    assert implausible(BigTask(), 1.0, 1.0, None, None, 1.1) == ""


def test_bandwidth_by_working_set() -> None:
    assert PEAKS.bytes_per_s(1000) == 200e9
    assert PEAKS.bytes_per_s(10 << 20) == 200e9
    assert PEAKS.bytes_per_s(1 << 40) == PEAKS.memory_bytes_per_s == 20e9
