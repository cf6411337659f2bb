"""Slips inside expressions: reductions, indexing, blocks, pieces of Python."""

from __future__ import annotations

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir import words
from edgekernelbench.ir._place import Finding, Place, Slip


def reduction_body(place: Place) -> Finding | None:
    """`sum[k: K] x[k] * y[k]`: the body's parentheses are missing."""
    if place.expected != {"LPAR"} or place.text(place.at - 1) != "]":
        return None
    head = place.head(place.at - 1)
    if head < 0:
        return None
    axes, op = place.source(head + 1, place.at), place.text(head)
    if op not in words.REDUCTIONS:
        return _slice(place, head)
    body = place.source(place.at, place.rest())
    fix = f"write `{op}{axes}({body or '...'})`"
    return Finding(rules.REDUCTION, f"the body of `{op}` is not in parentheses", place.span, (fix,))


def reduction_axis(place: Place) -> Finding | None:
    """`sum[k] x[k]`, `sum[k](x[k])`: an axis without extent."""
    if place.text(place.at - 1) != "]" or not (place.wants_operator or place.run_on):
        return None
    head = place.head(place.at - 1)
    if head < 0 or place.text(head) not in words.REDUCTIONS:
        return None
    op, axes = place.text(head), place.source(head + 2, place.at - 1)
    if place.here == "(":
        close = place.structure.match.get(place.at, place.at)
        body = place.source(place.at + 1, close)
    else:
        body = place.source(place.at, place.rest())
    with_extents = ", ".join(f"{axis.strip()}: ..." for axis in axes.split(",") if axis.strip())
    return Finding(
        rules.REDUCTION,
        f"the axes of `{op}` have no extents",
        place.span_of(head, place.at - 1),
        (f"write `{op}[{with_extents}]({body})`, each axis with its extent, such as `k: K`",),
    )


def reduction_call(place: Place) -> Finding | None:
    """`sum(k: K) x[k]`, `sum(k in K, ...)`, `sum(x[k] for k in range(K))`."""
    opening = place.opener(place.at)
    if opening < 1 or place.text(opening) != "(" or place.text(opening - 1) not in words.REDUCTIONS:
        return None
    op = place.text(opening - 1)
    close = place.structure.match.get(opening, place.at)
    if place.here == ":":
        inner = place.source(opening + 1, close)
        after = close + 1
        if place.text(after) == "(":
            body = place.source(after + 1, place.structure.match.get(after, after + 1))
        else:
            body = place.source(after, place.stop)
        fix = f"write `{op}[{inner}]({body or '...'})`"
    elif place.word == "for":
        fix = f"write `{op}[k: K]({place.source(opening + 1, place.at)})`"
    else:
        return None
    return Finding(
        rules.REDUCTION,
        f"the axes of `{op}` stand in square brackets, before the body",
        place.span_of(opening - 1, place.at),
        (fix,),
    )


def reduction_range(place: Place) -> Finding | None:
    """`sum[k in 0..K](...)`, `sum[k = 0..K](...)`, `sum[k: 0:K](...)`."""
    opening = place.opener(place.at)
    if opening < 1 or place.text(opening) != "[" or place.text(opening - 1) not in words.REDUCTIONS:
        return None
    if place.word != "in" and place.here not in ("=", ":"):
        return None
    op = place.text(opening - 1)
    return Finding(
        rules.REDUCTION,
        f"`{place.here}` in the axes of `{op}`",
        place.span,
        (f"write `{op}[k: K](...)` or `{op}[k: lo..hi](...)`; hi is excluded",),
    )


def double_brackets(place: Place) -> Finding | None:
    """`x[i][j]`, `f(x)[i]`."""
    if place.here != "[" or place.text(place.at - 1) not in ("]", ")"):
        return None
    if place.text(place.at - 1) == ")":
        return Finding(
            rules.INDEXING,
            "only a tensor's name can be indexed",
            place.span,
            ("make the value a stage of its own, `t[i: N] = ...`, and read `t[i]`",),
        )
    head = place.head(place.at - 1)
    if head < 0:
        return None
    close = place.structure.match.get(place.at, place.at)
    inner = [place.source(head + 2, place.at - 1), place.source(place.at + 1, close)]
    fix = f"write `{place.text(head)}[{', '.join(inner)}]`"
    rule = rules.INDEXING if place.after_equals() else rules.LEFT_SIDE
    return Finding(rule, "two pairs of brackets", place.span_of(place.at - 1, place.at), (fix,))


def _slice(place: Place, head: int) -> Finding:
    return Finding(
        rules.NO_PYTHON,
        f"`{place.source(head, place.at)}` is a slice; there are none",
        place.span_of(head, place.at - 1),
        (
            "read single elements, `x[i, j + k]`, with an axis for each index",
            f"reductions are {', '.join(words.REDUCTIONS)}, with the body in parentheses",
        ),
    )


def slice_in_index(place: Place) -> Finding | None:
    """`x[i, :]`, `x[1:4]`."""
    if place.here != ":":
        return None
    opening = place.opener(place.at)
    if opening < 1 or place.text(opening) != "[" or not place.is_word(opening - 1):
        return None
    if not place.after_equals() or place.text(opening - 1) in words.REDUCTIONS:
        return None
    name = place.text(opening - 1)
    return Finding(
        rules.NO_PYTHON,
        f"a slice of `{name}`; there are none",
        place.span,
        (
            "read single elements, with an axis for each index",
            f"a macro or template argument may leave the last indices away: `f({name}[i])`",
        ),
    )


def attribute(place: Place) -> Finding | None:
    """`x.shape[0]`, `np.exp(x)`."""
    if place.here != "." or place.layer not in ("compute", "top", "header"):
        return None
    owner, member = place.text(place.at - 1), place.text(place.at + 1)
    if member in ("shape", "size"):
        fix = f"the extent of an axis is `dim({owner}, 0)`"
    elif place.text(place.at + 2) == "(":
        fix = f"functions stand alone: `{member}(...)`"
    else:
        fix = "read a tensor's element as `x[i]`"
    return Finding(rules.NO_PYTHON, f"`.{member}`: there are no attributes", place.span, (fix,))


def python_lambda(place: Place) -> Finding | None:
    for j in (place.at, place.at - 1):
        if place.text(j) == "lambda":
            return Finding(
                rules.NO_PYTHON,
                "there are no lambdas",
                place.token(j).span,
                ("define a macro before the kernel: `def f(a, b) = a + b`",),
            )
    return None


def comprehension(place: Place) -> Finding | None:
    if place.word != "for" or place.layer != "compute" or place.at == place.start:
        return None
    if place.wants_operand:
        return None
    return Finding(
        rules.NO_PYTHON,
        "there are no comprehensions",
        place.span,
        ("the axes of a stage are its loops: `y[i: N] = ...`", "a total is `sum[k: K](...)`"),
    )


def block_end(place: Place) -> Finding | None:
    """A block without `return` or with statements that are no `let`."""
    if "RETURN" not in place.expected:
        return None
    if place.here == "}":
        message = "a block without `return`"
    elif place.is_word(place.at) and place.text(place.at + 1) == "=":
        message = f"`{place.here} = ...` in a block lacks its `let`"
    else:
        message = "a block holds `let`s and then one `return`"
    return Finding(rules.BLOCK, message, place.span, ("write `{ let a = ...  return expr }`",))


def call_axes(place: Place) -> Finding | None:
    """`reduce(sum, k: K, x[k])`: an axis among the arguments of a call."""
    opening = place.opener(place.at)
    if place.here != ":" or place.layer != "compute" or not place.after_equals():
        return None
    if opening < 1 or place.text(opening) != "(" or not place.is_word(opening - 1):
        return None
    axis = place.source(place.at - 1, place.at + 2)
    return Finding(
        rules.REDUCTION,
        f"an axis among the arguments of `{place.text(opening - 1)}`",
        place.span_of(place.at - 1, place.at),
        (f"reductions read `sum[{axis}](...)`; there are {', '.join(words.REDUCTIONS)}",),
    )


def dtype_read(place: Place) -> Finding | None:
    """`s8[i]`: a dtype read like a tensor."""
    word = place.text(place.at - 1)
    if word not in words.DTYPES or place.expected != {"LPAR"}:
        return None
    return Finding(
        rules.RESERVED,
        f"`{word}` is a dtype, not a tensor",
        place.token(place.at - 1).span,
        (f"a cast reads `{word}(x)`",),
    )


def reserved(place: Place) -> Finding | None:
    """A reserved word where a name is expected."""
    if place.word not in words.RESERVED or "NAME" not in place.expected:
        return None
    if place.structure.begins(place.at) or place.word in ("if", "not"):
        return None
    return Finding(
        rules.RESERVED, f"`{place.word}` is a reserved word", place.span, ("choose another name",)
    )


def unfinished(place: Place) -> Finding | None:
    """An expression that ends in an operator, seen only when the next statement begins."""
    begins = (j for j in range(place.at, place.start, -1) if place.structure.starts_line(j))
    line = next((j for j in begins if place.structure.begins(j)), None)
    if line is None:
        return None
    before = place.token(line - 1)
    if before.kind != "op" or before.text in (")", "]", "}", "{", ";"):
        return None
    return Finding(
        rules.EXPRESSION,
        f"the line ends in `{before.text}`, and a new statement begins",
        before.span,
        ("an operand is missing behind it",),
    )


def run_on(place: Place) -> Finding | None:
    """Two operands side by side."""
    if not place.run_on:
        return None
    left, right = place.token(place.at - 1), place.token(place.at)
    if left.text in ("reduce", "reduction", "fold"):
        return Finding(
            rules.REDUCTION,
            f"`{left.text}` is no word of the language",
            left.span,
            (f"reductions read `sum[k: K](...)`; there are {', '.join(words.REDUCTIONS)}",),
        )
    hint = words.did_you_mean(right.text, words.INFIX_WORDS)
    if hint is not None:
        return Finding(
            rules.EXPRESSION,
            f"`{right.text}` is no operator",
            place.span,
            (f"did you mean `{hint}`?",),
        )
    return Finding(
        rules.EXPRESSION,
        f"an operator is missing between `{left.text}` and `{right.text}`",
        place.span_of(place.at - 1, place.at),
        ("put an operator between them, or `;` if a new statement begins",),
    )


def misspelt(place: Place) -> Finding | None:
    """A word that nearly is a legal one."""
    if not place.word or place.layer != "compute" or "ELSE" not in place.expected:
        return None
    hint = words.did_you_mean(place.word, words.INFIX_WORDS)
    if hint is None:
        return None
    fix = f"did you mean `{hint}`?"
    return Finding(rules.EXPRESSION, f"`{place.word}` is no operator", place.span, (fix,))


SLIPS: tuple[Slip, ...] = (
    python_lambda,
    reduction_body,
    reduction_axis,
    reduction_call,
    double_brackets,
    slice_in_index,
    attribute,
    comprehension,
    block_end,
    call_axes,
    dtype_read,
    reserved,
    misspelt,
    run_on,
)
