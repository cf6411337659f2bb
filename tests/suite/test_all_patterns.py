"""All rows; every pattern at small sizes; a sample of workloads in full.

The whole is `make suite-check`; its record is in `docs/results/suite-check.md`.
"""

from __future__ import annotations

import hashlib

import pytest

from edgekernelbench.suite import Definition, Workload, load_suite
from edgekernelbench.suite.check import Effort, check_workload
from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.check.row import check_row

SUITE = load_suite()
WORKLOADS = list(SUITE.workloads.values())
FIRST = {w.pattern: w for w in reversed(WORKLOADS)}
SAMPLE = sorted(WORKLOADS, key=lambda w: hashlib.sha256(w.id.encode()).digest())[:30]


def test_all_rows() -> None:
    found = {}
    for workload in WORKLOADS:
        notes = Notes()
        check_row(workload, notes)
        if notes.findings:
            found[workload.id] = [f.message for f in notes.findings]
    assert not found


@pytest.mark.parametrize("definition", SUITE.definitions.values(), ids=lambda d: d.id)
def test_reference_twin_and_canonical_program_agree(definition: Definition) -> None:
    outcome = check_workload(FIRST[definition.id], Effort(small_only=True))
    assert outcome.clean, outcome.findings


@pytest.mark.parametrize("workload", [*SUITE.subset("quick"), *SAMPLE], ids=lambda w: w.id)
def test_a_sample_in_full(workload: Workload) -> None:
    outcome = check_workload(workload, Effort(seeds=5, interpret_s=5.0))
    assert outcome.clean, outcome.findings


def test_nearly_all_patterns_have_a_twin() -> None:
    without = [d.id for d in SUITE.definitions.values() if d.pattern.build_twin is None]
    assert len(SUITE.definitions) - len(without) >= 250
    for id in without:
        assert len(SUITE.definitions[id].pattern.no_twin or "") > 10


def test_exemptions_are_explained() -> None:
    for definition in SUITE.definitions.values():
        pattern = definition.pattern
        for reason in (*pattern.exempt.values(), *pattern.inert.values()):
            assert len(reason) > 10
        assert set(pattern.inert) <= {i.name for i in definition.inputs}
