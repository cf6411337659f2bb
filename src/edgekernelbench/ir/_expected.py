"""What would have been legal, in an author's words instead of the grammar's."""

from __future__ import annotations

from collections.abc import Mapping

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir import words
from edgekernelbench.ir._place import Finding, Place
from edgekernelbench.ir.diagnostics import Rule

_OPERANDS = words.word_set("INT FLOAT NAME LPAR LSQB LBRACE QUERY DTYPE MINUS PLUS TILDE NOT")
_OPERATORS = words.word_set(
    "OR AND EQ NE LE GE LT GT VBAR CARET AMP SHL SHR PLUS MINUS STAR SLASH DSLASH PERCENT DSTAR IF"
    " LSQB LPAR"
)
_STATEMENTS = words.word_set("SEQ EACH LET DEF TEMPLATE TABLE COMBINER NAME SEMI KERNEL")
_NAMED = {
    "NAME": "a name",
    "DTYPE": "a dtype",
    "INT": "an integer",
    "$END": "the end of the text",
}

_FORMS: dict[str, str] = {
    "seq": "seq t: L { ... }",
    "each": "each c: C { ... }",
    "let": "let a = expr",
    "table": "table G: f32[2, 2] = [[1, 0], [0.5, -1]]",
    "def": "def f(a, b) = expr",
    "combiner": "combiner f((a, b), (c, d)) init (0, 0) = (a + c, b + d)",
    "template": "template f(x, w) -> (y) { ... }",
    "loops": "loops S (parallel i by 8, j by 32, k, unroll i, vectorize j)",
    "wave": "wave S (parallel i by 32, j by 32, i, vectorize j)",
    "place": "place A, B in S.j0",
    "inline": "inline A, B",
    "option": "option parallel_order cyclic",
    "layout": "layout T [k, j] -> [j // 32, k, j % 32]",
    "cache": "cache T in S.k0",
    "prefetch": "prefetch T in S.k0 ahead 4",
    "schedule": "schedule for cpu { ... }",
    "memory": "memory for cpu { ... }",
    "compute": "compute { ... }",
}
_LAYER_FORMS: dict[str, tuple[str, ...]] = {
    "compute": ("name[i: M, j: N] = expr",),
    "schedule": (_FORMS["loops"], _FORMS["place"]),
    "memory": (_FORMS["layout"], _FORMS["cache"]),
    "header": ("kernel name[M=4, N=8](x: f32[M, N], w: const f32[N]) -> (y: f32[M]) { ... }",),
    "top": ("kernel name[M=4](x: f32[M]) -> (y: f32[M]) { compute { ... } }",),
    "kernel": ("compute { ... }", "schedule for cpu { ... }", "memory for cpu { ... }"),
    "target": ("schedule for cpu { ... }",),
}
_RULES: Mapping[str, Rule] = {
    "compute": rules.STATEMENT,
    "schedule": rules.SCHEDULE,
    "memory": rules.MEMORY,
    "header": rules.HEADER,
    "top": rules.ONE_KERNEL,
    "kernel": rules.SECTION,
    "target": rules.TARGET,
}


def generic(place: Place, spelling: Mapping[str, str]) -> Finding:
    """The finding for an error that no rule about slips knows.

    Args:
        spelling: text of each terminal that has one.
    """
    expected = phrases(place.expected, spelling)
    message = (
        f"expected {_join(expected)}, found {_found(place)}"
        if expected
        else (f"did not expect {_found(place)}")
    )
    return Finding(_rule(place), message, place.span, _form(place))


def phrases(expected: frozenset[str], spelling: Mapping[str, str]) -> list[str]:
    """The legal continuations, the most telling first."""
    left = {t for t in expected if not t.startswith("BROKEN")}
    out: list[str] = []
    if {"LET", "SEQ"} <= left:
        left -= _STATEMENTS
        out.append("the next statement")
    if "INT" in left:
        left -= _OPERANDS
        out.append("an expression")
    elif "STAR" in left:
        left -= _OPERATORS
        out.append("an operator")
    left.discard("SEMI")
    named = sorted(left & _NAMED.keys())
    out += [_NAMED[t] for t in named]
    texts = [spelling.get(t, t.lower()) for t in left - set(named)]
    out += [f"`{text}`" for text in sorted(texts, key=lambda text: (not text.isalpha(), text))]
    return out


def _join(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"


def _found(place: Place) -> str:
    token = place.token(place.at)
    if token.kind == "end":
        return "the end of the text"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return f"`{text}`"


def _rule(place: Place) -> Rule:
    if place.layer == "compute" and place.after_equals():
        return rules.EXPRESSION
    if place.layer == "compute" and place.text(place.start) in ("seq", "each"):
        return rules.LOOP
    return _RULES[place.layer]


def _form(place: Place) -> tuple[str, ...]:
    """The shape of the construct that was begun."""
    if place.layer == "compute" and place.after_equals():
        return ()
    first = place.text(place.start)
    form = _FORMS.get(first)
    if form is not None and (place.layer != "compute" or first in {*words.RESERVED, "combiner"}):
        return (f"write `{form}`",)
    return tuple(f"write `{form}`" for form in _LAYER_FORMS[place.layer])
