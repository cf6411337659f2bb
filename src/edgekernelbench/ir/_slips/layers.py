"""Slips in sections, schedules and memory layers."""

from __future__ import annotations

from edgekernelbench.ir import _rules as rules
from edgekernelbench.ir import words
from edgekernelbench.ir._place import Finding, Place, Slip
from edgekernelbench.ir.diagnostics import Rule
from edgekernelbench.ir.surface import TARGET_NAMES

_EDITS = words.word_set(
    "split tile order reorder fuse accumulate parallel parallelize vectorize vectorise unroll bind"
    " cache_write cache_read compute_at reverse_compute_at rfactor pipeline tensorize simd"
    " interchange scatter skew wavefront"
)
_MEMORY_EDITS = words.word_set("prepack prepacked double_buffer align shared local scope")
_CACHE = "write `memory for cpu { cache T in S.k0 }`: a copy of what S reads of T inside that loop"
_CACHES = ("cache_read", "cache_write")
_NEST = "write the final nest: `loops S (parallel i by 8, j by 32, k, unroll i, vectorize j)`"
_LAYOUT = "write `layout T [k, j] -> [j // 32, k, j % 32]`"
_IN_LOOP = {
    "place": "place A, B in S.j0",
    "cache": "cache T in S.k0",
    "prefetch": "prefetch T in S.k0 ahead 4",
}
_PIECES = {"parallelize": "parallel", "vectorise": "vectorize", "simd": "vectorize", "dot": "dot4"}


def section_head(place: Place) -> Finding | None:
    """`schedule cpu {`, `schedule {`, `compute:`, a misspelt section."""
    if place.layer != "kernel":
        return None
    head = place.text(place.start)
    if head in ("schedule", "memory") and place.at == place.start + 1:
        fix = f"write `{head} for cpu {{ ... }}`"
        insert = (("FOR", "for"),)
        if not place.word:
            insert += (("BROKEN_TARGET", ""),)
        if place.here != "{" and not place.word:
            insert = ()
        return Finding(
            rules.TARGET,
            f"`{head}` without `for` and its target",
            place.span,
            (fix,),
            insert=insert,
        )
    if head == "compute":
        insert = (("LBRACE", "{"),)
        fix = "write `compute { ... }`"
        known = place.text(place.at + 1) == "{"
        skip = 1 if known or place.here == ":" else 0
        return Finding(
            rules.SECTION,
            f"found `{place.here}` behind `compute`",
            place.span,
            (fix,),
            insert=() if known else insert,
            skip=skip,
        )
    hint = words.did_you_mean(place.word, words.SECTION_WORDS) if place.at == place.start else None
    if hint is None:
        return None
    return Finding(
        rules.SECTION, f"`{place.word}` is no section", place.span, (f"did you mean `{hint}`?",)
    )


def missing_brace(place: Place) -> Finding | None:
    """`schedule for cpu:`, a header without `{`."""
    if place.expected != {"LBRACE"} or place.here in ("}", ""):
        return None
    wrong = not place.structure.starts_line(place.at) and place.structure.starts_line(place.at + 1)
    found = f"found `{place.here}` where `{{` belongs" if wrong else "`{` is missing here"
    return Finding(
        rules.BRACKETS, found, place.span, insert=(("LBRACE", "{"),), skip=1 if wrong else 0
    )


def no_target(place: Place) -> Finding | None:
    if place.layer != "target" or place.word:
        return None
    return Finding(
        rules.TARGET,
        "the section names no target",
        place.span,
        (f"targets are {', '.join(TARGET_NAMES)}",),
    )


def edit_directive(place: Place) -> Finding | None:
    """`split acc.i by 8`, `vectorize Y.j`, `prepack W`."""
    if place.layer not in ("schedule", "memory") or place.at != place.start:
        return None
    if place.layer == "memory" and place.here in _MEMORY_EDITS:
        return Finding(
            rules.MEMORY,
            f"there is no `{place.here}`",
            place.span,
            (_LAYOUT, "const tensors are packed before timing by themselves"),
        )
    if place.layer == "schedule" and place.here in _EDITS:
        return Finding(
            rules.SCHEDULE,
            f"there is no `{place.here}`: a schedule states results, not edits",
            place.span,
            (_CACHE,) if place.here in _CACHES else (_NEST,),
        )
    return None


def wrong_layer(place: Place) -> Finding | None:
    """A line that belongs to another layer."""
    first = place.text(place.start)
    homes = {
        **dict.fromkeys(words.SCHEDULE_WORDS, "schedule"),
        **dict.fromkeys(words.MEMORY_WORDS, "memory"),
    }
    home = homes.get(first)
    if place.layer not in ("compute", "schedule", "memory") or home == place.layer:
        return None
    if home is not None and place.is_word(place.start + 1) and not place.after_equals():
        return Finding(
            rules.SECTION,
            f"a `{first}` line in the {place.layer} layer",
            place.token(place.start).span,
            (f"it belongs into `{home} for cpu {{ ... }}`",),
        )
    stage = place.layer != "compute" and place.at == place.start and first not in words.RESERVED
    if stage and place.structure.begins(place.start):
        return Finding(
            _rule(place),
            f"a stage in the {place.layer} layer",
            place.span,
            ("stages are defined in `compute { ... }`",),
        )
    return None


def line_word(place: Place) -> Finding | None:
    """A misspelt first word."""
    if place.layer not in ("schedule", "memory") or place.at != place.start or not place.word:
        return None
    legal = words.SCHEDULE_WORDS if place.layer == "schedule" else words.MEMORY_WORDS
    hint = words.did_you_mean(place.word, legal)
    fixes = (f"did you mean `{hint}`?",) if hint else (_NEST if legal[0] == "loops" else _LAYOUT,)
    return Finding(_rule(place), f"no line begins with `{place.word}`", place.span, fixes)


def piece(place: Place) -> Finding | None:
    """Slips inside the parentheses of `loops` and `wave`."""
    if place.layer != "schedule" or place.text(place.start) not in ("loops", "wave"):
        return None
    if place.opener(place.at) < 0:
        return _no_parentheses(place)
    if place.here in ("/", ":", "=", "//") and place.is_word(place.at - 1):
        fix = f"write `{place.text(place.at - 1)} by {place.text(place.at + 1)}`"
        return Finding(rules.SCHEDULE, "a step is given with `by`", place.span, (fix,))
    if place.word in words.PIECE_WORDS and place.text(place.at - 1) in words.PIECE_WORDS:
        return Finding(
            rules.SCHEDULE, "a loop has one prefix at most", place.span, ("drop one of them",)
        )
    if place.word in words.PIECE_WORDS and place.expected & {"COMMA"}:
        return Finding(
            rules.SCHEDULE,
            f"`{place.word}` behind its loop",
            place.span,
            ("prefixes stand before: `vectorize j`, `parallel i by 8`",),
        )
    if place.here == "(" and place.text(place.at - 1) in words.PIECE_WORDS:
        fix = f"write `{place.text(place.at - 1)} {place.text(place.at + 1)}`"
        return Finding(rules.SCHEDULE, "prefixes take no parentheses", place.span, (fix,))
    for j in (place.at - 1, place.at):
        word = place.text(j) if place.is_word(j) and place.is_word(place.at) else ""
        hint = _PIECES.get(word) or words.did_you_mean(word, words.PIECE_WORDS)
        if hint is not None and word not in words.PIECE_WORDS:
            return Finding(
                rules.SCHEDULE,
                f"`{word}` is no prefix",
                place.token(j).span,
                (f"did you mean `{hint}`?",),
            )
    return None


def _no_parentheses(place: Place) -> Finding | None:
    if "LPAR" not in place.expected:
        return None
    line, stage = place.text(place.start), place.text(place.start + 1)
    pieces = place.source(place.at, place.stop).strip("[]():, ")
    return Finding(
        rules.SCHEDULE,
        "the nest stands in parentheses",
        place.span,
        (f"write `{line} {stage} ({pieces or 'i, j'})`",),
    )


def place_line(place: Place) -> Finding | None:
    """`place A at S.i0`, `place A in S`; the same of `cache` and `prefetch`."""
    form = _IN_LOOP.get(place.text(place.start))
    if place.layer not in ("schedule", "memory") or form is None:
        return None
    rule = _rule(place)
    if place.word in ("at", "inside", "within", "under", "into", "on"):
        return Finding(
            rule,
            f"`{place.word}` where `in` belongs",
            place.span,
            (f"write `{form}`",),
            insert=(("IN", "in"),),
            skip=1,
        )
    if place.expected == {"DOT"}:
        return Finding(
            rule,
            "the line names a stage, and not which of its loops",
            place.token(place.at - 1).span,
            (f"name the loop: `{place.source(place.start, place.at)}.i0`",),
        )
    if place.expected == {"AHEAD", "DOT"}:
        fix = f"say how many iterations: `{place.source(place.start, place.at)} ahead 4`"
        return Finding(rule, "`ahead` is missing", place.token(place.at - 1).span, (fix,))
    return None


def layout_line(place: Place) -> Finding | None:
    """`layout W = ...`, `layout W: ...`, a trailing `prepacked`."""
    if place.layer != "memory" or place.text(place.start) != "layout":
        return None
    if place.word == "prepacked":
        return Finding(
            rules.MEMORY,
            "there is no `prepacked`",
            place.span,
            ("drop it: const tensors are packed before timing by themselves",),
        )
    if "ARROW" in place.expected and place.here in ("=", "=>", ":"):
        return Finding(
            rules.MEMORY,
            f"`{place.here}` where `->` belongs",
            place.span,
            (_LAYOUT,),
            insert=(("ARROW", "->"),),
            skip=1,
        )
    first_list = place.opener(place.at) >= 0 and place.text(place.opener(place.at)) == "["
    if first_list and not any(place.text(j) == "->" for j in range(place.start, place.at)):
        fix = "name all axes in their order: " + _LAYOUT
        return Finding(rules.MEMORY, "the first list names the tensor's axes", place.span, (fix,))
    if "ARROW" in place.expected:
        fix = "name the tensor's own axes first: " + _LAYOUT
        return Finding(rules.MEMORY, "a layout maps axes to axes", place.span, (fix,))
    return None


def _rule(place: Place) -> Rule:
    return rules.SCHEDULE if place.layer == "schedule" else rules.MEMORY


SLIPS: tuple[Slip, ...] = (
    section_head,
    missing_brace,
    no_target,
    edit_directive,
    wrong_layer,
    line_word,
    piece,
    place_line,
    layout_line,
)
