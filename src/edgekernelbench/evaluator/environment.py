"""What the machine tells of itself; what it does not tell is None."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from edgekernelbench.evaluator.model import DeviceState, Environment
from edgekernelbench.targets.device import CudaDevice
from edgekernelbench.targets.model import Target

_PACKAGES = (
    "edgekernelbench", "apache-tvm", "apache-tvm-ffi", "numpy", "onnx", "onnxruntime",
    "pyopencl", "pocl-binary-distribution", "torch",
)  # fmt: skip
_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append((package, importlib.metadata.version(package)))
    return tuple(found)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide results."""
    return dict(_versions())


def toolchain(target: Target) -> dict[str, str]:
    """What builds kernels for a target, beside the packages: the C compiler of ``c``."""
    if target.backend != "c":
        return {}
    from edgekernelbench.targets.cc import find_compiler

    return {"cc": find_compiler().identity}


def observe(threads: int, network: str = "", more: Mapping[str, str] | None = None) -> Environment:
    """The state of this host now, for a record; ``more`` are versions of what is no package."""
    frequency = _number(_CPU / "scaling_cur_freq")
    temperature = _number(Path("/sys/class/thermal/thermal_zone0/temp"))
    return Environment(
        cpu=_cpu_name(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        threads=threads,
        governor=_text(_CPU / "scaling_governor"),
        frequency_mhz=None if frequency is None else frequency / 1e3,
        temperature_c=None if temperature is None else temperature / 1e3,
        load_average=os.getloadavg()[0],
        network=network,
        versions=versions() | dict(more or {}),
    )


def observe_device(device: CudaDevice | None) -> DeviceState | None:
    """The state of an NVIDIA device now."""
    if device is None:
        return None
    from edgekernelbench.targets.nvml import read_state

    return DeviceState(name=f"{device.name}, {device.driver}", **read_state(device.uuid))


@functools.cache
def _cpu_name() -> str:
    found = re.search(
        r"^(?:model name|Model)\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE
    )
    return found.group(1).strip() if found else platform.machine()


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _number(path: Path) -> float | None:
    try:
        return float(_text(path) or "")
    except ValueError:
        return None
