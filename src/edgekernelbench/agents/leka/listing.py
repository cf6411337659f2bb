"""A loop nest cut to a number of lines: what takes the time stays, with the loops around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_WRITTEN = re.compile(r"\s*(?:dot |atomic \w+ )?([\w.~#]+)\[")


def shortened(nest: str, shares: Mapping[str, float], most: int) -> list[str]:
    """The lines of a nest, ``most`` of them, and one for each stretch that is left out.

    Args:
        nest: as `lowering.sketch` writes it, a statement a line, indented by nesting.
        shares: of the time, by buffer that a line writes. Lines of the slowest come first, then
            the others in their order.
    """
    lines = nest.strip().splitlines()
    if len(lines) <= most:
        return lines
    kept: set[int] = set()
    for number in sorted(range(len(lines)), key=lambda k: (-_share(lines[k], shares), k)):
        wanted = {number, *_around(lines, number)} - kept
        if len(kept) + len(wanted) <= most:
            kept |= wanted
    return list(_with_gaps(lines, kept))


def _share(line: str, shares: Mapping[str, float]) -> float:
    written = _WRITTEN.match(line)
    return 0.0 if written is None else shares.get(written[1], 0.0)


def _around(lines: list[str], number: int) -> Iterator[int]:
    """The loops and conditions that a line stands in."""
    depth = _depth(lines[number])
    for above in range(number - 1, -1, -1):
        if _depth(lines[above]) < depth:
            depth = _depth(lines[above])
            yield above


def _with_gaps(lines: list[str], kept: set[int]) -> Iterator[str]:
    gap: list[str] = []
    for number, line in enumerate(lines):
        if number not in kept:
            gap.append(line)
            continue
        yield from _gap(gap)
        gap = []
        yield line
    yield from _gap(gap)


def _gap(gap: list[str]) -> Iterator[str]:
    if gap:
        yield f"{' ' * min(map(_depth, gap))}... {len(gap)} line{'s' * (len(gap) > 1)} left out"


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
