"""Splits a kernel text into tokens, and refuses texts that are too large or malformed to go on.

One pass of one regular expression, linear in the text. Everything a hostile text could use to
make later passes slow or deep (size, nesting, huge literals) is bounded here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir.diagnostics import Report, Span

MAX_BYTES = 256 * 1024
MAX_TOKENS = 60_000
MAX_NESTING = 100
MAX_INT = 1 << 63
_MAX_DIGITS = 64

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: open_ for open_, close in OPENING.items()}


class Tok(NamedTuple):
    """A token: kind is word, int, float, op, bad or end; offsets are half-open."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(slots=True)
class Scan:
    """The tokens of a text, the last one being the end, and its brackets.

    Attributes:
        tokens: all tokens, comments and blanks left out.
        match: for the index of each matched bracket that of its partner.
        parent: for each token the index of the innermost matched bracket around it, or -1.
    """

    text: str
    tokens: list[Tok]
    match: dict[int, int] = field(default_factory=dict)
    parent: list[int] = field(default_factory=list)


_TOKEN = re.compile(
    r"""
    (?P<skip>(?:[ \t\r\n]+|\#[^\n]*)+)
  | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
        |[0-9]+\.(?!\.)(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<int>0[xX][0-9a-fA-F]+|[0-9]+)
  | (?P<op>\.\.|->|\*\*|//|<<|>>|==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|:=|=>
        |[-+*/%<>=&|^~()\[\]{},:;.?!])
  | (?P<bad>[^\x00-\x7f]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)

# Control characters, lone surrogates, and the marks that reorder text on a reader's screen.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def scan(text: str, report: Report) -> Scan | None:
    """Tokens of the text, or None when a limit is passed. Findings go to the report."""
    if not _acceptable(text, report):
        return None
    tokens: list[Tok] = []
    for m in _TOKEN.finditer(text):
        kind = m.lastgroup
        if kind != "skip" and kind is not None:
            tokens.append(Tok(kind, m.group(), m.start(), m.end()))
    if len(tokens) > MAX_TOKENS:
        report.error(
            rules.TOO_LONG, f"the text has {len(tokens):,} words and signs", tokens[MAX_TOKENS].span
        )
        return None
    tokens.append(Tok("end", "", len(text), len(text)))
    result = Scan(text, tokens)
    _check_literals(result, report)
    return result if _shallow(result, report) else None


def _acceptable(text: str, report: Report) -> bool:
    """Size and characters of the whole text, before anything is done with it."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        report.error(rules.TOO_LONG, f"the text has {len(text):,} characters", None)
        return False
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        report.error(
            rules.CHARACTER,
            f"the character U+{ord(bad.group()):04X} is not allowed",
            Span(bad.start(), bad.end()),
        )
        return False
    return True


def _check_literals(result: Scan, report: Report) -> None:
    """Report literals that are too large, and read them as 0 from here on."""
    for index, token in enumerate(result.tokens):
        if token.kind == "int" and _too_large_int(token.text):
            message, fixes = f"the integer {_short(token.text)} is too large", []
        elif token.kind == "float" and _too_large_float(token.text):
            message = f"the number {_short(token.text)} does not fit into f64"
            fixes = ["write `inf` for infinity"]
        else:
            continue
        report.error(rules.NUMBER, message, token.span, fixes)
        result.tokens[index] = token._replace(text="0")


def _too_large_int(text: str) -> bool:
    base = 16 if text[:2] in ("0x", "0X") else 10
    digits = text[2:] if base == 16 else text
    digits = digits.lstrip("0") or "0"
    return len(digits) > _MAX_DIGITS or int(digits, base) > MAX_INT


def _too_large_float(text: str) -> bool:
    return len(text) > 8 * _MAX_DIGITS or float(text) == float("inf")


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:20] + "..."


def _shallow(result: Scan, report: Report) -> bool:
    depth = 0
    for token in result.tokens:
        if token.text in OPENING:
            depth += 1
            if depth > MAX_NESTING:
                report.error(
                    rules.TOO_DEEP, f"more than {MAX_NESTING} brackets are open here", token.span
                )
                return False
        elif token.text in CLOSING:
            depth = max(0, depth - 1)
    return True
