"""The baseline ``tvm`` on devices: the compiler under DLight, its own rules for GPUs.

The ONNX twin as the compiler imports and fuses it, each loop function scheduled by the first of
DLight's rules that fits; where there is no twin, or the importer lacks an operator, the canonical
program, stated as one loop function a stage and fused by the same rules.
"""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.baselines import twins
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.baselines.tunable import Tunable, tunable
from edgekernelbench.compilers.base import Argument
from edgekernelbench.targets.model import Target


def prepare(name: str, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
    """See `edgekernelbench.baselines.base.Baseline.prepare`."""
    from edgekernelbench.compilers.tvm.device.graph import build_graph
    from edgekernelbench.compilers.tvm.lift.refusal import Refused

    task = tunable(materials, target)
    if isinstance(task, Unavailable):
        return task
    try:
        without, why = build_graph(task.graph, arguments(materials), target, folder)
    except Refused as reason:
        return Unavailable(str(reason))
    route = f"{task.source}, DLight{_but(without)}"
    notes = (task.note, f"DLight with all its rules: {why}" if why else "")
    return _recipe(name, task, materials, route, tuple(note for note in notes if note))


def arguments(materials: Materials) -> dict[str, Argument]:
    """The task's ports as a kernel's arguments, by name."""
    return {
        port.name: Argument(name=port.name, dtype=port.dtype, shape=port.shape, role=port.role)
        for port in materials.ports
    }


def _recipe(
    name: str, task: Tunable, materials: Materials, route: str, notes: tuple[str, ...]
) -> Recipe:
    from_twin = task.source == "ONNX twin"
    options = {}
    if from_twin:
        assert materials.twin is not None
        options["baked"] = twins.digests(twins.initializers(materials.twin), materials.fixed)
    return Recipe(
        baseline=name,
        kind="device-kernel",
        route=route,
        notes=notes,
        wants_twin=from_twin,
        options=options,
    )


def _but(without: tuple[str, ...]) -> str:
    return f" without {' and '.join(without)}" if without else ""
