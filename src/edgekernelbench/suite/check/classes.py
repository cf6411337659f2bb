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
ENOUGH = 10
"""Workloads from which on a class is judged."""
_FIGURES = ("compiled_error", "twin_error")


@dataclass(frozen=True, slots=True)
class ClassUse:
    """The worst errors of honest executors, one a workload, as shares of the allowed error."""

    tolerance: ToleranceClass
    errors: tuple[float, ...]

    @property
    def too_wide(self) -> bool:
        return len(self.errors) >= ENOUGH and max(self.errors) < NEEDED


def classes(outcomes: Iterable[Outcome], workloads: Mapping[str, Workload]) -> tuple[ClassUse, ...]:
    """The use of each tolerance class of floats, in alphabetical order."""
    errors: dict[ToleranceClass, list[float]] = defaultdict(list)
    for outcome in outcomes:
        found = [outcome.figures[name] for name in _FIGURES if name in outcome.figures]
        if found:
            errors[workloads[outcome.workload].tolerance].append(max(found))
    return tuple(
        ClassUse(name, tuple(sorted(values)))
        for name, values in sorted(errors.items())
        if name not in ("exact_move", ROUNDING)
    )
