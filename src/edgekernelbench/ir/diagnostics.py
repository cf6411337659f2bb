"""Diagnostics: what a kernel's author, person or model, is told when something is wrong.

A diagnostic names its rule (stable code and one sentence), points at the text, and says what
would be legal. Passes collect all of theirs and return them; they never raise for bad text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range of character offsets into one source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span covering both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the language. ``code`` is stable: scripts and prompts may rely on it."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        rule: the rule broken.
        message: what is wrong here, naming the things involved.
        span: where, or None when no place in the text is to blame.
        help: ways out, each a legal alternative or the fixed line.
        notes: further facts, such as the loop nest as understood so far.
    """

    rule: Rule
    message: str
    span: Span | None = None
    help: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    severity: Severity = "error"

    def as_dict(self, source: str | None = None) -> dict[str, Any]:
        """JSON form; with ``source`` also 1-based line and column and the rendered text."""
        out: dict[str, Any] = {
            "code": self.rule.code,
            "rule": self.rule.text,
            "message": self.message,
            "severity": self.severity,
            "help": list(self.help),
            "notes": list(self.notes),
        }
        if self.span is not None:
            out["span"] = [self.span.start, self.span.end]
            if source is not None:
                line, column, _ = locate(source, self.span.start)
                out["line"], out["column"] = line, column
        if source is not None:
            out["rendered"] = render(self, source)
        return out


@dataclass(slots=True)
class Report:
    """Collects diagnostics of one pass, capped so that a hostile text cannot flood it."""

    limit: int = 50
    items: list[Diagnostic] = field(default_factory=list)

    def error(
        self,
        rule: Rule,
        message: str,
        span: Span | None,
        help: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> None:
        self.add(Diagnostic(rule, message, span, tuple(help), tuple(notes)))

    def add(self, diagnostic: Diagnostic) -> None:
        if len(self.items) < self.limit and diagnostic not in self.items:
            self.items.append(diagnostic)

    @property
    def has_errors(self) -> bool:
        return any(d.severity == "error" for d in self.items)

    def sorted(self) -> tuple[Diagnostic, ...]:
        """In the order of the text; findings without a place come last."""
        return tuple(sorted(self.items, key=lambda d: d.span or Span(1 << 60, 1 << 60)))


def locate(source: str, offset: int) -> tuple[int, int, str]:
    """1-based line, 1-based column and the text of the line at a character offset."""
    offset = max(0, min(offset, len(source)))
    line = source.count("\n", 0, offset) + 1
    begin = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    return line, offset - begin + 1, source[begin : end if end >= 0 else len(source)]


def render(diagnostic: Diagnostic, source: str, name: str = "kernel") -> str:
    """Human-readable text with the source line and carets under the culprit.

    Lines longer than 160 characters are cut around the culprit.
    """
    head = f"{diagnostic.severity}[{diagnostic.rule.code}]: {diagnostic.message}"
    lines = [head]
    if diagnostic.span is not None:
        lines += _excerpt(diagnostic.span, source, name)
    lines.append(f"  rule: {diagnostic.rule.text}")
    lines += [f"  note: {note}" for note in diagnostic.notes]
    lines += [f"  help: {line}" for line in diagnostic.help]
    return "\n".join(lines)


_WIDTH = 160


def _excerpt(span: Span, source: str, name: str) -> list[str]:
    line, column, text = locate(source, span.start)
    text = text.replace("\t", " ")
    width = max(1, min(span.end - span.start, len(text) - column + 1))
    shift = 0
    if len(text) > _WIDTH:
        shift = max(0, column - 1 - _WIDTH // 3)
        text = ("..." if shift else "") + text[shift : shift + _WIDTH] + "..."
        shift -= 3 if shift else 0
        width = min(width, _WIDTH)
    gutter = " " * len(str(line))
    return [
        f"  --> {name}:{line}:{column}",
        f"  {gutter} |",
        f"  {line} | {text}",
        f"  {gutter} | {' ' * (column - 1 - shift)}{'^' * width}",
    ]
