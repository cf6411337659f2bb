"""Operators of other languages: `&&`, `+=`, `c ? a : b`, a wrong `=`."""

from __future__ import annotations

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir._place import Finding, Place, Slip
from edgekernelbench.ir._scan import CLOSING
from edgekernelbench.ir.words import REDUCTIONS

_LOGICAL = {"&&": ("AND", "and"), "||": ("OR", "or"), "!": ("NOT", "not")}
_UPDATES = frozenset({"+=", "-=", "*=", "/="})


def logical(place: Place) -> Finding | None:
    if place.here not in _LOGICAL:
        return None
    terminal, word = _LOGICAL[place.here]
    return Finding(
        rules.OPERATOR,
        f"`{place.here}` is no operator",
        place.span,
        (f"write `{word}`",),
        insert=((terminal, word),),
        skip=1,
    )


def update(place: Place) -> Finding | None:
    """`y[i] += v`."""
    if place.here not in _UPDATES:
        return None
    left, value = place.source(place.start, place.at), place.source(place.at + 1, place.stop)
    return Finding(
        rules.WRITE_ONCE,
        f"`{place.here}` updates `{left}`, but a stage is defined once and for all",
        place.span,
        (
            f"a total: `{left} = sum[k: K]({value})`",
            f"a recurrence: `seq t: T {{ acc[t] = pad(acc[t-1], 0) + {value} }}`",
        ),
        insert=(("EQUAL", "="),) if "EQUAL" in place.expected else (),
        skip=1,
    )


def wrong_equals(place: Place) -> Finding | None:
    """`==`, `:=`, `<-` or `:` where `=` belongs."""
    if "EQUAL" not in place.expected or place.here not in ("==", ":=", "=>", ":"):
        return None
    if place.here == ":" and place.layer == "compute":
        return None
    return Finding(
        rules.STATEMENT if place.layer == "compute" else rules.HEADER,
        f"`{place.here}` where a definition has `=`",
        place.span,
        ("write `=`",),
        insert=(("EQUAL", "="),),
        skip=1,
    )


def equals_inside(place: Place) -> Finding | None:
    """`=` inside an expression."""
    if place.here != "=" or place.layer not in ("compute", "top") or not place.wants_operator:
        return None
    opening = place.opener(place.at)
    called = opening >= 0 and place.text(opening) == "(" and place.is_word(opening - 1)
    if called and place.is_word(place.at - 1) and place.text(place.at - 2) in ("(", ","):
        return Finding(
            rules.NO_PYTHON,
            f"`{place.text(place.at - 1)}=`: arguments have no names",
            place.span_of(place.at - 1, place.at),
            ("give the arguments in their order",),
        )
    return Finding(
        rules.OPERATOR,
        "`=` inside an expression",
        place.span,
        ("a comparison is written `==`",),
        insert=(("EQ", "=="),),
        skip=1,
    )


def ternary(place: Place) -> Finding | None:
    """`c ? a : b`."""
    if place.here != "?" or not place.wants_operator:
        return None
    opening = place.opener(place.at)
    first = place.at
    while first - 1 > opening and place.text(first - 1) not in ("=", ",", "return"):
        first = min(first - 1, place.structure.match.get(first - 1, first))
    colon = next((j for j in range(place.at, place.stop) if place.text(j) == ":"), None)
    fix = "write `a if c else b`"
    if colon is not None:
        end = colon + 1
        while end < place.stop and place.text(end) not in (",", ";"):
            if place.text(end) in CLOSING and place.opener(end) <= opening:
                break
            end += 1
        cond, then = place.source(first, place.at), place.source(place.at + 1, colon)
        fix = f"write `{then} if {cond} else {place.source(colon + 1, end)}`"
    return Finding(rules.OPERATOR, "`c ? a : b` does not exist", place.span, (fix,))


def if_first(place: Place) -> Finding | None:
    """`if c then a else b`, `if (c) a else b`."""
    if place.word != "if" or not place.wants_operand:
        return None
    return Finding(
        rules.OPERATOR,
        "`if` stands between the value and the condition",
        place.span,
        ("write `a if c else b`",),
    )


def missing_else(place: Place) -> Finding | None:
    if "ELSE" not in place.expected:
        return None
    condition = next(
        (j for j in range(place.at - 1, place.start, -1) if place.text(j) == "if"), None
    )
    if condition is None or place.token(place.at).kind == "bad":
        return None
    ends = place.text(place.at) in (")", "]", "}", ",", ";", "", ":", "{")
    if not ends and not place.structure.starts_line(place.at):
        return None
    if place.structure.starts_line(condition) and place.opener(condition) < 0:
        return Finding(
            rules.STATEMENT,
            "there is no `if` statement",
            place.token(condition).span,
            ("choose between values: `y[i] = a if c else b`",),
        )
    opening = place.opener(condition)
    if opening > 0 and place.text(opening) == "[" and place.text(opening - 1) in REDUCTIONS:
        return Finding(
            rules.REDUCTION,
            "a filter of a reduction is a `where`",
            place.token(condition).span,
            (f"write `where {place.source(condition + 1, place.at)}`",),
        )
    return Finding(
        rules.OPERATOR,
        "an `if` without `else`",
        place.token(condition).span,
        (f"add the other value: `... if {place.source(condition + 1, place.at)} else 0`",),
    )


def where_outside(place: Place) -> Finding | None:
    if place.word != "where" or not (place.wants_operand or place.wants_operator):
        return None
    return Finding(
        rules.REDUCTION if place.wants_operator else rules.OPERATOR,
        "`where` stands only in the brackets of a reduction",
        place.span,
        ("a choice is written `a if c else b`", "a filter `sum[k: K where c](x)`"),
    )


SLIPS: tuple[Slip, ...] = (
    logical,
    update,
    wrong_equals,
    equals_inside,
    ternary,
    if_first,
    missing_else,
    where_outside,
)
