"""The compiler's untouched default: no schedule of ours. Shown for comparison, never scored.

From the ONNX twin by ``relax.build``, which applies no schedule on CPUs, run by Relax's virtual
machine; where that cannot be, from the canonical program: every stage a serial nest and a buffer
of its own.
"""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.baselines import programs, twins
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.targets.model import Target


class TvmRawBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm-raw"
    scored = False
    version = 2

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.backend != "llvm":
            return f"not built for {target.backend}"
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        return None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        reason = "there is no ONNX twin"
        if materials.twin is not None:
            outcome = self._from_twin(materials, materials.twin, target, folder)
            if isinstance(outcome, Recipe):
                return outcome
            reason = f"ONNX twin: {outcome}"
        failed = _build_plain(materials, target, folder)
        if failed is not None:
            return Unavailable(f"{reason}; {failed.reason}")
        route = f"canonical program, no schedule: {reason}"
        return Recipe(baseline=self.name, kind="tvm-library", route=route)

    def _from_twin(
        self, materials: Materials, twin: bytes, target: Target, folder: Path
    ) -> Recipe | str:
        import onnx

        from edgekernelbench.compilers.tvm.relax_build import build_model

        built = build_model(onnx.load_from_string(twin), materials.fixed, target, folder)
        if isinstance(built, str):
            return built
        baked = twins.digests(twins.initializers(twin), materials.fixed)
        return Recipe(
            baseline=self.name,
            kind="relax",
            route="ONNX twin, relax.build, no schedule",
            wants_twin=True,
            options={"interface": built.model_dump(mode="json"), "baked": baked},
        )


BASELINE = TvmRawBaseline()


def _build_plain(materials: Materials, target: Target, folder: Path) -> Unavailable | None:
    from edgekernelbench.compilers.tvm.compiler import compile_module
    from edgekernelbench.lowering.plain import lower_plainly

    bare = programs.canonical(materials)
    if isinstance(bare, Unavailable):
        return bare
    module = lower_plainly(bare.program, target)
    built = compile_module(module, bare.program, target, folder)
    if built.artifact is None:
        return Unavailable(f"not compiled: {programs.errors(built.diagnostics)}")
    return None
