"""Diagnostics of texts that are no kernels: golden table, limits, hostile texts, random damage."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir.diagnostics import Rule, locate
from edgekernelbench.ir.parse import ParseResult, parse
from tests.ir.syntax_cases import CASES

EXAMPLES = [
    path.read_text("utf-8")
    for path in sorted((Path(__file__).parent.parent / "data").glob("examples*/*.ekir"))
]
GOLDEN = Path(__file__).parent / "golden" / "syntax.txt"


def table(name: str, text: str) -> str:
    """The diagnostics of a text: place, code, message, and the ways out."""
    lines = [f"== {name}"]
    for d in parse(text).diagnostics:
        at = "-"
        if d.span is not None:
            line, column, _ = locate(text, d.span.start)
            at = f"{line}:{column}"
        lines.append(f"{at} {d.rule.code} {d.message}")
        lines += [f"    {fix}" for fix in d.help]
    return "\n".join(lines) + "\n"


def test_golden_diagnostics() -> None:
    actual = "".join(table(name, text) for name, text in CASES.items())
    if os.environ.get("EKB_UPDATE_GOLDENS"):
        GOLDEN.write_text(actual, "utf-8")
    assert actual == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_an_error(name: str) -> None:
    result = parse(CASES[name])
    assert result.kernel is None and result.diagnostics


def test_several_errors_are_found_at_once() -> None:
    several = [name for name, text in CASES.items() if len(parse(text).diagnostics) > 1]
    assert len(several) >= 5


def test_one_damaged_sign_is_mostly_one_finding() -> None:
    """Recovery must not make up errors: most single mistakes yield a single diagnostic."""
    rng = random.Random(7)
    counts: list[int] = []
    for _ in range(400):
        text = rng.choice(EXAMPLES)
        at = rng.randrange(len(text))
        if text[at].isspace():
            continue
        counts.append(len(parse(text[:at] + text[at + 1 :]).diagnostics))
    wrong = [n for n in counts if n]
    assert wrong
    assert sum(n == 1 for n in wrong) >= 0.9 * len(wrong)


def test_codes_are_unique_and_documented() -> None:
    found = [value for value in vars(rules).values() if isinstance(value, Rule)]
    assert len({rule.code for rule in found}) == len(found)
    assert all(rule.code.startswith("E1") and rule.text for rule in found)


# ---------------------------------------------------------------- limits and hostile texts
def wrap(expr: str) -> str:
    return f"kernel k() -> (y: f32) {{ compute {{ y = {expr} }} }}"


HOSTILE: dict[str, tuple[Any, str]] = {
    "nothing": (None, "E100"),
    "bytes": (b"kernel", "E100"),
    "megabytes": ("x = 1\n" * 1_000_000, "E101"),
    "megabytes of brackets": ("(" * 3_000_000, "E101"),
    "many tokens": (wrap("+".join("a" * 40_000)), "E101"),
    "wide characters": ("# " + "é" * 200_000, "E101"),
    "deep parentheses": (wrap("(" * 1000 + "1" + ")" * 1000), "E102"),
    "deep brackets": (wrap("x[" * 1000 + "1" + "]" * 1000), "E102"),
    "deep braces": ("kernel k() -> (y: f32) { compute { " + "seq t: 2 {" * 5000, "E102"),
    "only opening": ("{[(" * 20_000, "E102"),
    "long minus": (wrap("-" * 50_000 + "1"), "E102"),
    "long not": (wrap("not " * 40_000 + "a"), "E102"),
    "long power": (wrap("**".join("a" * 20_000)), "E102"),
    "long sum": (wrap("+".join("a" * 20_000)), "E102"),
    "long choice": (wrap("a if b else " * 10_000 + "c"), "E102"),
    "long compare": (wrap("<".join("a" * 20_000)), ""),
    "huge integer": (wrap("9" * 200_000), "E111"),
    "huge hexadecimal": (wrap("0x" + "f" * 200_000), "E111"),
    "integer above 64 bits": (wrap(str((1 << 63) + 1)), "E111"),
    "huge float": (wrap("1e999"), "E111"),
    "long float": (wrap("1." + "0" * 200_000), "E111"),
    "nul": (wrap("1\0"), "E110"),
    "escape": (wrap("1 # \x1b[2J"), "E110"),
    "surrogate": (wrap("1 # \ud800"), "E110"),
    "reordering": (wrap("1 # \u202e"), "E110"),
    "closing": ("}" * 50_000, "E103"),
    "words": ("a " * 29_000, "E103"),
    "statements that fail": (
        "kernel k() -> (y: f32) { compute { " + "y = = 1\n" * 9_000 + "}}",
        "E150",
    ),
    "signs": ("kernel k() -> (y: f32) { compute { " + "= " * 50_000, "E140"),
    "unclosed strings": ('"' * 50_000, "E112"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused_at_once(name: str) -> None:
    text, code = HOSTILE[name]
    start = time.process_time()
    result = parse(text)
    assert time.process_time() - start < 2.0
    if code:
        assert result.kernel is None
        assert code in {d.rule.code for d in result.diagnostics}
        assert len(result.diagnostics) <= 20
        for d in result.diagnostics:
            d.as_dict(text if isinstance(text, str) else "")
    else:
        assert result.kernel is not None


def test_limits_are_not_reached_by_honest_texts() -> None:
    assert parse(wrap("+".join("a" * 190))).kernel is not None
    assert parse(wrap("(" * 95 + "1" + ")" * 95)).kernel is not None
    many = "\n".join(f"t{i}[i: 4] = {i} + i" for i in range(4000))
    assert parse(f"kernel k() -> (y: f32) {{ compute {{ {many} }} }}").kernel is not None


# ---------------------------------------------------------------- random texts
def settled(text: str) -> ParseResult:
    """The result of a text, which must come soon, without exception, and say something."""
    start = time.process_time()
    result = parse(text)
    assert time.process_time() - start < 2.0
    assert (result.kernel is None) == any(d.severity == "error" for d in result.diagnostics)
    for d in result.diagnostics:
        assert d.span is None or 0 <= d.span.start <= d.span.end <= len(text)
        assert d.as_dict(text)["rendered"]
    return result


_WORDS = (
    "kernel k compute schedule memory for cpu seq each let table def template return where if else"
    " and or not in by loops place inline layout parallel f32 s8 const reversed sum max x y i 0 1.5"
    ' ( ) [ ] { } , : ; . .. -> = == != <= < >> + - * / // % ** & | ^ ~ ? && || ! += # " é \\ @'
)
_PIECES = ["\n", *_WORDS.split()]
_FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(st.text(max_size=200))
@example("\x00")
@example("kernel")
@example("kernel k")
@_FAST
def test_any_text_is_answered(text: str) -> None:
    settled(text)


@given(st.lists(st.sampled_from(_PIECES), max_size=60))
@_FAST
def test_any_words_are_answered(pieces: list[str]) -> None:
    settled(" ".join(pieces))


@given(st.lists(st.sampled_from(_PIECES), max_size=30), st.booleans())
@_FAST
def test_any_body_is_answered(pieces: list[str], layered: bool) -> None:
    section = "compute { y = 1 } schedule for cpu {" if layered else "compute {"
    settled(f"kernel k() -> (y: f32) {{ {section} {' '.join(pieces)} }} }}")


@given(
    st.sampled_from(EXAMPLES),
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(_PIECES)),
        min_size=1,
        max_size=4,
    ),
)
@_FAST
def test_any_damage_is_answered(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, cut, piece in edits:
        at = int(where * len(text))
        text = f"{text[:at]}{piece}{text[at + cut :]}"
    settled(text)
