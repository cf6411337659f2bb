"""What checking a workload yields: rules that were applied, findings, figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict


class Finding(BaseModel):
    """A rule that a workload breaks, in words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: str
    message: str


class Outcome(BaseModel):
    """All that one workload's check found.

    Attributes:
        applied: how often each rule was applied; controls count under ``control:<kind>``.
        figures: worst errors as multiples of the allowed error (``twin_error``,
            ``canonical_error``, ``compiled_error``), and seconds.
        skipped: rules that could not be applied, and why.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload: str
    applied: dict[str, int]
    findings: tuple[Finding, ...]
    figures: dict[str, float]
    skipped: dict[str, str]

    @property
    def clean(self) -> bool:
        return not self.findings


class Effort(BaseModel):
    """How much is done for each workload.

    Attributes:
        seeds: draws under which every control must fail.
        interpret_s: seconds that the interpreter may take at full size; beyond, small sizes do.
        compiled: also compile the canonical program for this host and run it at full size.
        small_only: only what the small sizes show: the row, and the executors against each other.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: int = 5
    interpret_s: float = 20.0
    compiled: bool = True
    small_only: bool = False


@dataclass
class Notes:
    """Collects while the checks run. ``compared``: rules under which outputs met the truth."""

    applied: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    compared: set[str] = field(default_factory=set)

    def expect(self, rule: str, holds: bool, message: str) -> bool:
        """Counts one application of a rule; notes ``message`` where it does not hold."""
        self.applied[rule] += 1
        if not holds:
            self.findings.append(Finding(rule=rule, message=message))
        return holds

    def error(self, rule: str, error: Exception) -> None:
        """Notes that a rule could not be tried because something raised."""
        lines = str(error).strip().splitlines() or [""]
        self.expect(rule, False, f"{type(error).__name__}: {lines[-1][:300]}")

    def broke(self, rule: str) -> bool:
        """Whether a rule was found broken."""
        return any(finding.rule == rule for finding in self.findings)

    def worst(self, figure: str, value: float) -> None:
        """Keeps the largest value of a figure."""
        self.figures[figure] = max(value, self.figures.get(figure, value))

    def outcome(self, workload: str) -> Outcome:
        return Outcome(
            workload=workload,
            applied=dict(self.applied),
            findings=tuple(self.findings),
            figures=self.figures,
            skipped=self.skipped,
        )
