"""Characters and literals that the language does not have."""

from __future__ import annotations

import unicodedata

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir._place import Finding, Place, Slip

_INSTEAD = {
    "×": "write `*`",
    "·": "write `*`",
    "⋅": "write `*`",
    "÷": "write `/` or `//`",
    "−": "write `-`",
    "–": "write `-`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "→": "write `->`",
    "∑": "write `sum[k: K](...)`",
    "Σ": "write `sum[k: K](...)`",
    "∞": "write `inf`",
    "π": "write `pi`",
    "²": "write `**2`",
    "…": "write `..`",
    "`": "give the kernel alone, without Markdown fences",
    "@": "write a matrix product as `sum[k: K](x[i, k] * w[k, j])`",
    "\\": "newlines are free: no continuation sign is needed",
    "$": "names consist of letters, digits and `_`",
}
_QUOTES = frozenset("\"'“”‘’")


def character(place: Place) -> Finding | None:
    token = place.token(place.at)
    if token.kind != "bad":
        return None
    char = token.text[0]
    if char in _QUOTES:
        return Finding(rules.NO_STRINGS, "a string in a kernel text", place.span)
    name = unicodedata.name(char, f"U+{ord(char):04X}").lower()
    shown = f"`{char}`" if char.isprintable() and char != "`" else "a backquote"
    if not char.isprintable():
        shown = f"U+{ord(char):04X}"
    instead = _INSTEAD.get(char)
    return Finding(
        rules.CHARACTER,
        f"{shown} ({name}) is no sign of the language",
        place.span,
        (instead,) if instead else (),
    )


def number_suffix(place: Place) -> Finding | None:
    """`1.0f`, `1_000`, `0b11`, `2x`."""
    number, word = place.token(place.at - 1), place.token(place.at)
    if number.kind not in ("int", "float") or word.kind != "word" or not place.glued(place.at):
        return None
    span = place.span_of(place.at - 1, place.at)
    whole = number.text + word.text
    if word.text.lower() in ("f", "u", "l", "ul", "ll", "h", "lf", "f32", "f16"):
        fix = f"write `{number.text}`; a dtype is given by a cast, `f32({number.text})`"
        return Finding(rules.NUMBER, f"`{whole}` has a suffix", span, (fix,))
    if word.text.replace("_", "").isdigit():
        fix = f"write `{whole.replace('_', '')}`"
        return Finding(rules.NUMBER, f"`{whole}` has underscores", span, (fix,))
    fix = f"write `{number.text} * {word.text}` if a product is meant"
    return Finding(rules.NUMBER, f"`{whole}` is no number", span, (fix,))


def comment(place: Place) -> Finding | None:
    """`// ...`, `/* ... */` and `-- ...` where a comment was meant."""
    structure = place.structure
    for j in range(place.at, max(place.start - 3, -1), -1):
        text = structure.text(j)
        block = text == "/" and structure.text(j + 1) == "*" and place.glued(j + 1)
        line = text == "//" and (structure.starts_line(j) or _prose(place, j))
        if block or line:
            span = place.span_of(j, j + 1) if block else place.token(j).span
            return Finding(
                rules.CHARACTER,
                f"`{'/*' if block else text}` begins no comment",
                span,
                ("comments begin with `#`",),
            )
        if structure.starts_line(j) and j <= place.start:
            break
    return None


def _prose(place: Place, slashes: int) -> bool:
    """Whether `//` is followed by two words, which no division is."""
    return place.is_word(slashes + 1) and place.is_word(slashes + 2) and not place.glued(slashes)


SLIPS: tuple[Slip, ...] = (character, comment, number_suffix)
