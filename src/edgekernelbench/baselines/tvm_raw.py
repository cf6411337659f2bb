"""The compiler's untouched default: no schedule of ours. Shown for comparison, never scored.

From the canonical program: every stage a serial nest and a buffer of its own.
"""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.baselines import programs
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.targets.model import Target


class TvmRawBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm-raw"
    scored = False
    version = 1

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.backend != "llvm":
            return f"not built for {target.backend}"
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        return None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        from edgekernelbench.compilers.tvm.compiler import compile_module
        from edgekernelbench.lowering.plain import lower_plainly

        bare = programs.canonical(materials)
        if isinstance(bare, Unavailable):
            return bare
        module = lower_plainly(bare.program, target)
        built = compile_module(module, bare.program, target, folder)
        if built.artifact is None:
            return Unavailable(f"not compiled: {programs.errors(built.diagnostics)}")
        route = "canonical program, no schedule"
        return Recipe(baseline=self.name, kind="tvm-library", route=route)


BASELINE = TvmRawBaseline()
