"""Reads a token list with the automaton, and goes on after errors.

After an error a slip that has one sure correction is read as corrected; otherwise the statement is
given up, and reading goes on at the next one of the same block. Either way the author gets at most
one finding for one mistake.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from functools import cached_property

from edgekernelbench.ir._blocks import Structure
from edgekernelbench.ir._build import File
from edgekernelbench.ir._expected import generic
from edgekernelbench.ir._lalr import Automaton, spelling
from edgekernelbench.ir._place import Finding, Layer, Place
from edgekernelbench.ir._scan import Scan, Tok
from edgekernelbench.ir._slips import SLIPS
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.words import INFIX_WORDS, LINE_WORDS, SECTION_WORDS

MAX_ERRORS = 20
_MAX_REPAIRS = 8

# The nonterminals at whose beginning reading can go on.
_LISTS: dict[str, Layer] = {
    "stmt": "compute",
    "sline": "schedule",
    "mline": "memory",
    "header": "header",
    "target": "target",
    "section": "kernel",
    "kernel": "top",
}
_HEADS = {
    "seq": "BROKEN_LOOP",
    "each": "BROKEN_LOOP",
    "for": "BROKEN_LOOP",
    "while": "BROKEN_LOOP",
    "template": "BROKEN_TEMPLATE",
}


def read(scan: Scan, report: Report) -> File | None:
    """The file, or None after errors, all of which are in the report."""
    return _Reader(scan, report).run()


class _Reader:
    def __init__(self, scan: Scan, report: Report) -> None:
        self._scan = scan
        self._report = report
        self._automaton = Automaton(scan)
        self._last = len(scan.tokens) - 1
        self._errors = 0
        self._resumed = -1
        self._repairs: Counter[int] = Counter()
        # Braces that corrections have opened (or, when negative, closed) ahead of the text.
        self._owed = 0

    @cached_property
    def _structure(self) -> Structure:
        return Structure(self._scan)

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self._scan.tokens]

    def run(self) -> File | None:
        index = 0
        value = None
        while index <= self._last:
            terminal = self._automaton.terminal(index)
            taken, value = self._automaton.feed(terminal, self._scan.tokens[index])
            if taken:
                index += 1
                continue
            resume = self._recover(index)
            if resume is None:
                return None
            index = resume
        return value if self._errors == 0 else None

    # ---- one error
    def _recover(self, at: int) -> int | None:
        """Report what is wrong at a token; where to go on, or None at the end of all."""
        settled = self._settle(at)
        if settled is not None:
            return settled
        place, depth = self._place(at)
        finding = self._find(place)
        self._errors += 1
        self._report.error(finding.rule, finding.message, finding.span, finding.help, finding.notes)
        if self._errors >= MAX_ERRORS or at == self._last:
            return None
        if (finding.insert or finding.skip) and self._repairs[at] < _MAX_REPAIRS:
            self._repairs[at] += 1
            if finding.rewind:
                self._automaton.unwind(depth)
            if self._insert(finding, at):
                return place.start if finding.rewind else at + finding.skip
        return self._panic(place, depth)

    def _settle(self, at: int) -> int | None:
        """Make up for braces that corrections have put in or left out."""
        text = self._scan.tokens[at].text
        if self._owed < 0 and text == "}":
            self._owed += 1
            return at + 1
        if self._owed > 0 and (at == self._last or text in SECTION_WORDS):
            self._owed -= 1
            return at if self._automaton.feed("RBRACE", self._virtual("}", at))[0] else None
        return None

    def _insert(self, finding: Finding, at: int) -> bool:
        for terminal, text in finding.insert:
            if not self._automaton.feed(terminal, self._virtual(text, at))[0]:
                return False
            self._owed += (text == "{") - (text == "}")
        return True

    def _virtual(self, text: str, at: int) -> Tok:
        start = self._scan.tokens[at].start
        return Tok("op", text, start, start)

    def _find(self, place: Place) -> Finding:
        for slip in SLIPS:
            finding = slip(place)
            if finding is not None:
                return finding
        return generic(place, spelling())

    # ---- where it is
    def _place(self, at: int) -> tuple[Place, int]:
        """Where the error is, and the depth of the automaton's stack below its statement."""
        if self._begins_anew(at):
            # Whatever came before is complete: let the automaton see that.
            self._automaton.feed("SEMI", self._virtual(";", at))
        depth, layer = self._automaton.enclosing(_LISTS)
        expected = self._automaton.expected()
        if "$END" in expected:  # the kernel is complete
            return Place(self._structure, "top", at, at, self._last, expected), depth
        offset = self._automaton.offset(depth)
        start = at if offset is None else min(at, bisect_left(self._starts, offset))
        run_on = layer == "compute" and self._runs_on(start, at)
        return (
            Place(
                structure=self._structure,
                layer=layer,
                start=start,
                at=start if run_on else at,
                stop=self._structure.boundary(start, by_line=layer in ("schedule", "memory")),
                expected=frozenset() if run_on else expected,
                run_on=run_on,
            ),
            depth,
        )

    def _begins_anew(self, at: int) -> bool:
        """Whether a token on a new line has nothing to do with the expression before."""
        structure = self._structure
        token, before = self._scan.tokens[at], structure.text(at - 1)
        if before == "}":
            opening = structure.match.get(at - 1, -1)
            if structure.text(opening - 1) == ")" or structure.token(opening - 1).kind == "word":
                return True
        if not (structure.starts_line(at) or before in ("}", ";")):
            return token.text in LINE_WORDS and structure.token(at + 1).kind == "word"
        if token.text == "else" and structure.text(at + 1) in (":", "{"):
            return True
        word = token.kind in ("word", "bad") and token.text not in INFIX_WORDS
        return word or token.text in ("}", "(", "")

    def _runs_on(self, start: int, at: int) -> bool:
        """Whether a "statement" is but the rest of the line before, such as `b` of `a = 2 b`."""
        structure = self._structure
        return (
            start < at
            and structure.token(start).kind == "word"
            and not structure.starts_line(start)
            and structure.text(start - 1) not in (";", "{", "}")
            and not structure.begins(start)
        )

    # ---- giving up a statement
    def _panic(self, place: Place, depth: int) -> int | None:
        """Forget the statement; the index at which to go on."""
        if place.layer == "top" and "$END" in place.expected:
            return None
        self._automaton.unwind(depth)
        resume = self._behind_head(place)
        if resume is None:
            resume = self._next_item(place) if place.layer == "top" else place.stop
        if resume is not None and resume <= self._resumed:
            resume = self._resumed + 1
        if resume is None or resume > self._last:
            return None
        self._resumed = resume
        return resume

    def _behind_head(self, place: Place) -> int | None:
        """After an error in a head: its body's brace, with the head taken as read."""
        structure = self._structure
        if place.layer == "header":
            terminal, brace = "BROKEN_HEADER", self._body(place)
        elif place.layer == "target":
            terminal, brace = "BROKEN_TARGET", self._brace(place.start, self._last)
        elif place.layer in ("compute", "top") and structure.text(place.start) in _HEADS:
            terminal = _HEADS[structure.text(place.start)]
            brace = self._brace(place.start, place.stop)
        else:
            return None
        if brace is None or not self._automaton.feed(terminal, self._virtual("", brace))[0]:
            return None
        return brace

    def _brace(self, start: int, end: int) -> int | None:
        return next((j for j in range(start, end) if self._structure.text(j) == "{"), None)

    def _body(self, place: Place) -> int | None:
        """The opening brace of a kernel whose header is broken."""
        text = self._structure.text
        for j in range(place.start, self._last):
            if text(j) == "{" and (text(j + 1) in SECTION_WORDS or text(j + 1) == "}"):
                return j
        return self._brace(place.start, self._last)

    def _next_item(self, place: Place) -> int | None:
        """The next definition or kernel at the top of the file."""
        structure = self._structure
        for j in range(place.start + 1, self._last):
            word, after = structure.text(j), structure.text(j + 2)
            if structure.parent[j] >= 0 or structure.token(j + 1).kind != "word":
                continue
            if (word == "kernel" and after in ("[", "(")) or (
                word in ("def", "template", "table") and after in ("(", ":")
            ):
                return j
        return None
