"""The verdict on outputs, in the parent alone: against the truth, and on what lies around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from edgekernelbench.evaluator.model import Correctness
from edgekernelbench.evaluator.regions import Layout, gap_damage
from edgekernelbench.evaluator.task import EvalTask, Pool
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness as Comparison


class Watched(Protocol):
    """Whose outputs are looked at: a `Contestant`, or `Replicas` of one."""

    @property
    def layout(self) -> Layout: ...
    @property
    def pattern(self) -> int: ...
    def outputs_region(self) -> np.ndarray: ...


class WrongResult(Exception):
    """A sample that was looked at is not right; the judge holds what is wrong."""


@dataclass(slots=True)
class Judge:
    """Looks at kept samples of one contestant and keeps the worst it has seen.

    Attributes:
        seconds: wall time spent comparing, by the caller's clock.
    """

    task: EvalTask
    pool: Pool
    contestant: Watched
    samples: int = 0
    sets: set[int] = field(default_factory=set)
    worst: Comparison | None = None
    message: str = ""

    def look(self, number: int) -> None:
        """Compares the arena, as the last kept sample left it, with input set ``number``.

        Raises:
            WrongResult: and `correctness` says why.
        """
        self.samples += 1
        self.sets.add(number)
        region = self.contestant.outputs_region()
        arrays = self.contestant.layout.views(region)
        self.message = self._stray_write(region) or self._changed_input(arrays, number)
        outputs = {spec.name: arrays[spec.name] for spec in self.task.output_specs}
        self.message = self.message or self._no_bool(outputs)
        comparison = self.task.compare(outputs, self.pool.sets[number].truth)
        if self.worst is None or _rank(comparison) > _rank(self.worst):
            self.worst = comparison
        if not comparison.passed and not self.message:
            reasons = [f"{o.name}: {o.reason}" for o in comparison.outputs if not o.passed]
            self.message = "; ".join(reasons)[:1000]
        if self.message:
            raise WrongResult(self.message)

    def correctness(self) -> Correctness:
        """What has been seen so far."""
        assert self.worst is not None
        return Correctness(
            passed=not self.message,
            checked_samples=self.samples,
            checked_sets=len(self.sets),
            tolerance=self.worst.tolerance,
            tolerance_version=self.worst.tolerance_version,
            matched_ratio=self.worst.matched_ratio,
            worst_error=self.worst.worst_error,
            max_abs=self.worst.max_abs,
            max_rel=self.worst.max_rel,
            outputs=self.worst.outputs,
            message=self.message,
        )

    def _stray_write(self, region: np.ndarray) -> str:
        damage = gap_damage(self.contestant.layout, region, self.contestant.pattern)
        if damage is None:
            return ""
        offset, count = damage
        before = [s.name for s in self.contestant.layout.slots if s.end <= offset]
        where = f"behind '{before[-1]}'" if before else "before the first array"
        return f"wrote {count} byte(s) outside of its arrays, {where}"

    def _changed_input(self, arrays: dict[str, np.ndarray], number: int) -> str:
        for name, wanted in self.pool.sets[number].inputs.items():
            if not np.array_equal(_raw(arrays[name]), _raw(wanted)):
                return f"changed its input '{name}'"
        return ""

    def _no_bool(self, outputs: dict[str, np.ndarray]) -> str:
        for spec in self.task.output_specs:
            if spec.dtype is DType.BOOL and (_raw(outputs[spec.name]) > 1).any():
                return f"'{spec.name}' holds bytes that are neither true nor false"
        return ""


def _raw(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _rank(comparison: Comparison) -> tuple[bool, float]:
    return not comparison.passed, comparison.worst_error
