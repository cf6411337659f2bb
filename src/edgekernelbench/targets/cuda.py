"""NVIDIA devices of this machine: which there are, which one a target name means, its profile.

The driver is asked in a process of its own (`cuda_probe`): loading it starts threads.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

from pydantic import BaseModel, ConfigDict, ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.targets import toolkit
from edgekernelbench.targets.device import CudaDevice
from edgekernelbench.targets.gpus import CUDA_REGISTERS, CUDA_REGISTERS_BLOCK
from edgekernelbench.targets.model import Gpu, Target

PASSED_ON = (
    *toolkit.PASSED_ON,
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
)
"""Variables that decide which devices there are, and where their libraries lie."""

_PROBE_SECONDS = 120
_CODE_ONLY = "without a device code is still generated: --target cuda-sm_87"
DRIVER = f"install NVIDIA's driver for the device; {_CODE_ONLY}"


class _Found(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    devices: tuple[CudaDevice, ...]
    missing: str


def find_cuda(name: str) -> Target:
    """The profile behind ``cuda`` (the first device), ``cuda:N`` (device N, from 0) or
    ``cuda:WORDS`` (the first device whose name contains the words, in any case).

    Raises:
        UsageError: driver, device or compiler are missing, or the compiler does not know the
            device's architecture.
    """
    _, _, words = name.partition(":")
    usable = _usable(name)
    device = _named(words, usable) if words else usable[0]
    toolkit.toolkit_for(device.arch)
    return _profile(name, device)


def list_cuda() -> tuple[Target, ...]:
    """A profile a device: ``cuda`` is the first, the others go by their numbers.

    Raises:
        UsageError: driver, device or compiler are missing.
    """
    usable = _usable("cuda")
    names = ["cuda", *(f"cuda:{number}" for number in range(1, len(usable)))]
    for device in usable:
        toolkit.toolkit_for(device.arch)
    return tuple(_profile(name, device) for name, device in zip(names, usable, strict=True))


def _usable(name: str) -> tuple[CudaDevice, ...]:
    found = devices()
    if not found.devices:
        raise UsageError(f"target {name!r}: {found.missing}", DRIVER)
    return found.devices


def _named(words: str, found: tuple[CudaDevice, ...]) -> CudaDevice:
    listed = "there are: " + "; ".join(f"{n}: {d.name}" for n, d in enumerate(found))
    if words.isascii() and words.isdigit():
        if int(words) < len(found):
            return found[int(words)]
        raise UsageError(f"there is no CUDA device {words}", listed)
    if not re.fullmatch(r"[\w .()+-]+", words):
        raise UsageError(f"target 'cuda:{words}' has characters that no name has", listed)
    wanted = words.lower().split()
    for device in found:
        if all(word in device.name.lower() for word in wanted):
            return device
    raise UsageError(f"no CUDA device is called {words!r}", listed)


@functools.lru_cache(maxsize=1)
def devices() -> _Found:
    """Every device of the driver, in its order, or why there are none.

    Raises:
        UsageError: asking the driver fails.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", "edgekernelbench.targets.cuda_probe"],
            capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False,
            env={**os.environ},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"the CUDA driver does not answer within {_PROBE_SECONDS} s",
            "a device that hangs must be reset (nvidia-smi --gpu-reset), or the machine restarted",
        ) from None
    try:
        return _Found.model_validate_json(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValidationError):
        tail = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(f"asking the CUDA driver fails: {tail[:300]}", DRIVER) from None


def _profile(name: str, device: CudaDevice) -> Target:
    return Target(
        name=name,
        backend="cuda",
        description=f"{device.name}, {device.arch}, driver for {device.driver}",
        threads=device.units,
        vector_bits=128,
        cache_bytes=(device.l2_bytes,) if device.l2_bytes else (),
        memory_bytes=device.memory_bytes,
        gpu=Gpu(
            arch=device.arch,
            max_threads=device.max_threads,
            shared_bytes=device.shared_bytes,
            warp=device.warp,
            units=device.units,
            shared_optin_bytes=device.shared_optin_bytes,
            registers=CUDA_REGISTERS,
            registers_block=CUDA_REGISTERS_BLOCK,
        ),
        cuda=device,
    )
