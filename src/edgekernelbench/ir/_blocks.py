"""Where brackets pair up and where statements seem to begin, judged by the tokens alone.

Error recovery needs both in texts that do not parse. What is found here is never used for texts
that do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from edgekernelbench.ir._scan import CLOSING, OPENING, Scan, Tok
from edgekernelbench.ir.words import DTYPE_ALIASES, DTYPES, word_set

NOTHING = Tok("none", "", 0, 0)

_ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", ":=", "=="})
_LEADING = frozenset({"seq", "each", "let", "def", "template"})
_TITLES = frozenset({"kernel", "table", "combiner"})
_LINES = frozenset({"loops", "place", "inline", "option", "layout", "cache", "prefetch"})
_CONTINUES = word_set("= , ( [ : + - * / // % ** << >> & | ^ ~ .. -> in by ahead and or not")


@dataclass(frozen=True, slots=True)
class Problem:
    """A bracket without partner; ``closer`` is the token at which an open one was given up."""

    index: int
    kind: Literal["unclosed", "stray"]
    closer: int


@dataclass(slots=True)
class Structure:
    """Brackets of a token list.

    Attributes:
        match: partner of each paired bracket.
        parent: for each token the innermost paired opening bracket around it, or -1.
        problems: brackets without partner, in the order of the text.
    """

    scan: Scan
    match: dict[int, int] = field(default_factory=dict)
    parent: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pair()
        self._nest()
        self.problems.sort(key=lambda p: p.index)

    def token(self, index: int) -> Tok:
        tokens = self.scan.tokens
        return tokens[index] if 0 <= index < len(tokens) else NOTHING

    def text(self, index: int) -> str:
        return self.token(index).text

    def starts_line(self, index: int) -> bool:
        """Whether a token is the first of its line."""
        if index == 0:
            return True
        return "\n" in self.scan.text[self.token(index - 1).end : self.token(index).start]

    def _pair(self) -> None:
        stack: list[int] = []
        for index, token in enumerate(self.scan.tokens):
            if token.text in OPENING:
                stack.append(index)
            elif token.text in CLOSING:
                self._close(index, CLOSING[token.text], stack)
            elif token.kind == "end":
                self.problems += [Problem(i, "unclosed", index) for i in stack]

    def _close(self, index: int, opening: str, stack: list[int]) -> None:
        """Pair a closing bracket: round and square ones never reach out of their braces."""
        depth = len(stack) - 1
        while depth >= 0 and self.text(stack[depth]) != opening:
            if self.text(stack[depth]) == "{":
                depth = -1
            else:
                depth -= 1
        if depth < 0:
            self.problems.append(Problem(index, "stray", index))
            return
        self.problems += [Problem(i, "unclosed", index) for i in stack[depth + 1 :]]
        self.match[stack[depth]], self.match[index] = index, stack[depth]
        del stack[depth:]

    def _nest(self) -> None:
        inside: list[int] = []
        for index, token in enumerate(self.scan.tokens):
            paired = index in self.match
            if paired and token.text in CLOSING:
                inside.pop()
            self.parent.append(inside[-1] if inside else -1)
            if paired and token.text in OPENING:
                inside.append(index)

    # ---- statements
    def begins(self, i: int) -> bool:
        """Whether a statement, line or section surely begins at a token."""
        token, after = self.token(i), self.token(i + 1)
        if token.kind != "word":
            return False
        leads = after.kind == "word" or (token.text == "let" and after.text == "(")
        if token.text in _LEADING and leads:
            return True
        if not (self.starts_line(i) or self.text(i - 1) in (";", "{", "}")):
            return False
        if token.text == "for":
            return self.text(i - 1) not in ("schedule", "memory")
        if token.text == "compute":
            return after.text == "{"
        if token.text in ("schedule", "memory"):
            return after.text in ("for", "{") or self.text(i + 2) == "{"
        if (token.text in _TITLES or token.text in _LINES) and after.kind == "word":
            return True
        return self._left_side(i)

    def _left_side(self, i: int, further: bool = False) -> bool:
        """Whether a left side `a =`, `a: f32 =`, `a[...] =`, `a, b =`, `a[...], b[...] =` stands
        here; ``further`` for one behind a comma."""
        if self.text(i - 1) == "," and not further:
            return False
        after = self.text(i + 1)
        if after in _ASSIGN:
            return after != "=="
        if after == ":" and (self.text(i + 2) in DTYPES or self.text(i + 2) in DTYPE_ALIASES):
            return self.text(i + 3) in ("=", "[")
        if after == "[":
            close = self.match.get(i + 1)
            while close is not None and self.text(close + 1) == "[":
                close = self.match.get(close + 1)
            if close is not None and self.text(close + 1) == ",":
                return self.token(close + 2).kind == "word" and self._left_side(close + 2, True)
            if close is not None:
                return self.text(close + 1) in _ASSIGN
            return self._assigns_on_line(i)
        j = i
        while self.text(j + 1) == "," and self.token(j + 2).kind == "word":
            j += 2
        return j > i and self.text(j + 1) == "="

    def _assigns_on_line(self, i: int) -> bool:
        j = i + 1
        while j < len(self.scan.tokens) and not self.starts_line(j):
            if self.text(j) in _ASSIGN:
                return True
            j += 1
        return False

    def boundary(self, start: int, by_line: bool) -> int:
        """The next token after ``start`` at which reading can go on: the beginning of the next
        statement of the same block, its closing brace, or the end.

        Args:
            by_line: lines of schedule and memory layers also begin where the line does.
        """
        parent = self.parent[start]
        stop = self.match.get(parent, len(self.scan.tokens) - 1)
        j = start + 1
        if self.text(start) in OPENING and start in self.match:
            j = self.match[start] + 1
        while j < stop:
            if self.begins(j) or (by_line and self._begins_line(j)):
                return j
            if self.text(j - 1) == ";":
                return j
            paired = self.text(j) in OPENING and j in self.match
            j = self.match[j] + 1 if paired else j + 1
        return stop

    def _begins_line(self, i: int) -> bool:
        word = self.token(i).kind == "word"
        return word and self.starts_line(i) and self.text(i - 1) not in _CONTINUES
