"""Reads a kernel text: `parse` turns it into a `surface.Kernel` or says what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir._scan import Scan, scan
from edgekernelbench.ir.diagnostics import Diagnostic, Report
from edgekernelbench.ir.surface import Kernel


@dataclass(frozen=True, slots=True)
class ParseResult:
    """A kernel, or at least one error saying why there is none."""

    kernel: Kernel | None
    diagnostics: tuple[Diagnostic, ...]


def parse(text: str) -> ParseResult:
    """Read one kernel text.

    Linear in the text, which may be hostile: nothing in it is executed, and size, nesting and
    literals are bounded. Never raises for what the text says.
    """
    report = Report()
    if not isinstance(text, str):
        report.error(rules.NOT_TEXT, f"expected text, got {type(text).__name__}", None)
        return ParseResult(None, report.sorted())
    tokens = scan(text, report)
    kernel = _read(tokens, report) if tokens is not None else None
    return ParseResult(None if report.has_errors else kernel, report.sorted())


def _read(tokens: Scan, report: Report) -> Kernel | None:
    # The automaton and lark behind it load with the first text, not on import.
    from edgekernelbench.ir._check import assemble
    from edgekernelbench.ir._recover import read

    file = read(tokens, report)
    return assemble(file, report) if file is not None and not report.has_errors else None
