"""The core program that a baseline compiles: a task's canonical kernel without its layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from edgekernelbench.baselines.base import Materials, Unavailable
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class Bare:
    """A kernel without schedule and memory layers, and its verified program."""

    kernel: Kernel
    program: Program


def canonical(materials: Materials) -> Bare | Unavailable:
    """The canonical kernel of a task, its layers taken off."""
    if materials.canonical is None:
        return Unavailable("the task has no canonical program")
    from edgekernelbench.ir.elaborate import elaborate
    from edgekernelbench.ir.parse import parse
    from edgekernelbench.ir.verify import verify

    parsed = parse(materials.canonical)
    if parsed.kernel is None or errors(parsed.diagnostics):
        return Unavailable(f"canonical program: {errors(parsed.diagnostics)}")
    kernel = replace(parsed.kernel, schedules=(), memories=())
    elaborated = elaborate(kernel)
    if elaborated.program is None or errors(elaborated.diagnostics):
        return Unavailable(f"canonical program: {errors(elaborated.diagnostics)}")
    if found := errors(verify(elaborated.program)):
        return Unavailable(f"canonical program: {found}")
    return Bare(kernel, elaborated.program)


def compile_program(
    kernel: Kernel, program: Program, target: Target, folder: Path
) -> Unavailable | None:
    """Compiles as any kernel is compiled; why that failed, or None."""
    from edgekernelbench.compilers.tvm import TvmCompiler

    built = TvmCompiler().compile(kernel, program, target, folder)
    if built.artifact is None:
        return Unavailable(f"not compiled: {errors(built.diagnostics)}")
    return None


def without_layers(program: Program) -> Kernel:
    """A kernel file's stand-in for a program that was never text: it has no layers to apply."""
    from edgekernelbench.ir.surface import ComputeLayer

    return Kernel((), program.name, (), (), (), ComputeLayer(()))


def errors(diagnostics: tuple[Diagnostic, ...]) -> str:
    """The first error in one line; empty when there is none."""
    for found in diagnostics:
        if found.severity == "error":
            return f"{found.rule.code}: {found.message}"[:300]
    return ""
