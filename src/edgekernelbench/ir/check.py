"""Text to verified program in one step: the way in for everything that takes a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.ir.verify import verify


@dataclass(frozen=True, slots=True)
class Checked:
    """``program`` is there when the text parses, elaborates and verifies without an error."""

    kernel: Kernel | None
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return self.program is not None


def check_text(text: str, sizes: Mapping[str, int | float] | None = None) -> Checked:
    """Parses, elaborates and verifies.

    Args:
        text: a kernel file's content.
        sizes: values that replace those of the header (for reduced shapes).
    """
    parsed = parse(text)
    if parsed.kernel is None or _errors(parsed.diagnostics):
        return Checked(parsed.kernel, None, parsed.diagnostics)
    elaborated = elaborate(parsed.kernel, sizes)
    found = (*parsed.diagnostics, *elaborated.diagnostics)
    if elaborated.program is None or _errors(found):
        return Checked(parsed.kernel, None, found)
    found = (*found, *verify(elaborated.program))
    return Checked(parsed.kernel, None if _errors(found) else elaborated.program, found)


def _errors(diagnostics: tuple[Diagnostic, ...]) -> bool:
    return any(d.severity == "error" for d in diagnostics)
