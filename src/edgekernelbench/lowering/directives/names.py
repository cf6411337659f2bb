"""Names that no stage or tensor has."""

from __future__ import annotations

from collections.abc import Mapping

from edgekernelbench.ir import surface
from edgekernelbench.ir.diagnostics import Report, Rule
from edgekernelbench.ir.words import did_you_mean


def unknown(
    rule: Rule, what: str, ref: surface.Ref, known: Mapping[str, object], report: Report
) -> None:
    """Reports a name that is not among those known, with the one that may be meant."""
    close = did_you_mean(ref.name, known)
    inner = [n for n in known if n.rsplit(".", 1)[-1] == ref.name or n.startswith(ref.name + ".")]
    ways = [f"did you mean `{close or inner[0]}`?"] if close or inner else []
    listed = ", ".join(f"`{n}`" for n in list(known)[:30])
    report.error(rule, f"there is no {what} `{ref.name}`", ref.span, [*ways, f"known: {listed}"])
