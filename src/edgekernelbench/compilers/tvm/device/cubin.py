"""CUDA source of a kernel to machine code, and what the architecture's limits say against it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from math import prod
from pathlib import Path

from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.compilers.launch import Call, calls
from edgekernelbench.compilers.tvm.device import nvcc
from edgekernelbench.compilers.tvm.device.build import (
    DeviceBuild,
    DeviceCode,
    over_limit,
    refused_by_compiler,
    shape,
)
from edgekernelbench.compilers.tvm.device.rules import GRID, WORK_GROUP
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.targets.model import Gpu, Target
from edgekernelbench.targets.toolkit import Toolkit, find_toolkit, toolkit_for

# Of every architecture from sm_30 on.
_BLOCK = (1024, 1024, 64)
_GRID = (2**31 - 1, 65535, 65535)
FEW_BLOCKS = 2
"""Of a multiprocessor, that get all the registers they ask for."""
_BOUNDS = re.compile(r"__launch_bounds__\((\d+)\) (\w+)\(")


def finish(code: DeviceCode, target: Target, folder: Path) -> DeviceBuild:
    """Writes the source, and compiles it for the target's architecture. For a target without a
    device that is left out where no nvcc knows the architecture.

    Raises:
        UsageError: the target has a device, and no nvcc for it.
    """
    assert target.gpu is not None and target.gpu.arch is not None
    code = replace(code, source=resident(code, target.gpu))
    (folder / nvcc.SOURCE).write_text(code.source)
    toolkit = _toolkit(target, target.gpu.arch)
    if toolkit is None:
        known = code.bills()
        if found := _over_limits(code, target, known):
            return DeviceBuild(None, found)
        return DeviceBuild(code, library=nvcc.SOURCE, kernels=known)
    try:
        bills = nvcc.compile_source(folder, target.gpu.arch, toolkit)
    except nvcc.CompilerRefused as error:
        return DeviceBuild(None, (refused_by_compiler(str(error)),))
    if found := _over_limits(code, target, bills):
        return DeviceBuild(None, found)
    return DeviceBuild(code, library=nvcc.CUBIN, kernels=bills)


def resident(code: DeviceCode, gpu: Gpu) -> str:
    """The source with what the assembler must know of small grids: how many blocks a
    multiprocessor gets at all. Else it spills registers to make room for blocks that never come.
    """
    most: dict[str, int] = {}
    for plan in code.plans.values():
        for call in calls(plan):
            most[call.kernel] = max(most.get(call.kernel, 0), prod(call.groups))

    def bounds(found: re.Match[str]) -> str:
        threads, name = found.groups()
        blocks = -(-most.get(name, 0) // gpu.units)
        least = f", {blocks}" if 0 < blocks <= FEW_BLOCKS else ""
        return f"__launch_bounds__({threads}{least}) {name}("

    return _BOUNDS.sub(bounds, code.source)


def _toolkit(target: Target, arch: str) -> Toolkit | None:
    if target.cuda is not None:
        return toolkit_for(arch)
    toolkit = find_toolkit()
    return toolkit if toolkit is not None and arch in toolkit.architectures else None


def _over_limits(
    code: DeviceCode, target: Target, bills: tuple[KernelBill, ...]
) -> tuple[Diagnostic, ...]:
    assert target.gpu is not None
    shared = {bill.name: bill.shared_bytes for bill in bills}
    launched = {call for plan in code.plans.values() for call in calls(plan)}
    found: dict[Diagnostic, None] = {}
    for call in sorted(launched, key=lambda c: (c.kernel, c.groups, c.group_size)):
        found |= dict.fromkeys(_launch(call, target, target.gpu, shared.get(call.kernel, 0)))
    return tuple(found)


def _launch(call: Call, target: Target, gpu: Gpu, static: int) -> Iterable[Diagnostic]:
    device = target.cuda
    block, grid = (_BLOCK, _GRID) if device is None else (device.block, device.grid)
    threads = call.group_size[0] * call.group_size[1] * call.group_size[2]
    if threads > gpu.max_threads or _exceeds(call.group_size, block):
        limits = f"the device runs {gpu.max_threads} ({shape(block)})"
        yield over_limit(
            WORK_GROUP, f"blocks of {shape(call.group_size)} threads in {call.kernel}; {limits}"
        )
    asks = call.shared_bytes > 0
    most = gpu.shared_optin_bytes if asks and gpu.shared_optin_bytes else gpu.shared_bytes
    if static + call.shared_bytes > most:
        taken = f"{static + call.shared_bytes} bytes of shared memory in {call.kernel}"
        yield over_limit(WORK_GROUP, f"{taken}; a block has {most}")
    if _exceeds(call.groups, grid):
        yield over_limit(
            GRID, f"a grid of {shape(call.groups)} blocks of {call.kernel}; at most {shape(grid)}"
        )


def _exceeds(extents: tuple[int, int, int], limits: tuple[int, int, int]) -> bool:
    return any(n > most for n, most in zip(extents, limits, strict=True))
