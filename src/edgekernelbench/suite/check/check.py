"""All rules on one workload."""

from __future__ import annotations

import time
from collections.abc import Callable

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


def check_workload(workload: Workload, effort: Effort) -> Outcome:
    """Tries every rule; what raises is a finding of the rule that was being tried."""
    notes = Notes()
    began = time.monotonic()
    _guarded("row", notes, lambda: check_row(workload, notes))
    _guarded("twin", notes, lambda: check_twin(workload.small(), 1, notes))
    _guarded("canonical", notes, lambda: check_canonical(workload.small(), (1, 2), notes))
    if not effort.small_only:
        _check_full(workload, effort, notes)
    has_twin = "twin" in notes.applied and "twin" not in notes.skipped
    compared = has_twin or "canonical_error" in notes.figures
    notes.expect("independent", compared, "neither a twin nor a canonical program was run")
    notes.figures["seconds"] = round(time.monotonic() - began, 3)
    return notes.outcome(workload.id)


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
    _guarded("twin", notes, lambda: check_twin(workload, 1, notes))
    _guarded("control", notes, all_controls)
    full_size = check_canonical_at_full_size
    _guarded("canonical", notes, lambda: full_size(workload, effort, notes))
    if effort.compiled:
        _guarded("compiled", notes, lambda: check_compiled(workload, notes))


def _guarded(rule: str, notes: Notes, check: Callable[[], None]) -> None:
    try:
        check()
    except Exception as error:  # a pattern's own code may raise anything
        notes.error(rule, error)
