"""The decision space of a program: for each root stage a list of choices, and how they combine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgekernelbench.agents.tuner.choices import Choice, Machine, map_choices, reduction_choices
from edgekernelbench.agents.tuner.groups import epilogue, row_choices, with_epilogue
from edgekernelbench.agents.tuner.views import StageView, view_program
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.targets.model import Target

State = Mapping[str, Choice]
"""Root stage -> choice. A stage without an entry keeps the default rules."""


@dataclass(frozen=True, slots=True)
class Space:
    """All choices for one kernel; ``roots`` is in descending order of work."""

    kernel: s.Kernel
    views: tuple[StageView, ...]
    choices: Mapping[str, tuple[Choice, ...]]

    @property
    def roots(self) -> tuple[str, ...]:
        heavy = sorted(self.views, key=lambda v: -v.work)
        return tuple(v.name for v in heavy if self.choices.get(v.name))

    def work(self, root: str) -> float:
        return next(v.work for v in self.views if v.name == root)

    def best_guess(self) -> dict[str, Choice]:
        """The first choice of every root that no heavier root has claimed."""
        state: dict[str, Choice] = {}
        claimed: set[str] = set()
        for root in self.roots:
            if root in claimed:
                continue
            choice = next((c for c in self.choices[root] if not c.claims & claimed), None)
            if choice is not None:
                state[root] = choice
                claimed |= choice.claims
        return state

    def kernel_of(self, state: State) -> s.Kernel:
        """The kernel with schedule and memory layers for ``cpu`` that say the state.

        Where two choices claim one stage, or lay out one tensor, the heavier root wins.
        """
        lines: list[s.ScheduleLine] = []
        layouts: dict[str, s.LayoutLine] = {}
        claimed: set[str] = set()
        for root in self.roots:
            choice = state.get(root)
            if choice is None or choice.claims & claimed:
                continue
            claimed |= choice.claims
            lines += choice.lines
            for layout in choice.layouts:
                layouts.setdefault(layout.tensor.name, layout)
        schedules = (s.ScheduleLayer("cpu", tuple(lines)),) if lines else ()
        memories = (s.MemoryLayer("cpu", tuple(layouts.values())),) if layouts else ()
        return with_layers(self.kernel, schedules=schedules, memories=memories)


def build_space(kernel: s.Kernel, program: Program, target: Target) -> Space:
    """Looks at a verified program and lists what could be tried."""
    views = view_program(normalize(program))
    machine = Machine.of(target)
    choices = {view.name: tuple(_choices(views, view, machine)) for view in views}
    return Space(kernel, views, choices)


def _choices(views: tuple[StageView, ...], view: StageView, machine: Machine) -> list[Choice]:
    inner = bool(view.loops)
    if view.kind == "map":
        own = map_choices(view, machine, inner)
    else:
        own = reduction_choices(view, machine, inner)
        chain = epilogue(views, view)
        fused = [with_epilogue(c, view, chain) for c in own]
        own = [c for c in (*fused, *own) if c is not None]
    own += row_choices(views, view, machine, inner)
    return sorted(own, key=lambda c: c.cost)
