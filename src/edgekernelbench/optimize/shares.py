"""How a budget of evaluations is divided among the parts of a model."""

from __future__ import annotations

from collections.abc import Mapping

LEAST = 0.01
"""Share of the measured time below which a part keeps its canonical program."""
FLOOR = 4
"""Evaluations that a part gets before the rest is divided: what a search opens with."""


def shares_of(times: Mapping[str, float]) -> dict[str, float]:
    """Of the sum of ``times``, the largest first."""
    total = sum(times.values())
    return {name: time / total for name, time in sorted(times.items(), key=lambda item: -item[1])}


def divide(budget: int, times: Mapping[str, float]) -> dict[str, int]:
    """Evaluations by part: from the largest on, each part of at least `LEAST` gets `FLOOR`; what is
    left is divided among these by their shares. Parts that get none are left out.

    Args:
        budget: of evaluations in all.
        times: of a part, times how often the model has it.
    """
    shares = shares_of(times)
    counts: dict[str, int] = {}
    left = budget
    for name, share in shares.items():
        if share < LEAST or left == 0:
            break
        counts[name] = min(FLOOR, left)
        left -= counts[name]
    served = sum(shares[name] for name in counts)
    exact = {name: left * shares[name] / served for name in counts}
    for name in counts:
        counts[name] += int(exact[name])
    short = budget - sum(counts.values())
    by_rest = sorted(counts, key=lambda name: int(exact[name]) - exact[name])
    for name in by_rest[:short]:
        counts[name] += 1
    return counts
