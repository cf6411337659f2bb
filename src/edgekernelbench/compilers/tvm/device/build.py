"""From a module of device kernels to a folder: source or machine code, launch plans, manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.compilers.launch import LaunchPlan, PlanError, TooManyLaunches, calls
from edgekernelbench.compilers.tvm.device.rules import (
    DEVICE_COMPILER,
    HOST_CODE,
    LAUNCHES,
)
from edgekernelbench.ir.diagnostics import Diagnostic, Rule
from edgekernelbench.targets.model import Target

_LOG_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """Source of all kernels, and a plan a host function. ``shared``: bytes of shared memory that
    each kernel allocates statically."""

    source: str
    plans: dict[str, LaunchPlan]
    shared: Mapping[str, int] = field(default_factory=dict)

    def bills(self) -> tuple[KernelBill, ...]:
        """What is known of the kernels without an assembler."""
        return tuple(KernelBill(name=n, shared_bytes=size) for n, size in self.shared.items())


@dataclass(frozen=True, slots=True)
class DeviceBuild:
    """Exactly one of ``code`` and ``diagnostics`` is there.

    Attributes:
        library: name of the file that a device loads.
        kernels: what each kernel takes.
    """

    code: DeviceCode | None
    diagnostics: tuple[Diagnostic, ...] = ()
    library: str = ""
    kernels: tuple[KernelBill, ...] = ()


def build_device(
    module: Any,
    names: Mapping[str, Sequence[str]],
    target: Target,
    folder: Path,
    splitter: Callable[[Any, Any], Any] | None = None,
) -> DeviceBuild:
    """Generates source and plans, and has the device's compiler take the source.

    Args:
        module: an IRModule whose host functions are the keys of ``names``.
        names: of each function's parameters, in order.
        target: with the ``opencl`` or ``cuda`` backend. Without a device at hand OpenCL code is
            only generated, and CUDA code compiled where nvcc knows the architecture.
        folder: receives the source and whatever comes of it.
        splitter: `split.split_loops` (the rule) or `split.split_blocks`.

    Raises:
        DeviceMissing, UsageError: device or compiler are not there.
    """
    from edgekernelbench.compilers.tvm.device import cubin, host, opencl_check, split
    from edgekernelbench.compilers.tvm.gpu.build import device_target

    tvm_target = device_target(target)
    parts = (splitter or split.split_loops)(module, tvm_target)
    try:
        plans = {n: host.read_host(parts.hosts[n], names[n], parts.kernels) for n in names}
    except host.Unreadable as error:
        return DeviceBuild(None, (Diagnostic(error.rule, error.message, None),))
    if found := _too_long(plans):
        return DeviceBuild(None, found)
    shared = {name: split.shared_bytes(kernel) for name, kernel in parts.kernels.items()}
    code = DeviceCode(split.source(parts, tvm_target), plans, shared)
    finish = cubin.finish if target.backend == "cuda" else opencl_check.finish
    return finish(code, target, folder)


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


def refused_by_compiler(log: str) -> Diagnostic:
    """What a device's compiler says against a source: the first error, the end of its log."""
    log = log.strip()
    lines = [line for line in log.splitlines() if "error" in line.lower()]
    message = (lines or log.splitlines() or ["no log"])[0].strip()[:300]
    help = ("nothing is wrong with the kernel; a different schedule may avoid the failure",)
    return Diagnostic(DEVICE_COMPILER, message, None, help, (log[-_LOG_CHARACTERS:],))


def over_limit(rule: Rule, message: str) -> Diagnostic:
    """A launch that the device cannot carry out."""
    help = ("bind smaller extents to threads, or cache less in shared memory",)
    return Diagnostic(rule, message, None, help)


def shape(extents: Sequence[int]) -> str:
    """``8 x 1 x 1``."""
    return " x ".join(str(n) for n in extents)
