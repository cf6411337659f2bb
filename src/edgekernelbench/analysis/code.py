"""What becomes of a kernel in a target's compiler, without the device: its bill, and refusals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.compilers.base import BuildResult, KernelBill, StaticFacts
from edgekernelbench.compilers.budget import Item, bill_of, bill_of_module, over
from edgekernelbench.errors import UsageError
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.lowering.nest import Module
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a kernel takes of its target, as far as that is known without running it.

    Attributes:
        kernels: of a device, those of the prepacking function too; empty for CPUs.
        not_compiled: code was generated, but there is no compiler for it; says how to get one.
        diagnostics: what code generator or compiler say against the kernel.
        budget: a line for each limit of the target.
        code_bytes: of machine code, where it was made.
    """

    kernels: tuple[KernelBill, ...] = ()
    not_compiled: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    budget: tuple[Item, ...] = ()
    code_bytes: int | None = None

    @property
    def over_budget(self) -> str:
        """Says which limits the kernel exceeds; empty when it keeps within all."""
        return over(self.budget)

    def lines(self) -> Iterator[str]:
        """The bill for people, a line a kernel."""
        for kernel in self.kernels:
            yield f"{kernel.name:15} {_taken(kernel)}"
        if self.code_bytes is not None:
            yield f"machine code    {self.code_bytes} bytes"
        if self.not_compiled:
            yield f"not compiled    {self.not_compiled}"


def _taken(kernel: KernelBill) -> str:
    shared = f"{kernel.shared_bytes} bytes shared"
    if kernel.registers is None:
        return shared
    return (
        f"{kernel.registers} registers a thread, {shared}, {kernel.spilled_bytes} bytes "
        f"spilled, {kernel.stack_bytes} bytes of stack"
    )


def device_code(program: Program, module: Module, target: Target) -> DeviceCode:
    """Generates the code of a lowered kernel, and compiles it as far as that needs no device.

    For this host's CPU there is nothing to wait for: its bill comes from the loop program alone,
    unless the target limits the machine code.
    """
    if target.on_cpu:
        return _cpu_code(program, module, target)
    missing = _missing_compiler(target)
    without_device = target.model_copy(update={"cuda": None, "opencl": None})
    built = _built(program, module, without_device)
    if built.artifact is None:
        return DeviceCode(diagnostics=built.diagnostics)
    manifest = built.artifact.manifest
    return DeviceCode(
        kernels=manifest.facts.kernels,
        not_compiled=missing,
        budget=bill_of(manifest, target),
        code_bytes=None if target.backend == "opencl" else manifest.facts.code_bytes,
    )


def generated_source(program: Program, module: Module, target: Target) -> str:
    """What is handed to the target's compiler: CUDA C++, OpenCL C or C.

    Raises:
        UsageError: there is no such text for this target, or none for this kernel.
    """
    if target.backend == "llvm":
        raise UsageError(
            "LLVM gets no source: the loop nest is built in memory",
            "`ekb explain` shows that nest, and --target c the same nest as C",
        )
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-code-") as folder:
        refused = _write_source(program, module, target, Path(folder))
        written = sorted(Path(folder).glob("kernel.c*"))
        texts = [file.read_text() for file in written if file.suffix in (".c", ".cl", ".cu")]
    if not texts:
        raise UsageError("no source was generated", refused or "`ekb check` says why")
    return texts[0]


def _write_source(program: Program, module: Module, target: Target, folder: Path) -> str:
    """Why there is none, if so."""
    if target.backend == "c":
        from edgekernelbench.compilers.c.compiler import write_source

        refused = write_source(module, module.options.applied(target), folder, program.name)
        return "" if refused is None else refused.message
    from edgekernelbench.compilers.tvm.compiler import compile_module

    built = compile_module(
        module, program, target.model_copy(update={"cuda": None, "opencl": None}), folder
    )
    return built.diagnostics[0].message if built.diagnostics else ""


def _missing_compiler(target: Target) -> str:
    if target.backend != "cuda" or target.gpu is None or target.gpu.arch is None:
        return ""
    from edgekernelbench.targets.toolkit import toolkit_for

    try:
        toolkit_for(target.gpu.arch)
    except UsageError as error:
        return f"{error.message} ({error.help})"
    return ""


def _built(program: Program, module: Module, target: Target) -> BuildResult:
    from edgekernelbench.compilers.tvm.compiler import compile_module

    with tempfile.TemporaryDirectory(prefix="edgekernelbench-code-") as folder:
        return compile_module(module, program, target, Path(folder))


def _cpu_code(program: Program, module: Module, target: Target) -> DeviceCode:
    facts = _module_facts(program, module)
    size = None
    if target.mtriple is not None or target.code_bytes is not None:
        made = _object_bytes(program, module, target)
        if isinstance(made, Diagnostic):
            return DeviceCode(diagnostics=(made,))
        size = made
    facts = facts.model_copy(update={"code_bytes": size})
    return DeviceCode(budget=bill_of_module(program, module, facts, target), code_bytes=size)


def _object_bytes(program: Program, module: Module, target: Target) -> int | Diagnostic | None:
    if target.backend == "c":
        from edgekernelbench.compilers.c.compiler import object_bytes

        return object_bytes(module, target, program.name)
    from edgekernelbench.compilers.tvm.compiler import object_bytes as by_llvm

    return by_llvm(module, target)


def _module_facts(program: Program, module: Module) -> StaticFacts:
    from edgekernelbench.compilers.bill import static_facts

    return static_facts(module, program, None, 0.0)
