"""OpenCL source of a kernel: what the driver's compiler and the device's limits say against it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekernelbench.compilers.launch import calls
from edgekernelbench.compilers.tvm.device.build import (
    DeviceBuild,
    DeviceCode,
    over_limit,
    refused_by_compiler,
    shape,
)
from edgekernelbench.compilers.tvm.device.rules import WORK_GROUP
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.targets.device import OpenClDevice
from edgekernelbench.targets.model import Gpu, Target

SOURCE = "kernel.cl"


def finish(code: DeviceCode, target: Target, folder: Path) -> DeviceBuild:
    """Writes the source, and has the driver compile it where the target has a device.

    Raises:
        DeviceMissing: the device is not there.
    """
    groups = _groups(code)
    code = _with_group_sizes(code, groups)
    (folder / SOURCE).write_text(code.source)
    if target.gpu is not None and (found := tuple(_over_limits(code, groups, target.gpu))):
        return DeviceBuild(None, found)
    if target.opencl is not None:
        found = check_on_device(code, target.opencl, folder)
        if found:
            return DeviceBuild(None, found)
    return DeviceBuild(code, library=SOURCE, kernels=code.bills())


_Size = tuple[int, int, int]
_Group = tuple[str, _Size]


def _groups(code: DeviceCode) -> list[_Group]:
    """Each kernel with each size of its groups."""
    return sorted({(one.kernel, one.group_size) for p in code.plans.values() for one in calls(p)})


def _with_group_sizes(code: DeviceCode, groups: Sequence[_Group]) -> DeviceCode:
    """Tells the driver's compiler how large groups are: otherwise it may use so many registers that
    the device runs small ones only (256 on NVIDIA's)."""
    sizes: dict[str, set[_Size]] = {}
    for kernel, size in groups:
        sizes.setdefault(kernel, set()).add(size)
    source = code.source
    for kernel, (size, *others) in sizes.items():
        if not others:
            required = f"__attribute__((reqd_work_group_size({', '.join(map(str, size))})))"
            source = re.sub(rf"__kernel (?=void {kernel}\()", f"__kernel {required} ", source)
    return replace(code, source=source)


def _over_limits(code: DeviceCode, groups: Sequence[_Group], gpu: Gpu) -> Iterator[Diagnostic]:
    """What the target's limits say, before any driver is asked."""
    for kernel, size in groups:
        if math.prod(size) > gpu.max_threads:
            limits = f"the device runs {gpu.max_threads}"
            message = f"groups of {shape(size)} work items in {kernel}; {limits}"
            yield over_limit(WORK_GROUP, message)
    for kernel, local in code.shared.items():
        if local > gpu.shared_bytes:
            message = f"{local} bytes of local memory in {kernel}; a group has {gpu.shared_bytes}"
            yield over_limit(WORK_GROUP, message)


def check_on_device(code: DeviceCode, device: OpenClDevice, folder: Path) -> tuple[Diagnostic, ...]:
    """What the driver's compiler and the device's limits say against a program.

    Raises:
        DeviceMissing: the device is not there.
    """
    from edgekernelbench.compilers.tvm.device.bound import ProgramRefused
    from edgekernelbench.compilers.tvm.device.opencl import OpenClProgram
    from edgekernelbench.targets.opencl import private_caches

    os.environ.update(private_caches(str(folder.resolve())))
    try:
        program = OpenClProgram(code.source, device.choice)
    except ProgramRefused as error:
        return (refused_by_compiler(str(error)),)
    found = [_group(kernel, size, program, device) for kernel, size in _groups(code)]
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def _group(kernel: str, size: _Size, program: Any, device: OpenClDevice) -> Diagnostic | None:
    most, local = program.limits(kernel)
    items = size[0] * size[1] * size[2]
    if items > most or any(n > m for n, m in zip(size, device.work_items, strict=True)):
        limits = f"the device runs {most} ({shape(device.work_items)})"
        message = f"groups of {shape(size)} work items in {kernel}; {limits}"
    elif local > device.local_bytes:
        message = f"{local} bytes of local memory in {kernel}; a group has {device.local_bytes}"
    else:
        return None
    return over_limit(WORK_GROUP, message)
