"""The kept answers of the guide's trial are what the results page says they are: right."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.evaluator.static import static_check
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.model import Target

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "ir-guide-trial"
ANSWERS = sorted(FOLDER.rglob("*.ekir"))
TARGET = Target(
    name="llvm",
    backend="llvm",
    threads=2,
    vector_bits=512,
    cache_bytes=(32 << 10, 1 << 20),
    memory_bytes=8 << 30,
)


def test_there_are_thirty_answers() -> None:
    kinds = [path.parent.name for path in ANSWERS]
    assert (kinds.count("compute"), kinds.count("layered")) == (20, 10)


@pytest.mark.parametrize("path", ANSWERS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_answer_is_right(path: Path) -> None:
    workload = load_suite().workloads[path.stem]
    target = TARGET if path.parent.name == "layered" else None
    found = static_check(path.read_text(), workload, target)
    assert found.program is not None, found.diagnostics
    assert found.ok, found.diagnostics
    inputs = workload.inputs(7)
    check = workload.compare(interpret(found.program, inputs, "declared"), workload.truth(inputs))
    assert check.passed, check
