"""A target in the words and units of a profile."""

from __future__ import annotations

import pytest

from edgekernelbench.cli.targetform import rows_of
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.peaks import Bandwidth, Peaks
from edgekernelbench.targets.registry import find_target

PEAKS = Peaks(
    target="llvm", cpu="x", threads=2, flops_f32=2e11, ops_bytes=4e11, ops={"f16": 1e11},
    bandwidths=(Bandwidth(working_set=48 << 10, bytes_per_s=9e10, kernel="copy 48 KiB"),),
    kernels={}, date="2026-12-03T00:00:00", method="by kernels",
)  # fmt: skip


def shown(name: str, peaks: Peaks | None = None) -> list[str]:
    return [f"{key}: {value}" for key, value in rows_of(find_target(name), peaks)]


def test_a_gpu() -> None:
    lines = shown("jetson-orin-nano")
    assert "cores: 8 multiprocessors" in lines and "limit: 1024 threads a block" in lines
    assert "limit: 48 KiB of shared memory a block" in lines
    assert "peak: bandwidth: 102 GB/s, of the vendor" in lines
    assert "runs: code only: there is no transport to the device" in lines


def test_a_cpu_elsewhere() -> None:
    lines = shown("raspberry-pi-5")
    assert "cores: 4" in lines and "vector width: 128 bits" in lines
    assert "data caches: 64 KiB, 512 KiB, 2 MiB (the first level first)" in lines


@pytest.mark.parametrize("name", ["adreno-730", "cuda-sm_87"])
def test_nobody_is_told_to_probe_what_is_not_here(name: str) -> None:
    assert not any("devices probe" in line for line in shown(name))


def test_this_host_and_what_was_measured_on_it() -> None:
    assert "peaks: not measured: `ekb devices probe` does that" in shown("llvm")
    lines = shown("llvm", PEAKS)
    assert "runs: here" in lines and f"cores: {host_target().threads}" in lines
    assert "peak: bandwidth at 48 KiB (copy 48 KiB): 90 GB/s, measured 2026-12-03" in lines
    assert {
        "peak: f32: 200 Gop/s, measured 2026-12-03",
        "peak: s8: 400 Gop/s, measured 2026-12-03",
    } < set(lines)
