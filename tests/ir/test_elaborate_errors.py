"""What the author of a bad compute layer is told: code, place, message, ways out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.diagnostics import locate, render
from edgekernelbench.ir.elaborate import rules
from edgekernelbench.ir.elaborate.context import MAX_STAGES

HEADER = (
    "kernel k[M=4, N=6, K=3]"
    "(x: f32[M, N], w: const f32[N, K], idx: s32[M], q: u8[N], u: u32[M], s: f32)"
    " -> (y: f32[M, N]) {{ compute {{\n{body}\n}} }}\n"
)
FILE = Path(__file__).parents[1] / "data" / "elaborate-errors.txt"


@dataclass
class Case:
    body: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    helps: list[str] = field(default_factory=list)


def cases() -> list[Case]:
    out = [Case()]
    for line in FILE.read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("!! "):
            out[-1].errors.append(line[3:])
        elif line.startswith("?? "):
            out[-1].helps.append(line[3:])
        elif not line:
            out.append(Case())
        else:
            out[-1].body.append(line)
    return [case for case in out if case.body]


def findings(text: str) -> tuple[list[str], list[str]]:
    errors, helps = [], []
    for item in check_text(text).diagnostics:
        if item.severity == "error":
            assert item.span is not None
            line, column, _ = locate(text, item.span.start)
            errors.append(f"{item.rule.code} {line}:{column} {item.message}")
            helps += item.help
            assert render(item, text)
    return errors, helps


@pytest.mark.parametrize("case", cases(), ids=lambda c: " ; ".join(c.body)[:60])
def test_errors(case: Case) -> None:
    errors, helps = findings(HEADER.format(body="\n".join(case.body)))
    assert errors == case.errors
    assert [h for h in case.helps if h not in helps] == []


def test_the_table_is_not_lost() -> None:
    found = cases()
    assert len(found) >= 130
    codes = {error.split()[0] for case in found for error in case.errors}
    known = {rule.code for rule in vars(rules).values() if isinstance(rule, rules.Rule)}
    # Header overrides and limits have tests of their own.
    assert known - codes == {"E212", "E290"}


def test_all_errors_at_once_and_none_that_follow() -> None:
    body = (
        "a[i: M] = x[i, zz] + 1\n"  # unknown name
        "b1[i: M] = a[i] + exp(b2[i])\n"  # unknown tensor; `a` is silent
        "c[i, j: N] = b1[i]\n"  # no extent
        "t: s8[i: M] = c[i, 0] * idx[i]\n"  # silent: c is unknown
        "seq l: M { h[l] = h[l - 1] + nothing(a[l]) }\n"  # unknown function
        "y[i, j] = h[i] + sum(x[i, j])"  # a reduction without axis
    )
    errors, _ = findings(HEADER.format(body=body))
    assert [e.split()[0] for e in errors] == ["E200", "E200", "E222", "E240", "E250"]


# ---------------------------------------------------------------- limits
def refused(text: str) -> str:
    (item,) = [d for d in check_text(text).diagnostics if d.severity == "error"]
    assert item.rule is rules.LIMIT
    return item.message


def test_expansion_is_bounded() -> None:
    macros = "def m0(a) = a + a\n"
    macros += "".join(f"def m{n}(a) = m{n - 1}(a) + m{n - 1}(a)\n" for n in range(1, 40))
    assert "200,000" in refused(macros + HEADER.format(body="y[i, j] = m39(x[i, j])"))
    loop = "seq t: M { h[t] = pad(h[t - 1], 0) + m39(x[t, 0]) }\ny[i, j] = h[i]"
    assert "200,000" in refused(macros + HEADER.format(body=loop))
    chain = "def m0(a) = a\n" + "".join(f"def m{n}(a) = m{n - 1}(a + 1)\n" for n in range(1, 60))
    assert "50 deep" in refused(chain + HEADER.format(body="y[i, j] = m59(x[i, j])"))


def test_templates_are_bounded() -> None:
    text = "template t0(a) -> (o) { o[i: 4] = a[i, 0] }\n"
    for n in range(1, 16):
        text += f"template t{n}(a) -> (o) {{ b = t{n - 1}(a)  c = t{n - 1}(a)  o[i: 4] = c[i] }}\n"
    assert f"{MAX_STAGES:,} stages" in refused(text + HEADER.format(body="z = t15(x)\ny[i, j] = 0"))
    text = "template t0(a) -> (o) { o[i: 4] = a[i, 0] }\n"
    text += "".join(f"template t{n}(a) -> (o) {{ o = t{n - 1}(a) }}\n" for n in range(1, 30))
    assert "20 deep" in refused(text + HEADER.format(body="z = t29(x)\ny[i, j] = 0"))


def test_arguments_do_not_multiply() -> None:
    """Fifty calls around each other, each using its argument three times, stay small."""
    text = "def d(a) = a * a + a\n" + HEADER.format(
        body="y[i, j] = " + "d(" * 45 + "x[i, j]" + ")" * 45
    )
    assert check_text(text).ok


@pytest.mark.parametrize("value", ["v{0} * v{0} + 1", "min(v{0}, {1}) + 1", "1 if v{0} > 2 else 0"])
@pytest.mark.parametrize("start", ["x[i, 0]", "idx[i]"])
def test_long_chains_of_lets_are_fine(value: str, start: str) -> None:
    """No recursion along them, no work that doubles with each."""
    lets = "".join(f"  let v{n + 1} = {value.format(n, n)}\n" for n in range(1500))
    text = HEADER.format(
        body=f"y[i, j] = {{ let v0 = {start}\n{lets}return edge(x[s32(v1500), j]) }}"
    )
    codes = {d.rule.code for d in check_text(text).diagnostics if d.severity == "error"}
    assert codes <= {"E301"}
