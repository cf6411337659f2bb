"""The decision space of a program: for each root stage a list of choices, and how they combine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from edgekernelbench.agents.tuner.choices import Choice, Machine, map_choices, reduction_choices
from edgekernelbench.agents.tuner.gpu import Team
from edgekernelbench.agents.tuner.gpu_groups import gpu_choices
from edgekernelbench.agents.tuner.groups import epilogue, row_choices, with_epilogue
from edgekernelbench.agents.tuner.views import StageView, view_program
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.lowering.normalize import normalize
from edgekernelbench.targets.model import Target

_PARALLEL_WORK = 2e5
"""Operations of one iteration from which starting all cores inside a ``seq`` may pay."""

State = Mapping[str, Choice]
"""Root stage -> choice. A stage without an entry keeps the default rules."""


@dataclass(frozen=True, slots=True)
class Space:
    """All choices for one kernel; ``roots`` is in descending order of work. ``section`` names the
    layers that say them."""

    kernel: s.Kernel
    views: tuple[StageView, ...]
    choices: Mapping[str, tuple[Choice, ...]]
    section: s.TargetName = "cpu"

    @property
    def roots(self) -> tuple[str, ...]:
        heavy = sorted(self.views, key=lambda v: -v.work)
        return tuple(v.name for v in heavy if self.choices.get(v.name))

    def view(self, root: str) -> StageView:
        return next(v for v in self.views if v.name == root)

    def best_guess(self, roots: Collection[str] | None = None) -> dict[str, Choice]:
        """The first choice of every root; where two claim one stage, the one that settles more
        work stays. ``roots`` limits it to these."""
        work = {v.name: v.work for v in self.views}
        firsts = [self.choices[r][0] for r in self.roots if roots is None or r in roots]
        firsts.sort(key=lambda c: -sum(work[name] for name in c.claims))
        state: dict[str, Choice] = {}
        claimed: set[str] = set()
        for first in firsts:
            free = (c for c in self.choices[first.root] if not c.claims & claimed)
            choice = next(free, None) if first.root not in claimed else None
            if choice is not None:
                state[choice.root] = choice
                claimed |= choice.claims
        return state

    def kernel_of(self, state: State) -> s.Kernel:
        """The kernel with schedule and memory layers that say the state.

        Where two choices claim one stage, or lay out one tensor, the one that settles more work
        wins.
        """
        work = {v.name: v.work for v in self.views}
        lines: list[s.ScheduleLine] = []
        layouts: dict[str, s.LayoutLine] = {}
        memory: list[s.MemoryLine] = []
        claimed: set[str] = set()
        settled = sorted(state.values(), key=lambda c: -sum(work[name] for name in c.claims))
        for choice in settled:
            if choice.claims & claimed:
                continue
            claimed |= choice.claims
            lines += choice.lines
            memory += choice.memory
            for layout in choice.layouts:
                layouts.setdefault(layout.tensor.name, layout)
        memory = [*layouts.values(), *memory]
        schedules = (s.ScheduleLayer(self.section, tuple(lines)),) if lines else ()
        memories = (s.MemoryLayer(self.section, tuple(memory)),) if memory else ()
        return with_layers(self.kernel, schedules=schedules, memories=memories)


def build_space(kernel: s.Kernel, program: Program, target: Target) -> Space:
    """Looks at a verified program and lists what could be tried."""
    views = view_program(normalize(program))
    if target.gpu is not None:
        team = Team.of(target)
        on_gpu = {view.name: tuple(gpu_choices(views, view, team)) for view in views}
        return Space(kernel, views, on_gpu, "gpu")
    machine = Machine.of(target)
    choices = {view.name: tuple(_choices(views, view, machine)) for view in views}
    return Space(kernel, views, choices)


def _choices(views: tuple[StageView, ...], view: StageView, machine: Machine) -> list[Choice]:
    inner = bool(view.loops) and not (view.serial and view.work / view.repeats > _PARALLEL_WORK)
    if view.kind == "map":
        own = map_choices(view, machine, inner)
    else:
        own = reduction_choices(view, machine, inner)
        chain = epilogue(views, view)
        fused = [with_epilogue(c, view, chain) for c in own]
        own = [c for c in (*fused, *own) if c is not None]
    own += row_choices(views, view, machine, inner)
    return sorted(own, key=lambda c: c.cost)
