"""Brackets without partner, sections inside others, text behind the kernel."""

from __future__ import annotations

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir._blocks import Problem, Structure
from edgekernelbench.ir._place import Finding, Place, Slip
from edgekernelbench.ir._scan import CLOSING
from edgekernelbench.ir.diagnostics import locate
from edgekernelbench.ir.words import DEFINITION_WORDS, SECTION_WORDS


def unpaired(place: Place) -> Finding | None:
    """A bracket of the statement without partner is the cause of whatever follows."""
    structure = place.structure
    for problem in structure.problems:
        if not place.start <= problem.index < max(place.stop, place.at + 1):
            continue
        token = structure.token(problem.index)
        if problem.kind == "stray" and problem.index <= place.at:
            return _stray(place, problem.index)
        if problem.kind == "unclosed" and token.text != "{":
            return Finding(rules.BRACKETS, _unclosed(place, problem), token.span)
    return None


def _unclosed(place: Place, problem: Problem) -> str:
    structure = place.structure
    bracket = structure.text(problem.index)
    for other in structure.problems:
        if other.kind == "stray" and problem.index < other.index < place.stop:
            wrong = structure.text(other.index)
            return f"this `{bracket}` is closed by `{wrong}` at {place.where(other.index)}"
    closer = structure.text(problem.closer)
    if not closer:
        return f"this `{bracket}` is never closed"
    where = place.where(problem.closer)
    return f"this `{bracket}` is not closed: the next closing bracket is `{closer}` at {where}"


def _stray(place: Place, index: int) -> Finding | None:
    token = place.token(index)
    if place.layer in ("top", "kernel"):
        return None  # judged below, where the sections are known
    return Finding(rules.BRACKETS, f"this `{token.text}` closes nothing", token.span)


def unclosed_brace(place: Place) -> Finding | None:
    """The text ends inside braces."""
    if place.token(place.at).kind != "end":
        return None
    culprit = _culprit(place.structure)
    if culprit is None:
        return None
    return Finding(
        rules.BRACKETS,
        f"the `{{` of `{_opened_by(place, culprit)}` is never closed",
        place.token(culprit).span,
        notes=("the text ends before it is closed",),
    )


def _culprit(structure: Structure) -> int | None:
    """The opening brace that lacks its closing one."""
    unclosed = [
        p.index
        for p in structure.problems
        if p.kind == "unclosed" and structure.text(p.index) == "{"
    ]
    if not unclosed:
        return None
    opening = _misindented(structure, len(structure.scan.tokens))
    return unclosed[-1] if opening is None else opening


def _misindented(structure: Structure, end: int) -> int | None:
    """A brace that was not meant to be closed by the one that closes it: the first `}` before
    ``end`` that stands further left than the line of its `{` belongs to an outer one."""
    for closing in range(end):
        opening = structure.match.get(closing, closing)
        if opening >= closing or structure.text(closing) != "}":
            continue
        outward = _column(structure, closing) < _indent(structure, opening)
        if structure.starts_line(closing) and outward:
            return opening
    return None


def _column(structure: Structure, index: int) -> int:
    return locate(structure.scan.text, structure.token(index).start)[1]


def _indent(structure: Structure, index: int) -> int:
    """Column of the first token of the line on which a token stands."""
    while not structure.starts_line(index):
        index -= 1
    return _column(structure, index)


def _opened_by(place: Place, brace: int) -> str:
    """The words before an opening brace, on its line."""
    first = brace
    while not place.structure.starts_line(first) and place.text(first - 1) not in (";", "}", "{"):
        first -= 1
    return place.source(first, min(brace, first + 4)) or "the block"


def section_inside(place: Place) -> Finding | None:
    """`schedule for ...` where compute (or another section) is still open."""
    if place.layer not in ("compute", "schedule", "memory") or place.at > place.start + 1:
        return None
    word = place.text(place.start)
    if word not in SECTION_WORDS or not place.structure.begins(place.start):
        return None
    opening = _misindented(place.structure, place.at)
    if opening is None:
        opening = place.opener_anywhere()
    if opening < 0:
        return None
    return Finding(
        rules.BRACKETS,
        f"the `{{` of `{_opened_by(place, opening)}` at {place.where(opening)} is not closed "
        f"before `{word}`",
        place.token(place.start).span,
        ("close it with `}` first: sections stand side by side",),
        insert=(("RBRACE", "}"),),
        rewind=True,
    )


def early_close(place: Place) -> Finding | None:
    """A statement directly in the kernel's braces."""
    if place.layer != "kernel" or place.at != place.start or not place.structure.begins(place.at):
        return None
    if place.here in SECTION_WORDS:
        return None
    if place.here in DEFINITION_WORDS:
        return Finding(
            rules.DEFINITION,
            f"a `{place.here}` in the kernel, outside of its sections",
            place.span,
            ("move it in front of `kernel`, or into `compute { ... }`",),
        )
    insert = (("COMPUTE", "compute"), ("LBRACE", "{"))
    if place.text(place.at - 1) == "}":
        return Finding(
            rules.BRACKETS,
            f"the `}}` at {place.where(place.at - 1)} has closed the section before this statement",
            place.token(place.at - 1).span,
            ("drop one `}` before it: stages stand in `compute { ... }`",),
            insert=insert,
        )
    return Finding(
        rules.NO_COMPUTE,
        "a statement outside any section",
        place.span,
        ("stages stand in `compute { ... }`",),
        insert=insert,
    )


def behind(place: Place) -> Finding | None:
    """Anything after the kernel's closing brace."""
    if place.layer != "top" or "$END" not in place.expected:
        return None
    if place.here in CLOSING:
        return Finding(
            rules.BRACKETS, f"this `{place.here}` closes nothing: the kernel is closed", place.span
        )
    what = "a second kernel" if place.here == "kernel" else "text behind the kernel"
    return Finding(rules.ONE_KERNEL, what, place.span)


SLIPS: tuple[Slip, ...] = (unclosed_brace, behind, section_inside, early_close, unpaired)
