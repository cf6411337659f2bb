"""What verification accepts is safe: random programs against brute force.

Accepted texts are run element by element on hostile data by `checked_run`, which fails on a read
out of bounds or too early, on a divisor below 1 and on overflow inside an index.
"""

from __future__ import annotations

import pytest

from edgekernelbench.ir.check import check_text
from tests.ir.checked_run import Machine
from tests.ir.random_programs import Draw
from tests.ir.test_verify import random_inputs


def accepted(text: str, seeds: int) -> bool:
    """Runs the text when it is accepted; False when it is refused."""
    checked = check_text(text)
    if checked.program is None:
        return False
    for seed in range(seeds):
        Machine().run(checked.program, random_inputs(checked.program, seed))
    return True


@pytest.mark.parametrize("block", range(4))
def test_accepted_programs_are_safe(block: int) -> None:
    count = sum(accepted(Draw(block * 1000 + n).program(), 2) for n in range(150))
    assert count > 30, "a draw that is nearly all refused tests nothing"


@pytest.mark.parametrize("block", range(4))
def test_accepted_recurrences_are_safe(block: int) -> None:
    count = sum(accepted(Draw(block * 1000 + n).recurrence(), 1) for n in range(150))
    assert count > 3, "a draw that is nearly all refused tests nothing"
