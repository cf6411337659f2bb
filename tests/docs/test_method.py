"""`docs/method.md` states the constants that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgekernelbench.evaluator import noise, parentclock, plausible, statistics, sustained, timing
from edgekernelbench.evaluator.settings import EvalSettings

PAGE = Path(__file__).parents[2] / "docs" / "method.md"
MODULES = (noise, parentclock, plausible, statistics, sustained, timing)
STATED = dict(re.findall(r"`(\w+)`\s+=\s+(\d[\d.]*\d|\d)", PAGE.read_text()))


def in_code(name: str) -> float:
    if name in EvalSettings.model_fields:
        return float(EvalSettings.model_fields[name].default)
    [value] = {float(vars(module)[name]) for module in MODULES if name in vars(module)}
    return value


@pytest.mark.parametrize("name", STATED)
def test_constants(name: str) -> None:
    assert float(STATED[name]) == in_code(name)


def test_nothing_that_decides_is_left_out() -> None:
    modules = {name for module in MODULES for name in vars(module) if name.isupper()}
    unstated = {"LEAST", "STEADY_SHARE", "MARGIN"}  # in words
    constants = {n for n in modules if not n.startswith("_") and n != "TYPE_CHECKING"}
    assert constants - unstated == {n for n in STATED if n.isupper()}
    assert {"measure_s", "min_rounds", "replicas", "interval", "sample_us"} <= set(STATED)


def test_numbers_in_words() -> None:
    text = " ".join(PAGE.read_text().split())
    assert f"a `MARGIN` of {statistics.MARGIN:.0%}".replace("%", " %") in text
    assert f"the last {_FRACTIONS[sustained.STEADY_SHARE]}" in text
    assert f"Fewer than {_NUMBERS[statistics.LEAST]} rounds" in text
    assert f"{timing._MAX_CALLS:,}" in text and f"{plausible._ALGORITHMS:g} times fewer" in text
    assert f"below {timing._LEAD_BELOW_US / 1e3:g} ms" in text
    assert f"below {timing._DISCARD_BELOW_US / 1e3:g} ms" in text
    assert f"until {timing._WARM_US / 1e3:g} ms have passed" in text
    assert f"{timing._ROUNDS_PER_REPLICA} of each replica" in text
    assert f"get {timing._UNSCORED_SECONDS:g} s" in text


_FRACTIONS = {0.25: "quarter"}
_NUMBERS = {6: "six"}
