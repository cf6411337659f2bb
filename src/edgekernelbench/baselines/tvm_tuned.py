"""The compiler with schedules found by its own search: what a deployer with patience gets.

The ONNX twin as the compiler imports and fuses it (or, where that cannot be, the canonical program
stage by stage under the same fusion), each loop function with the schedule that MetaSchedule found,
weights packed outside the timed call where a schedule asks for it (those for CPUs do). Nothing is
searched here: schedules come from packs, and without one the baseline is unavailable. The result is
judged and measured like any other baseline, where it runs. A schedule that was searched for another
kind of device is applied and said to be; then the baseline is shown and not scored, since a search
would have found better.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgekernelbench.baselines import dlight, packs, twins
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.baselines.schedules import CpuSchedule, GpuSchedule
from edgekernelbench.baselines.tunable import Tunable, tunable
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target


class TvmTunedBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm-tuned"
    scored = True
    version = 2

    def available(self, materials: Materials, target: Target) -> str | None:
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        if not packs.pack_files():
            return f"there is no schedule pack; {_remedy(materials, target)}"
        return None

    def files(self) -> tuple[Path, ...]:
        """See `edgekernelbench.baselines.base.ReadsFiles`."""
        return packs.pack_files()

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        from edgekernelbench.compilers.tvm.lift.refusal import Refused
        from edgekernelbench.compilers.tvm.tuning import graph

        task = tunable(materials, target)
        if isinstance(task, Unavailable):
            return task
        try:
            book = packs.Book.open(target)
        except UsageError as error:
            return Unavailable(f"{error.message}; {error.help}")
        found = {name: book.find(graph.key(f)) for name, f in task.functions.items()}
        choices = [choice for choice in found.values() if choice is not None]
        if len(choices) < len(found):
            missing = [name for name, choice in found.items() if choice is None]
            return Unavailable(_incomplete(missing, len(found), _remedy(materials, target)))
        traces = {c.schedule.function: c.schedule.trace for c in choices}
        try:
            rules = _build(task, traces, materials, target, folder)
        except Refused as reason:
            return Unavailable(str(reason))
        return self._recipe(materials, task, choices, target, rules)

    def _recipe(
        self,
        materials: Materials,
        task: Tunable,
        choices: Sequence[packs.Choice],
        target: Target,
        rules: str,
    ) -> Recipe:
        """``rules``: what is to be known of those for functions without a schedule."""
        foreign = any(choice.transferred for choice in choices)
        options = {}
        if task.source == "ONNX twin":
            assert materials.twin is not None
            initializers = twins.initializers(materials.twin)
            options["baked"] = twins.digests(initializers, materials.fixed)
        return Recipe(
            baseline=self.name,
            kind="tvm-plan" if target.backend == "llvm" else "device-kernel",
            route=_route(task, choices, foreign),
            notes=(*_notes(task, choices, target), *([rules] if rules else [])),
            wants_twin=task.source == "ONNX twin",
            scored=False if foreign else None,
            options=options,
        )


BASELINE = TvmTunedBaseline()


def _build(
    task: Tunable, traces: dict[str, Any], materials: Materials, target: Target, folder: Path
) -> str:
    """Fills the folder; returns what is to be known of the rules for functions without a schedule.

    Raises:
        Refused: a schedule does not apply, or the build fails.
    """
    if target.backend == "llvm":
        from edgekernelbench.compilers.tvm.build import tvm_target
        from edgekernelbench.compilers.tvm.tuning import build

        build.build(task.graph, traces, tvm_target(target), folder)
        return ""
    from edgekernelbench.compilers.tvm.device.graph import build_graph

    _, why = build_graph(task.graph, dlight.arguments(materials), target, folder, traces)
    return f"DLight with all its rules, where there is no schedule: {why}" if why else ""


def _remedy(materials: Materials, target: Target) -> str:
    which = "" if target.backend == "llvm" else f" --target {target.backend}"
    return f"`ekb baseline tune{which} --workload {materials.workload}` makes one"


def _incomplete(missing: list[str], total: int, remedy: str) -> str:
    which = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
    return f"no schedule for {len(missing)} of {total} functions ({which}); {remedy}"


def _route(task: Tunable, choices: Sequence[packs.Choice], foreign: bool) -> str:
    wanted = sorted({c.schedule.wanted for c in choices}) or [0]
    trials = f"{wanted[0]}" if len(wanted) == 1 else f"{wanted[0]} to {wanted[-1]}"
    route = f"{task.source}, MetaSchedule, {trials} trials a function"
    others = sorted({c.schedule.origin for c in choices if c.kinship != "own"})
    if not others:
        return route
    if foreign:
        return f"{route}, transferred from {', '.join(others)}, unmeasured in the search here"
    return f"{route}, tuned for {', '.join(others)}"


def _notes(task: Tunable, choices: Sequence[packs.Choice], target: Target) -> tuple[str, ...]:
    notes = [task.note] if task.note else []
    notes += [
        f"{c.schedule.name}: no schedule ({c.schedule.reason})"
        for c in choices
        if c.schedule.trace is None
    ]
    unchecked = [c.schedule.name for c in choices if c.schedule.trace and not c.schedule.checked]
    if unchecked:
        notes.append(f"results not compared when tuned: {', '.join(unchecked)}")
    schedules = [c.schedule for c in choices]
    threads = {one.threads for one in schedules if isinstance(one, CpuSchedule)}
    notes += [
        f"tuned with {n} threads, run with {target.threads}"
        for n in sorted(threads - {target.threads})
    ]
    devices = {(one.device, one.driver) for one in schedules if isinstance(one, GpuSchedule)}
    notes += [f"tuned on {device}, driver {driver}" for device, driver in sorted(devices)]
    guides = {c.schedule.guide for c in choices if c.schedule.trials > 1}
    notes += [f"search guided by {guide}" for guide in sorted(guides)]
    return tuple(notes)
