"""All rules on one workload."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from edgekernelbench.suite.check.controls import check_controls, check_precision
from edgekernelbench.suite.check.executors import (
    check_canonical,
    check_canonical_at_full_size,
    check_compiled,
    check_twin,
)
from edgekernelbench.suite.check.inputs import (
    check_draw,
    check_effect,
    check_spread,
    check_truth,
)
from edgekernelbench.suite.check.model import Effort, Notes, Outcome
from edgekernelbench.suite.check.row import check_row
from edgekernelbench.suite.controls import draw_sample
from edgekernelbench.suite.model import Workload

T = TypeVar("T")


def check_workload(workload: Workload, effort: Effort) -> Outcome:
    """Tries every rule; what raises is a finding of the rule that was being tried."""
    notes = Notes()
    began = time.monotonic()
    if _guarded("row", notes, lambda: check_row(workload, notes)):
        _check_executors(workload, effort, notes)
    else:
        notes.skipped["all rules but row"] = "the row must be right first"
    notes.figures["seconds"] = round(time.monotonic() - began, 3)
    return notes.outcome(workload.id)


def _check_executors(workload: Workload, effort: Effort, notes: Notes) -> None:
    _guarded("twin", notes, lambda: check_twin(workload.small(), 1, notes))
    _guarded("canonical", notes, lambda: check_canonical(workload.small(), (1, 2), notes))
    if not effort.small_only:
        _check_full(workload, effort, notes)
    compared = bool(notes.compared & {"twin", "canonical"})
    if workload.definition.origin and not compared and {"twin", "canonical"} <= set(notes.skipped):
        notes.skipped["independent"] = "the user gave neither a twin nor a canonical program"
        return
    told = "the reference was compared with nothing: neither twin nor canonical program ran"
    notes.expect("independent", compared, told)


def _check_full(workload: Workload, effort: Effort, notes: Notes) -> None:
    def inputs_and_truth() -> None:
        inputs = workload.inputs(11)
        truth = workload.truth(inputs, cache=False)
        check_spread(workload, inputs, notes)
        check_truth(workload, truth, notes)
        _guarded("effect", notes, lambda: check_effect(workload, inputs, truth, notes))
        _guarded("precision", notes, lambda: check_precision(workload, inputs, truth, notes))

    def all_controls() -> None:
        for seed in range(effort.seeds):
            check_controls(draw_sample(workload, seed), notes)

    _guarded("draw", notes, lambda: check_draw(workload, notes))
    _guarded("truth", notes, inputs_and_truth)
    if not notes.broke("twin"):  # at full size it would be found once more
        _guarded("twin", notes, lambda: check_twin(workload, 1, notes))
    _guarded("control", notes, all_controls)
    if notes.broke("canonical"):
        notes.skipped["compiled"] = "the canonical program is not right"
        return
    full_size = check_canonical_at_full_size
    _guarded("canonical", notes, lambda: full_size(workload, effort, notes))
    if effort.compiled:
        _guarded("compiled", notes, lambda: check_compiled(workload, notes))


def _guarded(rule: str, notes: Notes, check: Callable[[], T]) -> T | None:
    """What ``check`` returns; None if it raised, which is a finding."""
    try:
        return check()
    except Exception as error:  # a pattern's own code may raise anything
        notes.error(rule, error)
        return None
