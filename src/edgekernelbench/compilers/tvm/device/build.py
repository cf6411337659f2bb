"""From a module of device kernels to a folder: source, launch plans, manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgekernelbench.compilers.launch import LaunchPlan, PlanError, TooManyLaunches, calls
from edgekernelbench.compilers.tvm.device.rules import (
    DEVICE_COMPILER,
    HOST_CODE,
    LAUNCHES,
    WORK_GROUP,
)
from edgekernelbench.ir.diagnostics import Diagnostic, Rule
from edgekernelbench.targets.device import OpenClDevice
from edgekernelbench.targets.model import Target

SOURCE = "kernel.cl"
_LOG_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """Source of all kernels, and a plan a host function."""

    source: str
    plans: dict[str, LaunchPlan]


@dataclass(frozen=True, slots=True)
class DeviceBuild:
    """Exactly one of ``code`` and ``diagnostics`` is there."""

    code: DeviceCode | None
    diagnostics: tuple[Diagnostic, ...] = ()


def build_device(
    module: Any,
    names: Mapping[str, Sequence[str]],
    target: Target,
    folder: Path,
    splitter: Callable[[Any, Any], Any] | None = None,
) -> DeviceBuild:
    """Generates source and plans, and has the device's driver compile the source.

    Args:
        module: an IRModule whose host functions are the keys of ``names``.
        names: of each function's parameters, in order.
        target: with the ``opencl`` backend. Without a device at hand code is only generated.
        folder: receives the source and whatever the driver keeps of it.
        splitter: `split.split_loops` (the rule) or `split.split_blocks`.
    """
    from edgekernelbench.compilers.tvm.device import host, split
    from edgekernelbench.compilers.tvm.gpu.build import device_target

    tvm_target = device_target(target)
    parts = (splitter or split.split_loops)(module, tvm_target)
    try:
        plans = {n: host.read_host(parts.hosts[n], names[n], parts.kernels) for n in names}
    except host.Unreadable as error:
        return _refused(error.rule, error.message)
    if found := _too_long(plans):
        return DeviceBuild(None, found)
    code = DeviceCode(split.source(parts, tvm_target), plans)
    (folder / SOURCE).write_text(code.source)
    if target.opencl is not None:
        found = check_on_device(code, target.opencl, folder)
        if found:
            return DeviceBuild(None, found)
    return DeviceBuild(code)


def _refused(rule: Rule, message: str, notes: tuple[str, ...] = ()) -> DeviceBuild:
    return DeviceBuild(None, (Diagnostic(rule, message, None, (), notes),))


def _too_long(plans: Mapping[str, LaunchPlan]) -> tuple[Diagnostic, ...]:
    for plan in plans.values():
        try:
            for _ in calls(plan):
                pass
        except PlanError as error:
            rule = LAUNCHES if isinstance(error, TooManyLaunches) else HOST_CODE
            help = ("put the loop around the launches into one kernel",)
            return (Diagnostic(rule, str(error), None, help),)
    return ()


def check_on_device(code: DeviceCode, device: OpenClDevice, folder: Path) -> tuple[Diagnostic, ...]:
    """What the driver's compiler and the device's limits say against a program.

    Raises:
        DeviceMissing: the device is not there.
    """
    from edgekernelbench.compilers.tvm.device.opencl import DeviceProgram, ProgramRefused
    from edgekernelbench.targets.opencl import private_caches

    os.environ.update(private_caches(str(folder.resolve())))
    try:
        program = DeviceProgram(code.source, device.choice)
    except ProgramRefused as error:
        log = str(error).strip()
        lines = [line for line in log.splitlines() if "error" in line.lower()]
        message = (lines or log.splitlines() or ["no log"])[0].strip()[:300]
        help = ("nothing is wrong with the kernel; a different schedule may avoid the failure",)
        note = log[-_LOG_CHARACTERS:]
        return (Diagnostic(DEVICE_COMPILER, message, None, help, (note,)),)
    groups = {(call.kernel, call.group_size) for p in code.plans.values() for call in calls(p)}
    found = [_group(kernel, size, program, device) for kernel, size in sorted(groups)]
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def _group(
    kernel: str, size: tuple[int, int, int], program: Any, device: OpenClDevice
) -> Diagnostic | None:
    most, local = program.limits(kernel)
    items = size[0] * size[1] * size[2]
    shape = " x ".join(str(n) for n in size)
    if items > most or any(n > m for n, m in zip(size, device.work_items, strict=True)):
        limits = " x ".join(str(n) for n in device.work_items)
        message = f"groups of {shape} work items in {kernel}; the device runs {most} ({limits})"
    elif local > device.local_bytes:
        message = f"{local} bytes of local memory in {kernel}; a group has {device.local_bytes}"
    else:
        return None
    help = ("bind smaller extents to threads, or cache less in shared memory",)
    return Diagnostic(WORK_GROUP, message, None, help)
