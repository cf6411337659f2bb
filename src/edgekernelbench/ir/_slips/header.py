"""Slips in the header: dtypes, `->`, missing names and parentheses."""

from __future__ import annotations

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir import words
from edgekernelbench.ir._place import Finding, Place, Slip
from edgekernelbench.ir.dtypes import DType

_ALL = ", ".join(dtype.value for dtype in DType)


def dtype(place: Place) -> Finding | None:
    """`float32`, `int8`, `bf16`, or anything else where a dtype belongs."""
    if "DTYPE" not in place.expected or "INT" in place.expected or not place.word:
        return None
    word = place.word
    meant = words.DTYPE_ALIASES.get(word) or words.did_you_mean(word, sorted(words.DTYPES))
    if word in words.RESERVED:
        return None
    if word in words.DTYPE_ALIASES and words.DTYPE_ALIASES[word] is None:
        meant = None
    fix = f"write `{meant}`" if meant else f"dtypes are {_ALL}"
    after = place.text(place.at + 1)
    doubled = after in words.DTYPES
    sure = doubled or after in ("=", "[", ",", ")")
    return Finding(
        rules.DTYPE,
        f"`{word}` is no dtype of the language",
        place.span,
        (fix,),
        insert=() if doubled or not sure else (("DTYPE", meant or "f32"),),
        skip=1 if sure else 0,
    )


def missing_dtype(place: Place) -> Finding | None:
    """`x[N]`, `x: [N]`, `x`."""
    if place.layer != "header" or not place.expected & {"COLON", "DTYPE"}:
        return None
    if place.here not in ("[", ",", ")") or "EQUAL" in place.expected:
        return None
    name = place.at - 1 if place.is_word(place.at - 1) else place.at - 2
    dims = ""
    if place.here == "[":
        dims = place.source(place.at, place.structure.match.get(place.at, place.at) + 1)
    fix = f"write `{place.text(name)}: f32{dims}`"
    return Finding(
        rules.HEADER, f"`{place.text(name)}` has no dtype", place.token(name).span, (fix,)
    )


def round_dims(place: Place) -> Finding | None:
    """`x: f32(N)`."""
    dtype = place.text(place.at - 1)
    if place.layer != "header" or place.here != "(" or dtype not in words.DTYPES:
        return None
    close = place.structure.match.get(place.at, place.at)
    fix = f"write `{dtype}[{place.source(place.at + 1, close)}]`"
    return Finding(rules.HEADER, "extents stand in square brackets", place.span, (fix,))


def const_place(place: Place) -> Finding | None:
    """`const x: f32[N]` and `x: f32[N] const`."""
    if place.layer != "header":
        return None
    const = next((j for j in (place.at, place.at - 1) if place.text(j) == "const"), None)
    if const is None:
        return None
    return Finding(
        rules.HEADER,
        "`const` stands before the dtype",
        place.token(const).span,
        ("write `w: const f32[N]`",),
    )


def arrow(place: Place) -> Finding | None:
    """A missing or misspelt `->` before the outputs."""
    if place.layer not in ("header", "top", "compute") or "ARROW" not in place.expected:
        return None
    kind = "header" if place.layer == "header" else "template head"
    if place.here in ("=>", ":", "="):
        fix = "write `->`"
        message = f"`{place.here}` before the outputs"
        insert, skip = (("ARROW", "->"),), 1
    elif place.here == "(":
        fix, message = "write `(inputs) -> (outputs)`", "`->` is missing before the outputs"
        insert, skip = (("ARROW", "->"),), 0
    elif place.here == "{":
        fix, message = "write `(inputs) -> (outputs) {`", f"the {kind} names no outputs"
        insert, skip = (), 0
    else:
        return None
    rule = rules.HEADER if kind == "header" else rules.STATEMENT
    return Finding(rule, message, place.span, (fix,), insert=insert, skip=skip)


def outputs_bare(place: Place) -> Finding | None:
    """`-> y: f32[N]` without parentheses."""
    if place.text(place.at - 1) != "->" or "LPAR" not in place.expected or place.here == "(":
        return None
    if not place.word:
        return None
    rule = rules.HEADER if place.layer == "header" else rules.STATEMENT
    brace = place.at
    while brace < place.at + 40 and place.text(brace) not in ("{", ""):
        brace += 1
    fix = f"write `-> ({place.source(place.at, brace)})`"
    return Finding(rule, "outputs stand in parentheses", place.span, (fix,))


def kernel_name(place: Place) -> Finding | None:
    """`kernel(...)`, `kernel [M=4](...)`: no name. A bare `kernel` reads as a name itself."""
    if place.layer != "top" or "NAME" not in place.expected or place.text(place.at - 1) != "kernel":
        return None
    return Finding(rules.HEADER, "the kernel has no name", place.span, _NAME_FIX)


_NAME_FIX = ("write `kernel name[M=4](x: f32[M]) -> (y: f32[M])`",)


def no_kernel(place: Place) -> Finding | None:
    """The file begins with something else, or ends before a kernel."""
    if place.layer != "top" or "KERNEL" not in place.expected:
        return None
    if place.here == "kernel":
        return Finding(
            rules.HEADER,
            "the kernel has no name",
            place.span,
            _NAME_FIX,
            insert=(("KERNEL", "kernel"), ("NAME", "kernel")),
            skip=1,
        )
    form = ("a file reads `kernel name[M=4](x: f32[M]) -> (y: f32[M]) { compute { ... } }`",)
    if place.token(place.at).kind == "end":
        return Finding(rules.ONE_KERNEL, "there is no kernel in this text", place.span, form)
    hint = words.did_you_mean(place.here, ("kernel", "def", "template", "table"))
    if hint is not None and place.is_word(place.at + 1):
        form = (f"did you mean `{hint}`?",)
    elif place.here in ("let", "seq", "each") or place.structure.begins(place.at):
        form = ("only `def`, `template` and `table` stand before `kernel`",)
    found = place.source(place.at, min(place.at + 3, place.stop))
    return Finding(rules.ONE_KERNEL, f"a file does not begin with `{found}`", place.span, form)


def size_value(place: Place) -> Finding | None:
    """`[M, N]`, `[M: 128]`."""
    if place.layer != "header" or place.expected != {"EQUAL"}:
        return None
    if place.here == ":":
        return Finding(
            rules.HEADER,
            "a size is defined with `=`",
            place.span,
            (f"write `{place.text(place.at - 1)}={place.text(place.at + 1)}`",),
            insert=(("EQUAL", "="),),
            skip=1,
        )
    if place.here in (",", "]"):
        name = place.text(place.at - 1)
        fix = f"write `{name}=128`, with its number"
        return Finding(
            rules.HEADER, f"the size `{name}` has no value", place.token(place.at - 1).span, (fix,)
        )
    return None


SLIPS: tuple[Slip, ...] = (
    const_place,
    dtype,
    round_dims,
    missing_dtype,
    arrow,
    outputs_bare,
    kernel_name,
    no_kernel,
    size_value,
)
