"""What becomes of a kernel in a device's own compiler, without a device: NVIDIA's, for CUDA."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.errors import UsageError
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.lowering.nest import Module
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What each device kernel takes, or why that is not known.

    Attributes:
        kernels: of the prepacking function, too; empty where nothing was compiled.
        not_compiled: code was generated, but there is no compiler for it; says how to get one.
        diagnostics: what code generator or compiler say against the kernel.
    """

    kernels: tuple[KernelBill, ...] = ()
    not_compiled: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    def lines(self) -> Iterator[str]:
        """The bill for people, a line a kernel."""
        for kernel in self.kernels:
            yield (
                f"{kernel.name:15} {kernel.registers} registers a thread, {kernel.shared_bytes} "
                f"bytes shared, {kernel.spilled_bytes} spilled, {kernel.stack_bytes} of stack"
            )
        if self.not_compiled:
            yield f"not compiled    {self.not_compiled}"


def device_code(program: Program, module: Module, target: Target) -> DeviceCode:
    """Generates the code of a lowered kernel for a CUDA target, and compiles it where an nvcc is
    there that knows the architecture. For other targets there is nothing to say."""
    if target.backend != "cuda" or target.gpu is None or target.gpu.arch is None:
        return DeviceCode()
    from edgekernelbench.compilers.tvm.compiler import compile_module
    from edgekernelbench.targets.toolkit import toolkit_for

    missing = ""
    try:
        toolkit_for(target.gpu.arch)
    except UsageError as error:
        missing = f"{error.message} ({error.help})"
    without_device = target.model_copy(update={"cuda": None})
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-code-") as folder:
        built = compile_module(module, program, without_device, Path(folder))
    if built.artifact is None:
        return DeviceCode(diagnostics=built.diagnostics)
    return DeviceCode(built.artifact.manifest.facts.kernels, missing)
