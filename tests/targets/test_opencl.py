"""OpenCL devices by name, and what is said when something is missing."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.targets import opencl
from edgekernelbench.targets.device import POCL, OpenClDevice
from edgekernelbench.targets.registry import find_target, list_targets


def device(platform: str, name: str, **changed: Any) -> OpenClDevice:
    facts: dict[str, Any] = {
        "vendor": "V", "driver": "1", "version": "OpenCL 3.0", "kind": "gpu",
        "compute_units": 4, "clock_mhz": 800, "global_bytes": 1 << 31, "alloc_bytes": 1 << 30,
        "cache_bytes": 0, "local_bytes": 32 << 10, "work_group": 256,
        "work_items": (256, 256, 64), "align_bytes": 128, "timer_ns": 1, "vector_floats": 4,
        "extensions": ("cl_khr_fp16",),
    }  # fmt: skip
    return OpenClDevice(platform=platform, name=name, **{**facts, **changed})


MALI = device("ARM Platform", "Mali-G710")
CPU = device(POCL, "pthread", kind="cpu", extensions=("cl_khr_fp64",))
CHECKER = device("Oclgrind", "Oclgrind Simulator")


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", lambda: (CHECKER, MALI, CPU))


def test_pocl_is_the_default_here() -> None:
    target = find_target("opencl")
    assert target.opencl is not None and target.opencl.platform == POCL
    assert target.gpu is not None and target.gpu.max_threads >= 256
    assert "f16" in target.dtypes_missing and "f64" not in target.dtypes_missing


@pytest.mark.usefixtures("some")
def test_words_choose_a_device() -> None:
    assert find_target("opencl").opencl == CPU
    target = find_target("opencl:arm MALI")
    assert target.opencl == MALI and target.name == "opencl:arm MALI"
    assert target.dtypes_missing == ("f64",)
    assert (target.threads, target.gpu and target.gpu.units) == (4, 4)


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize("name", ["opencl:adreno", "opencl:oclgrind", "opencl:a/b"])
def test_no_such_device_says_which_there_are(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_target(name)
    assert "ARM Platform: Mali-G710" in raised.value.help and "Oclgrind" not in raised.value.help


@pytest.mark.usefixtures("some")
def test_listed_names_are_found() -> None:
    listing = list_targets()
    assert [t.name for t in listing.targets] == [
        "llvm",
        "c",
        "opencl",
        "opencl:arm platform mali-g710",
    ]
    assert [find_target(t.name) for t in listing.targets[1:]] == list(listing.targets[1:])
    assert not [line for line in listing.missing if line.startswith("opencl")]


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", lambda: (CHECKER,))
    with pytest.raises(UsageError, match="no OpenCL driver is installed") as raised:
        find_target("opencl")
    assert "pip install pocl-binary-distribution" in raised.value.help
    assert list_targets().missing[0].startswith("opencl: target 'opencl': no OpenCL driver")


@pytest.mark.usefixtures("some")
def test_no_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl.shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="'ld', which is missing") as raised:
        find_target("opencl")
    assert raised.value.help == "install binutils"
    assert find_target("opencl:mali").opencl == MALI


def test_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    opencl.devices.cache_clear()
    monkeypatch.setattr(opencl.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs the package pyopencl"):
        find_target("opencl")


@pytest.mark.parametrize(
    ("code", "printed", "says"),
    [
        (-11, "", "exit code -11"),
        (1, "", "RuntimeError: no luck"),
        (0, "[{}]", "exit code 0"),
    ],
)
def test_drivers_that_fail(
    monkeypatch: pytest.MonkeyPatch, code: int, printed: str, says: str
) -> None:
    opencl.devices.cache_clear()
    stderr = "Traceback\nRuntimeError: no luck\n" if code == 1 else ""
    died = subprocess.CompletedProcess([], code, printed, stderr)
    monkeypatch.setattr(opencl.subprocess, "run", lambda *a, **k: died)
    with pytest.raises(UsageError, match=f"asking the OpenCL drivers fails: {says}"):
        opencl.devices()
    died.stdout = "[]"
    assert opencl.devices() == ()
    opencl.devices.cache_clear()
