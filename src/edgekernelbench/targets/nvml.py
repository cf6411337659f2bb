"""The state of an NVIDIA device, by the driver's management library. What it lacks is left out."""

from __future__ import annotations

import ctypes
import functools
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_TEMPERATURE_GPU = 0
_IDLE = 1  # nvmlClocksEventReasonGpuIdle: nothing holds it back, there is nothing to do


@functools.cache
def _library() -> Any:
    """The library, initialised; None where there is none (some boards have none)."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def _ask(uuid: str, name: str, kind: Any, *arguments: int) -> int | None:
    """One figure of a device; None where it cannot be had."""
    library, handle = _library(), c_void_p()
    if library is None or library.nvmlDeviceGetHandleByUUID(uuid.encode(), byref(handle)) != 0:
        return None
    value, function = kind(), getattr(library, name, None)
    if function is None or function(handle, *arguments, byref(value)) != 0:
        return None
    return value.value


def read_energy(uuid: str) -> float | None:
    """Joules that a device has taken since its driver was loaded; None where it does not count."""
    millijoules = _ask(uuid, "nvmlDeviceGetTotalEnergyConsumption", c_ulonglong)
    return None if millijoules is None else millijoules / 1e3


def read_state(uuid: str) -> dict[str, Any]:
    """``clock_mhz``, ``memory_clock_mhz``, ``temperature_c``, ``power_w`` and ``throttled`` (a bit
    mask of reasons) of a device, as far as they can be had."""
    ask = functools.partial(_ask, uuid)
    milliwatts = ask("nvmlDeviceGetPowerUsage", c_uint)
    reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", c_ulonglong)
    return {
        "clock_mhz": ask("nvmlDeviceGetClockInfo", c_uint, _SM_CLOCK),
        "memory_clock_mhz": ask("nvmlDeviceGetClockInfo", c_uint, _MEMORY_CLOCK),
        "temperature_c": ask("nvmlDeviceGetTemperature", c_uint, _TEMPERATURE_GPU),
        "power_w": None if milliwatts is None else milliwatts / 1e3,
        "throttled": None if reasons is None else reasons & ~_IDLE,
    }
