"""Asks every OpenCL driver for its devices: a program that prints one JSON line."""

from __future__ import annotations

import json
from typing import Any


def describe() -> list[dict[str, Any]]:
    """What `edgekernelbench.targets.device.OpenClDevice` holds, a dictionary a device."""
    import pyopencl as cl

    return [
        {**_device(cl, platform, device), "index": index}
        for platform, device, index in numbered(cl)
    ]


def numbered(cl: Any) -> list[tuple[Any, Any, int]]:
    """Platform, device and its number among those of one name, of every device once: a driver
    may be registered twice.

    Args:
        cl: the module `pyopencl`.
    """
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as error:
        if "PLATFORM_NOT_FOUND_KHR" in str(error):
            return []
        raise
    found: dict[int, tuple[Any, Any, int]] = {}
    names: list[tuple[str, str]] = []
    for platform in platforms:
        for device in platform.get_devices():
            if device.int_ptr not in found:
                name = platform.name.strip(), device.name.strip()
                found[device.int_ptr] = platform, device, names.count(name)
                names.append(name)
    return list(found.values())


def _device(cl: Any, platform: Any, device: Any) -> dict[str, Any]:
    kinds = cl.device_type
    kind = next(
        (k for k in ("gpu", "accelerator", "cpu") if device.type & getattr(kinds, k.upper())),
        "other",
    )
    return {
        "platform": platform.name.strip(),
        "name": device.name.strip(),
        "vendor": device.vendor.strip(),
        "driver": device.driver_version.strip(),
        "version": device.version.strip(),
        "kind": kind,
        "compute_units": device.max_compute_units,
        "clock_mhz": device.max_clock_frequency,
        "global_bytes": device.global_mem_size,
        "alloc_bytes": device.max_mem_alloc_size,
        "cache_bytes": device.global_mem_cache_size,
        "local_bytes": device.local_mem_size,
        "work_group": device.max_work_group_size,
        "work_items": (*device.max_work_item_sizes, 1, 1)[:3],
        "align_bytes": max(1, device.mem_base_addr_align // 8),
        "timer_ns": device.profiling_timer_resolution,
        "vector_floats": max(1, device.preferred_vector_width_float),
        "extensions": sorted(device.extensions.split()),
    }


if __name__ == "__main__":
    print(json.dumps(describe()))
