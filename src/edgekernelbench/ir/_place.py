"""The place of a syntax error, as the rules about common slips look at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from edgekernelbench.ir._blocks import Structure
from edgekernelbench.ir._scan import CLOSING, OPENING, Tok
from edgekernelbench.ir.diagnostics import Rule, Span, locate

Layer = Literal["top", "header", "kernel", "target", "compute", "schedule", "memory"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, and what to read instead in order to go on.

    Attributes:
        insert: terminals with their text to feed in place of the next ``skip`` tokens. The
            statement is given up when both are nothing.
        rewind: the insertion belongs before the statement, which is then read anew.
    """

    rule: Rule
    message: str
    span: Span
    help: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    insert: tuple[tuple[str, str], ...] = ()
    skip: int = 0
    rewind: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A token that the grammar cannot take, and its surroundings.

    Attributes:
        layer: the part of the file.
        start: index of the first token of the statement (or line, section, header).
        at: index of the offending token.
        stop: index at which the next statement begins.
        expected: the terminals that would have been legal.
        run_on: the statement "starts" in the middle of a line right after another expression, so
            that its first token is to blame.
    """

    structure: Structure
    layer: Layer
    start: int
    at: int
    stop: int
    expected: frozenset[str] = field(repr=False)
    run_on: bool = False

    # ---- tokens
    def token(self, index: int) -> Tok:
        return self.structure.token(index)

    def text(self, index: int) -> str:
        return self.structure.text(index)

    @property
    def word(self) -> str:
        """The offending token if it is a word, else nothing."""
        token = self.token(self.at)
        return token.text if token.kind == "word" else ""

    @property
    def here(self) -> str:
        return self.text(self.at)

    @property
    def span(self) -> Span:
        return self.token(self.at).span

    def span_of(self, first: int, last: int) -> Span:
        """From the first token to the last one, both included, on one line if possible."""
        return self.token(first).span.to(self.token(max(first, last)).span)

    def source(self, first: int, end: int) -> str:
        """The text from one token up to another, blanks folded; cut when it is long."""
        if end <= first:
            return ""
        raw = self.structure.scan.text[self.token(first).start : self.token(end - 1).end]
        words = " ".join(raw.split())
        return words if len(words) <= 80 else words[:77] + "..."

    def where(self, index: int) -> str:
        """``line:column`` of a token."""
        line, column, _ = locate(self.structure.scan.text, self.token(index).start)
        return f"{line}:{column}"

    def is_word(self, index: int) -> bool:
        return self.token(index).kind == "word"

    def glued(self, index: int) -> bool:
        """Whether no blank separates a token from the one before."""
        return index > 0 and self.token(index).start == self.token(index - 1).end

    # ---- brackets
    def opener(self, index: int) -> int:
        """The innermost bracket of the statement open before a token, or -1; unclosed count too."""
        return self._opener(index, self.start)

    def opener_anywhere(self) -> int:
        """The innermost bracket open before the offending token, or -1; unclosed ones count."""
        return self._opener(self.at, 0)

    def _opener(self, index: int, first: int) -> int:
        depth = 0
        for j in range(index - 1, first - 1, -1):
            text = self.text(j)
            if text in CLOSING:
                depth += 1
            elif text in OPENING:
                if depth == 0:
                    return j
                depth -= 1
        return -1

    def head(self, closer: int) -> int:
        """The word before the bracket that is closed at an index: ``f`` of ``f(...)``, or -1."""
        opening = self.structure.match.get(closer, 0)
        return opening - 1 if opening > 0 and self.is_word(opening - 1) else -1

    def rest(self) -> int:
        """End of the expression that goes on at the offending token: before an unpaired closing
        bracket, a comma, or the next statement."""
        j = self.at
        while j < self.stop:
            text = self.text(j)
            if text in OPENING and j in self.structure.match:
                j = self.structure.match[j] + 1
                continue
            if text in CLOSING or text in (",", ";"):
                break
            j += 1
        return min(j, self.stop)

    def after_equals(self) -> bool:
        """Whether the statement's ``=`` lies before the offending token."""
        return any(self.text(j) == "=" for j in range(self.start, self.at))

    # ---- what would be legal
    @property
    def wants_operand(self) -> bool:
        return "INT" in self.expected

    @property
    def wants_operator(self) -> bool:
        return "STAR" in self.expected or self.run_on


Slip = Callable[[Place], Finding | None]
