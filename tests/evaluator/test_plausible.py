"""The roofline gate lets everything honest pass, and stops what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.evaluator.parentclock import Clocks
from edgekernelbench.evaluator.plausible import implausible, least_seconds
from edgekernelbench.targets import peaks as peaks_module
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Gpu, RatedPeak, Target
from edgekernelbench.targets.peaks import (
    Bandwidth,
    Peaks,
    device_peaks,
    proven_peaks,
    rated_peaks,
    store_peaks,
)
from edgekernelbench.targets.registry import find_target
from tests.evaluator.fakes import FakeTask, make_evaluator

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


CARD = Target(
    name="card", backend="cuda", description="a card", threads=8, vector_bits=128,
    cache_bytes=(1 << 20,), memory_bytes=1 << 30, gpu=Gpu(),
    peaks=(
        RatedPeak(of="bandwidth", rate=1e12, source="vendor"),
        RatedPeak(of="f32", rate=10e12, source="measured"),
    ),
)  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGEKERNELBENCH_CACHE", str(tmp_path))
    return tmp_path


def test_a_profile_gives_a_device_its_roofline(cache: Path) -> None:
    peaks = device_peaks(CARD)
    assert peaks is not None and peaks.flops_f32 == 10e12
    assert peaks.memory_bytes_per_s == 1e12 and peaks.bandwidths[-1].working_set == 2 << 20
    assert "measured, vendor" in peaks.method
    assert device_peaks(CARD.model_copy(update={"peaks": ()})) is None
    assert rated_peaks(CARD.model_copy(update={"peaks": CARD.peaks[:1]})) is None


def test_what_was_measured_on_a_device_counts_with_its_profile(cache: Path) -> None:
    measured = PEAKS.model_copy(update={"target": "card", "cpu": "a card", "threads": 8})
    store_peaks(CARD, measured)
    peaks = device_peaks(CARD)
    assert peaks is not None and peaks.method == measured.method
    assert peaks.flops_f32 == 10e12 and peaks.bytes_per_s(1 << 40) == 1e12
    other = CARD.model_copy(update={"description": "another card", "peaks": ()})
    assert device_peaks(other) is None
    assert peaks_module.load_peaks(other) is not None


def test_only_a_vendor_proves_what_a_device_cannot_do(cache: Path) -> None:
    """What default kernels reach on a device, a better kernel may exceed by far."""
    store_peaks(CARD, PEAKS.model_copy(update={"target": "card", "cpu": "a card", "threads": 8}))
    assert proven_peaks(CARD) is None, "its peak of f32 was measured"
    cited = CARD.peaks[1].model_copy(update={"source": "vendor"})
    by_vendor = CARD.model_copy(update={"peaks": (CARD.peaks[0], cited, CARD.peaks[1])})
    peaks = proven_peaks(by_vendor)
    assert peaks is not None and peaks.method == "figures of its profile (vendor)"


def test_a_device_that_is_the_host_is_held_against_the_host(cache: Path) -> None:
    pocl = find_target("opencl")
    store_peaks(pocl, PEAKS.model_copy(update={"cpu": pocl.description, "flops_f32": 1.0}))
    assert proven_peaks(pocl) is None
    store_peaks(host_target(), PEAKS)
    peaks = proven_peaks(pocl)
    assert peaks is not None and peaks.flops_f32 == PEAKS.flops_f32


def test_a_time_below_the_roofline_is_kept_and_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very kernel that is right: against a roof that says it cannot be so fast."""
    low = PEAKS.bandwidths[0].model_copy(update={"bytes_per_s": 1e6})
    slow = PEAKS.model_copy(update={"bandwidths": (low,), "flops_f32": 1e6})
    with make_evaluator(tmp_path) as evaluator:
        plain = evaluator.evaluate("correct", FakeTask())
        monkeypatch.setattr(evaluator, "_peaks", slow)
        monkeypatch.setattr(evaluator, "measure_peaks", lambda: False)
        found = evaluator.evaluate("correct", FakeTask())
    assert plain.performance is not None and plain.performance.roofline_us is None
    assert "peaks of fake are not measured" in plain.performance.roofline
    assert found.status == "implausible" and "roofline" in found.message
    assert found.quarantined is not None and found.quarantined.roofline_us is not None
    assert found.quarantined.median_us < found.quarantined.roofline_us
    assert "held against the peaks of llvm" in found.quarantined.roofline
