"""The compiler under this project's default CPU rules: what a deployer gets without an author.

The very rules, lowering and code generator that a kernel without schedule and memory layers gets,
on the task as its ONNX twin states it where that can be lifted, else on the canonical program. So
a bare restatement of the task is worth about 1.
"""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.baselines import programs
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.targets.model import Target


class TvmBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm"
    scored = True
    version = 1

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.backend != "llvm":
            return f"the default CPU rules do not apply to {target.backend}"
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        return None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        from edgekernelbench.compilers.tvm import TvmCompiler

        bare = programs.canonical(materials)
        if isinstance(bare, Unavailable):
            return bare
        built = TvmCompiler().compile(bare.kernel, bare.program, target, folder)
        if built.artifact is None:
            return Unavailable(f"not compiled: {programs.errors(built.diagnostics)}")
        route = "canonical program, default CPU rules"
        return Recipe(baseline=self.name, kind="tvm-library", route=route)


BASELINE = TvmBaseline()
