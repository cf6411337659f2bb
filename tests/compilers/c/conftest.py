"""The tests of scalar operations and functions, built by the system's C compiler."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from edgekernelbench.compilers.base import BuildResult
from edgekernelbench.compilers.c.compiler import CCompiler, compile_module
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.targets.cc import find_compiler
from edgekernelbench.targets.model import Target
from tests.compilers import nests, test_dots, test_examples, test_rounding


def by_c(module: nest.Module, program: Program, target: Target, folder: Path) -> BuildResult:
    """What TVM's `compile_module` does, for a target of the backend ``c``."""
    target = target.model_copy(update={"name": "c", "backend": "c"})
    return compile_module(module, program, target, folder, find_compiler(), time.perf_counter())


class ByC:
    """What `TvmCompiler` does, for a target of the backend ``c``."""

    def compile(
        self, kernel: Kernel, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        target = target.model_copy(update={"name": "c", "backend": "c"})
        return CCompiler().compile(kernel, program, target, folder)


@pytest.fixture(autouse=True)
def built_by_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """What those tests compile by, is the other compiler."""
    monkeypatch.setattr(nests, "compile_module", by_c)
    for module in (test_dots, test_examples, test_rounding):
        monkeypatch.setattr(module, "TvmCompiler", ByC)
