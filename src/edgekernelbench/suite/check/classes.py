"""Whether the tolerance classes fit the workloads that have them, over many outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgekernelbench.suite.check.model import Outcome
from edgekernelbench.suite.model import ToleranceClass, Workload
from edgekernelbench.suite.tolerance import ROUNDING

NEEDED = 0.05
"""Least share of the allowed error that some honest executor of a class must need."""
_FIGURES = ("compiled_error", "twin_error")


@dataclass(frozen=True, slots=True)
class ClassUse:
    """The worst errors of honest executors, one a workload, as shares of the allowed error.

    ``whole``: all of the class's workloads have been compiled and checked at full size; a part of
    them does not show that the others need no more.
    """

    tolerance: ToleranceClass
    errors: tuple[float, ...]
    whole: bool

    @property
    def too_wide(self) -> bool:
        return self.whole and max(self.errors) < NEEDED


def classes(outcomes: Iterable[Outcome], workloads: Mapping[str, Workload]) -> tuple[ClassUse, ...]:
    """The use of each tolerance class of floats, in alphabetical order.

    Args:
        workloads: all that there are, by id, not only those of the outcomes.
    """
    errors: dict[ToleranceClass, list[float]] = defaultdict(list)
    open_ones = {workload.id for workload in workloads.values()}
    for outcome in outcomes:
        found = [outcome.figures[name] for name in _FIGURES if name in outcome.figures]
        if "compiled_error" in outcome.figures:
            open_ones.discard(outcome.workload)
        if found:
            errors[workloads[outcome.workload].tolerance].append(max(found))
    partly = {workloads[name].tolerance for name in open_ones}
    return tuple(
        ClassUse(name, tuple(sorted(values)), name not in partly)
        for name, values in sorted(errors.items())
        if name not in ("exact_move", ROUNDING)
    )
