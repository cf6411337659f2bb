"""Asks the CUDA driver for its devices: a program that prints one JSON line."""

from __future__ import annotations

import json
from ctypes import c_int, c_size_t
from typing import Any

from edgekernelbench.targets.cuda_driver import Driver, DriverMissing, driver

# Numbers of CU_DEVICE_ATTRIBUTE_...: part of the driver's stable interface.
_THREADS, _WARP, _UNITS, _CLOCK, _L2 = 1, 10, 16, 13, 38
_BLOCK, _GRID, _SHARED, _SHARED_OPTIN = (2, 3, 4), (5, 6, 7), 8, 97
_MEMORY_CLOCK, _MAJOR, _MINOR, _INTEGRATED = 36, 75, 76, 18


def describe() -> dict[str, Any]:
    """``devices``: what `edgekernelbench.targets.device.CudaDevice` holds, a dictionary a device;
    ``missing``: why there are none, empty if there are."""
    try:
        cuda = driver()
    except DriverMissing as error:
        return {"devices": [], "missing": str(error)}
    version = cuda.made("cuDriverGetVersion", c_int)
    words = f"CUDA {version // 1000}.{version % 1000 // 10}"
    found = [_device(cuda, handle, words) for handle in cuda.devices()]
    return {"devices": found, "missing": "" if found else "the driver has no device"}


def _device(cuda: Driver, device: int, version: str) -> dict[str, Any]:
    def ask(number: int) -> int:
        return cuda.attribute(number, device)

    return {
        "uuid": cuda.uuid(device),
        "name": cuda.name(device),
        "driver": version,
        "arch": f"sm_{ask(_MAJOR)}{ask(_MINOR)}",
        "units": ask(_UNITS),
        "clock_mhz": ask(_CLOCK) // 1000,
        "memory_clock_mhz": ask(_MEMORY_CLOCK) // 1000,
        "memory_bytes": cuda.made("cuDeviceTotalMem_v2", c_size_t, device),
        "l2_bytes": ask(_L2),
        "shared_bytes": ask(_SHARED),
        "shared_optin_bytes": ask(_SHARED_OPTIN),
        "max_threads": ask(_THREADS),
        "block": [ask(number) for number in _BLOCK],
        "grid": [ask(number) for number in _GRID],
        "warp": ask(_WARP),
        "integrated": bool(ask(_INTEGRATED)),
    }


if __name__ == "__main__":
    print(json.dumps(describe()))
