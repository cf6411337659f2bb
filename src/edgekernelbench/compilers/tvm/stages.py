"""An instrumented build: the library of a kernel that also says when each of its nests was done.

It is the kernel's own loop program. Before the first nest and behind each one stands a reading of
the clock, whose results are one output more; nothing else differs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.base import BuildResult
from edgekernelbench.compilers.rules import UNSUPPORTED_TARGET
from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.model import Target

CLOCK = "clock.ns"
"""The output with the readings, s64. The first two follow one another, so their difference is what
a reading costs; then comes one behind each part."""

PARTS = "parts.json"
"""File beside the library: a `PartList`."""


class TimedPart(BaseModel):
    """A nest of the kernel, see `lowering.nest.Part`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    stages: tuple[str, ...]


class PartList(BaseModel):
    """The nests in the order of their readings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parts: tuple[TimedPart, ...]


class StageTimer:
    """A compiler of instrumented builds for this host's CPU; see `compilers.base.Compiler`."""

    name = "tvm, timed by stage"

    def supports(self, target: Target) -> bool:
        return target.backend == "llvm"

    def compile(
        self, kernel: Kernel, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        """Leaves `PARTS` in ``folder``, too."""
        if not self.supports(target):
            message = f"stages of target '{target.name}' are not timed"
            return BuildResult(None, (Diagnostic(UNSUPPORTED_TARGET, message),))
        lowered = lower(kernel, program, target)
        if lowered.module is None:
            return BuildResult(None, lowered.diagnostics)
        module, parts = instrumented(lowered.module)
        listed = PartList(parts=tuple(TimedPart(label=p.label, stages=p.stages) for p in parts))
        (folder / PARTS).write_text(listed.model_dump_json())
        return self._build(module, program, target, folder)

    def _build(
        self, module: nest.Module, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        return compile_module(module, program, target, folder)


def instrumented(module: nest.Module) -> tuple[nest.Module, tuple[nest.Part, ...]]:
    """A CPU's loop program with readings of the clock, and the parts between them."""
    parts = nest.parts(module.main.body)
    clock = Tensor(CLOCK, DType.S64, (len(parts) + 2,), "output")
    body = module.main.body
    statements = body.body if type(body) is nest.Seq else (body,)
    out: list[nest.Stmt] = []
    readings = 0
    for statement in statements:
        if isinstance(statement, nest.Part):
            if not readings:
                out += [nest.Stamp(clock, 0), nest.Stamp(clock, 1)]
                readings = 2
            out += [statement, nest.Stamp(clock, readings)]
            readings += 1
        else:
            out.append(statement)
    main = replace(module.main, params=(*module.main.params, clock), body=nest.Seq(tuple(out)))
    return replace(module, main=main), parts
