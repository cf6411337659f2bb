"""OpenCL devices of this machine: which there are, which one a target name means, its profile.

Drivers are asked in a process of their own (`opencl_probe`): loading one starts threads, and a
broken one takes its process down.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.device import CHECKER, POCL, OpenClDevice
from edgekernelbench.targets.model import Gpu, Target

PASSED_ON = ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH", "LD_LIBRARY_PATH")
"""Variables that say where drivers are: every process that uses one gets them."""

_DEVICES = TypeAdapter(tuple[OpenClDevice, ...])
_PROBE_SECONDS = 120
DRIVER = (
    "pip install pocl-binary-distribution (x86-64), or install pocl-opencl-icd or the driver of "
    "your device; OCL_ICD_VENDORS names the folder of its .icd file if it lies elsewhere"
)


def find_opencl(name: str) -> Target:
    """The profile behind ``opencl`` (PoCL, else the first device) or ``opencl:WORDS`` (the first
    device whose platform and name contain the words, in any case; ``opencl:mali``).

    Raises:
        UsageError: a package, a driver or the linker is missing, or no device has those words.
    """
    _, _, words = name.partition(":")
    usable = _usable(name)
    return _profile(name, _named(words, usable) if words else _first(usable))


def list_opencl() -> tuple[Target, ...]:
    """A profile a device: ``opencl`` is the default one, the others go by their words. Devices of
    one name cannot be told apart by words: the first of them stands for all.

    Raises:
        UsageError: a package, a driver or the linker is missing.
    """
    usable = _usable("opencl")
    first = _first(usable)
    others = [device for device in usable if device != first and device.index == 0]
    named = [_profile(f"opencl:{_words(device)}", device) for device in others]
    return (_profile("opencl", first), *named)


def _usable(name: str) -> tuple[OpenClDevice, ...]:
    usable = tuple(device for device in devices() if device.platform != CHECKER)
    if not usable:
        raise UsageError(f"target {name!r}: no OpenCL driver is installed", DRIVER)
    return usable


def _first(usable: tuple[OpenClDevice, ...]) -> OpenClDevice:
    return next((device for device in usable if device.platform == POCL), usable[0])


def _words(device: OpenClDevice) -> str:
    return re.sub(r"[^\w .()+-]+", " ", f"{device.platform} {device.name}").lower()


def _named(words: str, found: tuple[OpenClDevice, ...]) -> OpenClDevice:
    if not re.fullmatch(r"[\w .()+-]+", words):
        raise UsageError(f"target 'opencl:{words}' has characters that no name has", _listed(found))
    wanted = words.lower().split()
    for device in found:
        text = f"{device.platform} {device.name}".lower()
        if all(word in text for word in wanted):
            return device
    raise UsageError(f"no OpenCL device is called {words!r}", _listed(found))


def _listed(found: tuple[OpenClDevice, ...]) -> str:
    return "there are: " + "; ".join(f"{d.platform}: {d.name}" for d in found)


@functools.lru_cache(maxsize=1)
def devices() -> tuple[OpenClDevice, ...]:
    """Every device of every driver, in the drivers' order.

    Raises:
        UsageError: pyopencl is missing, or asking the drivers fails.
    """
    if importlib.util.find_spec("pyopencl") is None:
        raise UsageError("OpenCL needs the package pyopencl", "pip install pyopencl")
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-opencl-") as scratch:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "edgekernelbench.targets.opencl_probe"],
                capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False,
                env={**os.environ, **private_caches(scratch)},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"the OpenCL drivers do not answer within {_PROBE_SECONDS} s",
                "a device that hangs must be reset; OCL_ICD_VENDORS leaves its driver out",
            ) from None
    try:
        return _DEVICES.validate_json(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValidationError):
        tail = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(
            f"asking the OpenCL drivers fails: {tail[:300]}",
            "OCL_ICD_VENDORS names the folder of .icd files: leave the broken driver out",
        ) from None


def private_caches(folder: str) -> dict[str, str]:
    """Settings that keep what drivers compile in a folder of ours."""
    return {
        "POCL_CACHE_DIR": folder,
        "CUDA_CACHE_PATH": folder,
        "PYOPENCL_NO_CACHE": "1",
    }


def loader_settings() -> dict[str, str]:
    """Variables by which a program other than Python finds the drivers that pip installed beside
    pyopencl; it needs a libOpenCL.so.1 of the system. What the user has set stays."""
    found = importlib.util.find_spec("pyopencl")
    if found is None or found.origin is None or "OCL_ICD_VENDORS" in os.environ:
        return {}
    drivers = Path(found.origin).parent / ".libs"
    if not any(drivers.glob("*.icd")):
        return {}
    path = [str(drivers), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"OCL_ICD_VENDORS": str(drivers), "LD_LIBRARY_PATH": os.pathsep.join(path)}


def _profile(name: str, device: OpenClDevice) -> Target:
    if device.platform == POCL and shutil.which("ld") is None:
        raise UsageError(
            f"target {name!r}: PoCL links each kernel with 'ld', which is missing",
            "install binutils",
        )
    missing = {"f16": "cl_khr_fp16", "f64": "cl_khr_fp64"}
    return Target(
        name=name,
        backend="opencl",
        description=f"{device.name}, {device.platform}, driver {device.driver}",
        threads=_threads(device),
        vector_bits=32 * device.vector_floats,
        cache_bytes=(device.cache_bytes,) if device.cache_bytes else (),
        memory_bytes=device.global_bytes,
        buffer_bytes=device.alloc_bytes,
        dtypes_missing=tuple(d for d, e in missing.items() if e not in device.extensions),
        gpu=Gpu(
            max_threads=device.work_group,
            shared_bytes=device.local_bytes,
            warp=32 if "nvidia" in device.vendor.lower() else 1,
            units=device.compute_units,
        ),
        opencl=device,
    )


def _threads(device: OpenClDevice) -> int:
    from edgekernelbench.targets.host import physical_cores

    if not device.is_host_cpu:
        return device.compute_units
    return min(device.compute_units, physical_cores(os.sched_getaffinity(0)))
