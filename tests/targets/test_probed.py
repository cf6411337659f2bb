"""What a probe writes is a profile that finds its device again, with what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.peak_gpu import cpu_products, gpu_products
from edgekernelbench.ir.check import check_text
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets import cuda, opencl
from edgekernelbench.targets.cuda import CudaDevice
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Bandwidth, Peaks
from edgekernelbench.targets.profiles.load import parse_profile
from edgekernelbench.targets.profiles.write import (
    check_file,
    probed_name,
    profile_text,
    write_profile,
)
from edgekernelbench.targets.registry import find_target
from tests.targets.test_opencl import MALI

H200 = CudaDevice(
    uuid="GPU-1", name="NVIDIA H200", driver="CUDA 13.0", arch="sm_90", units=132, clock_mhz=1980,
    memory_clock_mhz=3201, memory_bytes=150_000_000_000, l2_bytes=60 << 20, shared_bytes=48 << 10,
    shared_optin_bytes=227 << 10, max_threads=1024, block=(1024, 1024, 64),
    grid=(2**31 - 1, 65535, 65535), warp=32, integrated=False,
)  # fmt: skip
PEAKS = Peaks(
    target="x", cpu="x", threads=1, flops_f32=1e12, ops_bytes=2e12, ops={"f64": 3e11},
    spread={"f32 product 64x64": 0.02, "triad 64 KiB": 0.5},
    bandwidths=(Bandwidth(working_set=65536, bytes_per_s=5e10, kernel="triad 64 KiB"),),
    kernels={"f32 product 64x64": 1e12, "f32 product 128x64": 9e11, "s8 product 64x64": 2e12,
             "f64 product 64x64": 3e11, "triad 64 KiB": 5e10},
    date="2026-01-01T00:00:00+00:00", method="kernels",
)  # fmt: skip


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGEKERNELBENCH_PROFILES", str(tmp_path))
    monkeypatch.setattr(opencl, "devices", lambda: (MALI,))
    monkeypatch.setattr(cuda, "devices", lambda: cuda._Found(devices=(H200,), missing=""))
    monkeypatch.setattr(cuda.toolkit, "toolkit_for", lambda arch: None)


@pytest.mark.parametrize("name", ["llvm", "opencl", "cuda"])
def test_a_probed_profile_is_its_device(name: str, tmp_path: Path) -> None:
    target = find_target(name)
    probed = probed_name(target)
    write_profile(profile_text(target, PEAKS, probed), tmp_path / f"{probed}.yaml")
    again = find_target(probed)
    assert again.name == f"probed-{name}" and not again.unreachable
    for field in set(Target.model_fields) - {"name", "peaks", "gpu"}:
        assert getattr(again, field) == getattr(target, field), field
    assert (again.gpu and again.gpu.max_threads) == (target.gpu and target.gpu.max_threads)
    found = {peak.of: (peak.rate, peak.spread, peak.source) for peak in again.peaks}
    assert found == {
        "bandwidth": (5e10, 0.5, "measured"),
        "f32": (1e12, 0.02, "measured"),
        "s8": (2e12, None, "measured"),
        "f64": (3e11, None, "measured"),
    }


def test_names_of_probed_devices_are_names_of_profiles() -> None:
    target = find_target("opencl:arm mali")
    assert probed_name(target) == "probed-opencl-arm-mali"
    parse_profile(profile_text(target, PEAKS, probed_name(target)), "x")
    with pytest.raises(UsageError, match="E707"):
        profile_text(target, PEAKS, "No Name")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written") as raised:
        write_profile("x", tmp_path / "file" / "y.yaml")
    assert "--out" in raised.value.help


@pytest.mark.parametrize("name", ["cuda", "opencl", "cuda-sm_87", "adreno-730", "llvm"])
def test_the_measuring_products_are_legal(name: str) -> None:
    target = find_target(name)
    made = list(cpu_products(target) if target.gpu is None else gpu_products(target))
    dtypes = {task.dtype for _, task, _ in made}
    assert {"f16", "f64"} - set(target.dtypes_missing) <= dtypes
    assert not dtypes & set(target.dtypes_missing)
    for label, _, text in made:
        checked = check_text(text)
        assert checked.kernel is not None and checked.program is not None, label
        lowered = lower(checked.kernel, checked.program, target)
        assert lowered.module is not None, (label, lowered.diagnostics)


def test_what_is_in_the_way_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    check_file(tmp_path / "new" / "my-board.yaml")
    assert list((tmp_path / "new").iterdir()) == []
    for name in ("My Board.yaml", "-board.yaml", f"{'b' * 65}.yaml"):
        with pytest.raises(UsageError, match="has the name of its file"):
            check_file(tmp_path / name)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        check_file(tmp_path / "file" / "board.yaml")
