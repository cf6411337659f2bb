"""Slips of statements: loops that do not exist, left sides, definitions."""

from __future__ import annotations

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir import words
from edgekernelbench.ir._place import Finding, Place, Slip

_LOOPS = ("for", "while", "loop", "foreach", "parfor", "prange", "repeat", "do")
_DECLARES = frozenset({"var", "const", "auto", "val", "static", "tensor", "local", "int", "float"})


def for_loop(place: Place) -> Finding | None:
    """`for i in range(N) { ... }`."""
    if place.layer not in ("compute", "top") or place.text(place.start) not in _LOOPS:
        return None
    if place.at > place.start + 2 or place.after_equals():
        return None
    axis = place.text(place.start + 1) if place.is_word(place.start + 1) else "i"
    return Finding(
        rules.LOOP,
        f"there is no `{place.text(place.start)}` loop",
        place.token(place.start).span,
        (
            f"independent elements are axes: `y[{axis}: N] = ...`",
            "a total is a reduction: `sum[k: K](...)`",
            f"a recurrence is `seq {axis}: N {{ ... }}`, independent runs of it `each {axis}: N`",
        ),
    )


def loop_head(place: Place) -> Finding | None:
    """`seq t in 0..L {`, `seq t = 0..L {`, `seq (t: L) {`, `seq t: L, ...`."""
    first = place.text(place.start)
    if place.layer != "compute" or first not in ("seq", "each"):
        return None
    if place.here in ("in", "=") and place.expected == {"COLON"}:
        brace = place.at + 1
        while brace < place.stop and place.text(brace) != "{":
            brace += 1
        return Finding(
            rules.LOOP,
            f"`{place.here}` where `:` belongs",
            place.span,
            (f"write `{first} {place.text(place.at - 1)}: {place.source(place.at + 1, brace)}`",),
            insert=(("COLON", ":"),),
            skip=1,
        )
    if place.expected == {"COLON"} or ("NAME" in place.expected and place.at == place.start + 1):
        return Finding(
            rules.LOOP,
            f"`{first}` needs one axis with its extent",
            place.span,
            (f"write `{first} t: L {{ ... }}`",),
        )
    hint = words.did_you_mean(place.word, ("reversed",))
    if hint is None and place.word not in ("reverse", "backward", "downto", "descending"):
        return None
    return Finding(
        rules.LOOP,
        f"`{place.word}` behind a loop's range",
        place.span,
        ("did you mean `reversed`?",),
        insert=(("REVERSED", "reversed"),),
        skip=1,
    )


def loop_word(place: Place) -> Finding | None:
    """`t: L { ... }`."""
    braced = any(
        place.text(j) == "{" and not place.structure.starts_line(j)
        for j in range(place.at, min(place.at + 8, place.stop))
    )
    if place.layer != "compute" or place.at != place.start + 2 or not braced:
        return None
    if place.text(place.at - 1) != ":" or place.text(place.at + 1) in ("=", "["):
        return None
    head = place.source(place.start, place.at + 1)
    return Finding(
        rules.LOOP,
        "a loop without its word",
        place.token(place.start).span,
        (f"write `seq {head} {{ ... }}` or `each {head} {{ ... }}`",),
    )


def control(place: Place) -> Finding | None:
    """`if c { ... }`, `return x` as statements."""
    if place.layer != "compute" or place.at != place.start:
        return None
    if place.word in ("if", "else"):
        return Finding(
            rules.STATEMENT,
            "there is no `if` statement",
            place.span,
            ("choose between values: `y[i] = a if c else b`",),
        )
    if place.word == "return":
        return Finding(
            rules.STATEMENT,
            "a layer returns nothing",
            place.span,
            ("define the output by its name: `y[i] = ...`",),
        )
    return None


def reserved_left(place: Place) -> Finding | None:
    """`let[i: M] = ...`, `seq = ...`."""
    name = place.text(place.start)
    if place.layer != "compute" or name not in words.RESERVED or place.at != place.start + 1:
        return None
    if place.here not in ("[", "=", ",") or name == "if":
        return None
    return Finding(
        rules.RESERVED,
        f"`{name}` is a reserved word",
        place.token(place.start).span,
        ("choose another name",),
    )


def left_side(place: Place) -> Finding | None:
    """`h[t-1] = ...`, `y[i: 0..N] = ...`, `y(i) = ...`, `(a, b) = ...`, `y[i]: f32 = ...`."""
    if place.layer not in ("compute", "top") or place.after_equals():
        return None
    if place.at == place.start:
        if place.here == "(":
            fix = ("write `a, b = f(...)`, with axes `a[i: M], b[i: M] = f(...)`",)
            return Finding(rules.LEFT_SIDE, "names on the left stand bare", place.span, fix)
        return None
    name = place.text(place.start)
    if not place.is_word(place.start) or name in words.RESERVED:
        return None
    if (mixed := _mixed_left(place)) is not None:
        return mixed
    if place.at == place.start + 1:
        return _after_name(place, name)
    opening = place.opener(place.at)
    if opening >= 0 and place.text(opening) == "[":
        return _left_axis(place, name)
    if place.text(place.at - 1) == "]":
        return _after_brackets(place, name)
    return None


def _after_name(place: Place, name: str) -> Finding | None:
    if place.here == "(":
        close = place.structure.match.get(place.at, place.at)
        inner = place.source(place.at + 1, close)
        if place.text(close + 1) == "=":
            fix = f"write `{name}[{inner}] = ...`; a macro is `def {name}({inner}) = ...`"
            return Finding(rules.LEFT_SIDE, "a stage has square brackets", place.span, (fix,))
        fix = f"give the result a name: `y = {name}(...)`"
        return Finding(rules.STATEMENT, f"`{name}(...)` defines nothing", place.span, (fix,))
    if place.here == ".":
        fix = "choose a name of letters, digits and `_`"
        return Finding(rules.LEFT_SIDE, "a dot in a stage's name", place.span, (fix,))
    if not place.is_word(place.at):
        return None
    hint = words.did_you_mean(name, words.STATEMENT_WORDS)
    if hint is not None and hint != name:
        return Finding(
            rules.STATEMENT,
            f"no statement begins with `{name}`",
            place.token(place.start).span,
            (f"did you mean `{hint}`?",),
        )
    if name in _DECLARES or name in words.DTYPE_ALIASES:
        fix = f"write `{place.here} = ...`, or `{place.here}: f32 = ...` for a dtype"
        return Finding(
            rules.STATEMENT, "there are no declarations", place.token(place.start).span, (fix,)
        )
    return None


def _left_axis(place: Place, name: str) -> Finding | None:
    if place.here == "..":
        fix = f"axes on the left run from 0: write `{name}[i: N] = ...`"
        return Finding(rules.LEFT_SIDE, "a range on the left", place.span, (fix,))
    if place.here == "=":
        fix = f"write `{name}[i: N] = ...`"
        return Finding(rules.LEFT_SIDE, "an extent is given with `:`", place.span, (fix,))
    if place.here == "]" or place.here == "[":
        return None
    return Finding(
        rules.LEFT_SIDE,
        f"`{place.here}` among the axes of `{name}`",
        place.span,
        (
            f"write `{name}[i: M, j] = ...`: each item an axis or a loop index, by its bare name",
            "special elements are cases: `y[i: N] = a if i == 0 else b`",
        ),
    )


def _after_brackets(place: Place, name: str) -> Finding | None:
    head = place.source(place.start + 1, place.at)
    if place.here == ":":
        fix = f"write `{name}: f32{head} = ...`"
        return Finding(rules.LEFT_SIDE, "the dtype stands before the axes", place.span, (fix,))
    return None


def _mixed_left(place: Place) -> Finding | None:
    """`a[i: M], b = ...` and `a, b[i: M] = ...`."""
    bare = place.here == "=" and "LSQB" in place.expected
    if not (place.is_word(place.at - 1) and place.text(place.at - 2) == ","):
        return None
    if not bare and not (place.here == "[" and place.expected == {"COMMA", "EQUAL"}):
        return None
    return Finding(
        rules.LEFT_SIDE,
        "one of several stages has axes, another none",
        place.span,
        ("write the axes behind every name: `a[i: M], b[i: M] = f(...)`",),
    )


def declaration(place: Place) -> Finding | None:
    """`f32 acc = 0`."""
    if place.layer != "compute" or place.at != place.start or place.word not in words.DTYPES:
        return None
    if not place.is_word(place.at + 1):
        return Finding(
            rules.RESERVED,
            f"`{place.word}` is a reserved word",
            place.span,
            ("choose another name",),
        )
    name = place.text(place.at + 1)
    fix = f"write `{name}: {place.word} = ...` if the dtype matters, else `{name} = ...`"
    return Finding(rules.STATEMENT, "there are no declarations", place.span, (fix,))


def definition(place: Place) -> Finding | None:
    """`def f(x): ...`, `def f(x) { return ... }`, `def f(x: f32) = ...`."""
    if place.text(place.start) != "def" or place.layer not in ("compute", "top"):
        return None
    head = place.source(place.start, place.at).removesuffix(":")
    if place.here in (":", "{", "->") and place.expected == {"EQUAL"}:
        body = _macro_body(place)
        return Finding(
            rules.STATEMENT,
            f"`{place.here}` where a macro has `=`",
            place.span,
            (f"write `{head} = {body}`",),
        )
    if place.here == ":":
        return Finding(
            rules.STATEMENT,
            "parameters of a macro have no dtypes",
            place.span,
            ("write `def f(a, b) = expr`",),
        )
    return None


def _macro_body(place: Place) -> str:
    first = place.at + (place.here != "{")
    end = place.stop
    if place.here == "{" and place.text(place.at + 1) == "return":
        first, end = place.at + 1, place.structure.match.get(place.at, end)
    if place.text(first) == "return":
        first += 1
    return place.source(first, end) or "expr"


def table_form(place: Place) -> Finding | None:
    if place.text(place.start) != "table" or place.layer not in ("compute", "top"):
        return None
    if not place.expected & {"COLON", "LSQB"} or place.here not in ("[", "="):
        return None
    name = place.text(place.start + 1)
    return Finding(
        rules.STATEMENT,
        "a table has a dtype and extents",
        place.span,
        (f"write `table {name}: f32[2, 2] = [[1, 0], [0.5, -1]]`",),
    )


def let_forms(place: Place) -> Finding | None:
    """`let a: f32 = ...`, `let a, b = ...`."""
    let = next((j for j in (place.at - 1, place.at - 2) if place.text(j) == "let"), -1)
    if place.here == "(" and let == place.at - 1 == place.start:
        return Finding(
            rules.STATEMENT,
            "a `let` between stages names one number",
            place.span,
            ("tuples are taken apart in a block: `y[i] = { let (a, b) = f(x)  return a }`",),
        )
    if let < 0 or not place.is_word(let + 1):
        return None
    name = place.text(let + 1)
    if place.here == ":":
        fix = f"write `let {name} = f32(...)`, or `{name} = ...`"
        return Finding(rules.BLOCK, "a `let` has no dtype", place.span, (fix,))
    if place.here == "[":
        fix = f"write `{name}[i: N] = ...`, without `let`"
        return Finding(rules.BLOCK, "a `let` names a number, not a tensor", place.span, (fix,))
    if place.here == ",":
        fix = f"write `let ({name}, {place.text(place.at + 1)}) = ...`"
        return Finding(
            rules.BLOCK, "several names of a `let` stand in parentheses", place.span, (fix,)
        )
    return None


SLIPS: tuple[Slip, ...] = (
    reserved_left,
    let_forms,
    for_loop,
    loop_head,
    control,
    left_side,
    declaration,
    definition,
    table_form,
)
