"""The baselines that a task's candidates run against, kept warm."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.baselines.base import OTHER, Materials, Recipe, Unavailable
from edgekernelbench.baselines.registry import load_baseline
from edgekernelbench.evaluator.contestant import Failure, Program
from edgekernelbench.evaluator.model import BaselineResult, BaselineStatus
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.task import EvalTask, InvalidReference, Pool, materials
from edgekernelbench.evaluator.worker import ChildLost

if TYPE_CHECKING:
    from edgekernelbench.evaluator.evaluator import Evaluator

_TRIES = 2
"""Builds of a baseline that may be lost, and times that it may fail to start: some hang."""


@dataclass(slots=True)
class Rival:
    """One baseline.

    Attributes:
        contestant: there once it is built.
        status, message: why there is no number, as far as that is known.
        lasting: the reason will not go away in this session.
        tries: builds and starts that failed.
        bind_seconds: what starting it may take.
        other: route of the build that takes over when this one's result is wrong, and what makes
            it; None if there is none (any more).
    """

    name: str
    scored: bool
    contestant: Replicas | None = None
    route: str = ""
    notes: tuple[str, ...] = ()
    status: BaselineStatus = "failed"
    message: str = ""
    lasting: bool = False
    tries: int = 0
    bind_seconds: float = 0.0
    other: tuple[str, Callable[[], Replicas]] | None = None

    def gives_way(self, message: str) -> bool:
        """After a wrong result: whether another build of the same baseline takes over."""
        if self.other is None or self.contestant is None:
            return False
        self.contestant.close()
        self.notes = (*self.notes, f"not {self.route}: {message}"[:1000])
        self.route, make = self.other
        self.contestant, self.other = make(), None
        return True

    def fails(self, status: BaselineStatus, message: str, lasting: bool = False) -> None:
        self.status, self.message, self.lasting = status, message[:1000], lasting

    def without_figures(self) -> BaselineResult:
        """What the record says of it when there is no number."""
        return BaselineResult(
            status=self.status,
            scored=self.scored,
            route=self.route,
            notes=self.notes,
            message=self.message,
        )


class Rivals:
    """Builds baselines when first needed, and keeps their processes between evaluations."""

    def __init__(self, evaluator: Evaluator, task: EvalTask, names: tuple[str, ...] | None) -> None:
        self._evaluator = evaluator
        self._task = task
        self._materials: Materials | None = None
        modules = evaluator.machinery.baselines
        self.all = [
            Rival(name, load_baseline(modules[name]).scored)
            for name in (evaluator.settings.baselines if names is None else names)
        ]

    def ready(self, pool: Pool) -> Iterator[Rival]:
        """Those that can be measured now, each with a process bound to ``pool``."""
        for rival in self.all:
            if rival.contestant is None and not rival.lasting:
                self._build(rival)
            if rival.contestant is not None and self.bind(rival, pool):
                yield rival

    def _build(self, rival: Rival) -> None:
        rival.tries += 1
        try:
            self._materials = self._materials or materials(self._task)
        except InvalidReference as error:
            rival.fails("failed", str(error), lasting=True)
            return
        module = self._evaluator.machinery.baselines[rival.name]
        reason = load_baseline(module).available(self._materials, self._evaluator.target.reference)
        if reason is not None:
            rival.fails("unavailable", reason, lasting=True)
            return
        try:
            built = self._evaluator.builder.baseline(rival.name, self._materials)
        except ChildLost as lost:
            message = f"not built: {lost.detail} {lost.log[-300:]}".strip()
            rival.fails("failed", message, lasting=rival.tries >= _TRIES)
            return
        if isinstance(built, Unavailable):
            rival.fails("unavailable", built.reason, lasting=True)
            return
        recipe, name = built.recipe, rival.name
        rival.route, rival.notes = recipe.route, recipe.notes
        rival.scored = rival.scored and recipe.scored is not False
        rival.contestant = self._replicas(name, recipe, built.folder)
        rival.bind_seconds = self._bind_seconds(recipe)
        other = recipe.other
        if other is not None:
            make = functools.partial(self._replicas, name, other, built.folder / OTHER)
            rival.other = other.route, make

    def _replicas(self, name: str, recipe: Recipe, folder: Path) -> Replicas:
        assert self._materials is not None
        plug = self._evaluator.machinery.runners[recipe.kind]
        twin = self._materials.twin is not None and recipe.wants_twin
        device = self._evaluator.target.device
        chosen = {} if device is None else {"device": device.choice.model_dump()}
        options = {**recipe.options, **chosen}
        program = Program(folder, plug, options, self._evaluator.cores, wants_twin=twin)
        return Replicas(lambda: self._evaluator.contestant(name, program, self._task))

    def _bind_seconds(self, recipe: Recipe) -> float:
        """Some are compiled when they are bound; what a device runs is not, and kernels can hang
        there."""
        compiled = self._evaluator.machinery.runners[recipe.kind].server == "device"
        if compiled:
            return self._evaluator.bind_seconds
        return self._evaluator.settings.baseline_compile_s

    def bind(self, rival: Rival, pool: Pool) -> bool:
        """Gives a built one the inputs of ``pool``; whether that went well."""
        assert rival.contestant is not None
        try:
            rival.contestant.bind(pool, random.Random(), rival.bind_seconds)
        except (Failure, InvalidReference) as error:
            rival.tries += 1
            rival.fails("failed", str(error), lasting=rival.tries > _TRIES)
            if rival.lasting:
                rival.contestant.close()
                rival.contestant = None
            return False
        return True

    def close(self) -> None:
        for rival in self.all:
            if rival.contestant is not None:
                rival.contestant.close()
