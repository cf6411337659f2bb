"""Instrumented builds by the C compiler: see `compilers.tvm.stages`."""

from __future__ import annotations

import time
from pathlib import Path

from edgekernelbench.compilers.base import BuildResult
from edgekernelbench.compilers.c.compiler import compile_module
from edgekernelbench.compilers.tvm.stages import StageTimer
from edgekernelbench.ir.core import Program
from edgekernelbench.lowering import nest
from edgekernelbench.targets.cc import find_compiler
from edgekernelbench.targets.model import Target


class CStageTimer(StageTimer):
    """The same as `StageTimer`, for the target ``c``."""

    name = "c, timed by stage"

    def supports(self, target: Target) -> bool:
        return target.backend == "c"

    def _build(
        self, module: nest.Module, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        began = time.perf_counter()
        return compile_module(module, program, target, folder, find_compiler(), began)
