"""docs/tolerances.md says the numbers that are in the code."""

from __future__ import annotations

import re
from pathlib import Path

from edgekernelbench.suite.check.classes import NEEDED
from edgekernelbench.suite.check.executors import LOOSEST, MARGIN
from edgekernelbench.suite.tolerance import RULES

TEXT = (Path(__file__).parents[2] / "docs" / "tolerances.md").read_text(encoding="utf-8")


def test_the_table_of_classes_is_the_codes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+)( \(K\))? \| (\S*) ?\|$", TEXT, re.MULTILINE)
    said = {
        name: (float(rtol), float(atol), bool(sums), float(cosine) if cosine else None)
        for name, rtol, atol, sums, cosine in rows
    }
    assert said == {
        name: (rule.rtol, rule.atol, rule.sums, rule.cosine)
        for name, rule in RULES.items()
        if rule.rtol
    }


def test_the_margins_are_the_codes() -> None:
    assert (MARGIN, NEEDED, LOOSEST) == (0.5, 1 / 20, 1 / 5000)
    assert "more than half" in TEXT and "a twentieth" in TEXT and "a 5000th" in TEXT
