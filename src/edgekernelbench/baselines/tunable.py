"""A task as a graph of loop functions that the compiler can search schedules for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from edgekernelbench.baselines import programs
from edgekernelbench.baselines.base import Materials, Unavailable
from edgekernelbench.targets.model import Target

if TYPE_CHECKING:
    from edgekernelbench.compilers.tvm.tuning.graph import Graph

Source = Literal["ONNX twin", "canonical program"]


@dataclass(frozen=True, slots=True)
class Tunable:
    """``functions``: what the timed call runs, by name. ``note``: why it is not the twin."""

    source: Source
    graph: Graph
    functions: dict[str, Any]
    note: str = ""

    def shares(self) -> dict[str, float]:
        """Of each function, the part of the task's work that it has, by a rough estimate."""
        from edgekernelbench.compilers.tvm.tuning.graph import effort

        efforts = {name: effort(function) for name, function in self.functions.items()}
        total = sum(efforts.values()) or 1.0
        return {name: each / total for name, each in efforts.items()}


def tunable(materials: Materials, target: Target) -> Tunable | Unavailable:
    """The twin as the compiler imports it, or the canonical program where that cannot be."""
    from edgekernelbench.compilers.tvm.lift.refusal import Refused
    from edgekernelbench.compilers.tvm.tuning import build

    reason = "there is none"
    if materials.twin is not None:
        try:
            graph = _from_twin(materials.twin, materials, _compilers(target))
            return Tunable("ONNX twin", graph, build.timed(graph))
        except Refused as error:
            reason = str(error)
    bare = programs.canonical(materials)
    if isinstance(bare, Unavailable):
        return Unavailable(f"ONNX twin: {reason}; {bare.reason}")
    from edgekernelbench.compilers.tvm.tuning.stages import from_program

    try:
        graph = from_program(bare.program, _compilers(target))
        functions = build.timed(graph)
    except Refused as error:
        return Unavailable(f"ONNX twin: {reason}; canonical program: {error}")
    return Tunable("canonical program", graph, functions, f"ONNX twin: {reason}")


def _compilers(target: Target) -> Any:
    """The compiler's own form of a target."""
    if target.backend == "llvm":
        from edgekernelbench.compilers.tvm.build import tvm_target
    else:
        from edgekernelbench.compilers.tvm.gpu.build import device_target as tvm_target
    return tvm_target(target)


def _from_twin(twin: bytes, materials: Materials, target: Any) -> Graph:
    import onnx

    from edgekernelbench.compilers.tvm.tuning.graph import fused

    return fused(onnx.load_from_string(twin), materials.fixed, target)
