"""The compiler with schedules found by its own search: what a deployer with patience gets.

The ONNX twin as the compiler imports and fuses it (or, where that cannot be, the canonical program
stage by stage under the same fusion), each loop function with the schedule that MetaSchedule found,
weights packed outside the timed call as the schedules ask. Nothing is searched here: schedules come
from packs, and without one the baseline is unavailable. The result is judged and measured like any
other baseline, where it runs. A schedule that was searched for another kind of CPU is applied and
said to be; then the baseline is shown and not scored, since a search would have found better.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgekernelbench.baselines import packs, twins
from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.baselines.tunable import Tunable, tunable
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target


class TvmTunedBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm-tuned"
    scored = True
    version = 1

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.backend != "llvm":
            return f"schedules are searched for llvm only, not for {target.backend}"
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        if not packs.pack_files():
            return f"there is no schedule pack; {_remedy(materials)}"
        return None

    def files(self) -> tuple[Path, ...]:
        """See `edgekernelbench.baselines.base.ReadsFiles`."""
        return packs.pack_files()

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        from edgekernelbench.compilers.tvm.build import tvm_target
        from edgekernelbench.compilers.tvm.lift.refusal import Refused
        from edgekernelbench.compilers.tvm.tuning import build, graph

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
            return Unavailable(_incomplete(missing, len(found), materials))
        traces = {c.schedule.function: c.schedule.trace for c in choices}
        try:
            build.build(task.graph, traces, tvm_target(target), folder)
        except Refused as reason:
            return Unavailable(str(reason))
        return self._recipe(materials, task, choices, target)

    def _recipe(
        self,
        materials: Materials,
        task: Tunable,
        choices: Sequence[packs.Choice],
        target: Target,
    ) -> Recipe:
        foreign = any(choice.transferred for choice in choices)
        options = {}
        if task.source == "ONNX twin":
            assert materials.twin is not None
            initializers = twins.initializers(materials.twin)
            options["baked"] = twins.digests(initializers, materials.fixed)
        return Recipe(
            baseline=self.name,
            kind="tvm-plan",
            route=_route(task, choices, foreign),
            notes=_notes(task, choices, target),
            wants_twin=task.source == "ONNX twin",
            scored=False if foreign else None,
            options=options,
        )


BASELINE = TvmTunedBaseline()


def _remedy(materials: Materials) -> str:
    return f"`ekb baseline tune --workload {materials.workload}` makes one"


def _incomplete(missing: list[str], total: int, materials: Materials) -> str:
    which = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
    return f"no schedule for {len(missing)} of {total} functions ({which}); {_remedy(materials)}"


def _route(task: Tunable, choices: Sequence[packs.Choice], foreign: bool) -> str:
    wanted = sorted({c.schedule.wanted for c in choices}) or [0]
    trials = f"{wanted[0]}" if len(wanted) == 1 else f"{wanted[0]} to {wanted[-1]}"
    route = f"{task.source}, MetaSchedule, {trials} trials a function"
    others = sorted({_origin(c.schedule) for c in choices if c.kinship != "own"})
    if not others:
        return route
    if foreign:
        return f"{route}, transferred from {', '.join(others)}, unmeasured in the search here"
    return f"{route}, tuned for {', '.join(others)}"


def _origin(schedule: packs.Schedule) -> str:
    where = "" if schedule.host == schedule.cpu else f" on {schedule.host}"
    return f"{schedule.arch} {schedule.cpu}{where}"


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
    others = sorted({c.schedule.threads for c in choices} - {target.threads})
    notes += [f"tuned with {n} threads, run with {target.threads}" for n in others]
    guides = {c.schedule.guide for c in choices if c.schedule.trials > 1}
    notes += [f"search guided by {guide}" for guide in sorted(guides)]
    return tuple(notes)
