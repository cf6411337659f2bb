"""The compiler under this project's default CPU rules: what a deployer gets without an author.

The very rules, lowering and code generator that a kernel without schedule and memory layers gets,
on the task as its ONNX twin states it where that can be lifted, else on the canonical program. So
a bare restatement of the task is worth about 1.
"""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.baselines import programs, twins
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.targets.model import Target

RULES = "default CPU rules"


class TvmBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm"
    scored = True
    version = 2

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.backend != "llvm":
            return f"the default CPU rules do not apply to {target.backend}"
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        return None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        reason = "no ONNX twin"
        if materials.twin is not None:
            outcome = self._from_twin(materials, materials.twin, target, folder)
            if isinstance(outcome, Recipe):
                return outcome
            reason = outcome.reason
        bare = programs.canonical(materials)
        if isinstance(bare, Unavailable):
            return Unavailable(f"{reason}; {bare.reason}")
        failed = programs.compile_program(bare.kernel, bare.program, target, folder)
        if failed is not None:
            return Unavailable(f"{reason}; {failed.reason}")
        route = f"canonical program, {RULES}: {reason}"
        return Recipe(baseline=self.name, kind="tvm-library", route=route)

    def _from_twin(
        self, materials: Materials, twin: bytes, target: Target, folder: Path
    ) -> Recipe | Unavailable:
        import onnx

        from edgekernelbench.compilers.tvm.lift import lift

        lifted = lift(onnx.load_from_string(twin), materials.ports, materials.fixed)
        if lifted.program is None:
            return Unavailable(lifted.reason)
        program = lifted.program
        kernel = programs.without_layers(program)
        failed = programs.compile_program(kernel, program, target, folder)
        if failed is not None:
            return failed
        options = {"baked": twins.digests(twins.initializers(twin), materials.fixed)}
        return Recipe(
            baseline=self.name,
            kind="tvm-library",
            route=f"ONNX twin, {RULES}",
            wants_twin=True,
            options=options,
        )


BASELINE = TvmBaseline()
