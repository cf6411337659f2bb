"""Several agents side by side: one row each, from the records of a run each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgekernelbench.records.schema import Record
from edgekernelbench.scores.score import score


def agent_row(agent: str, records: Sequence[Record]) -> dict[str, Any]:
    """What an agent reached and used up, over all tasks of its run.

    Returns:
        ``correct_at``: Correct@1; ``outside_denominator`` counts the attempts that no share has.
        ``fast_at``: Fast@1.0 by baseline; ``best`` is the fastest scored one.
        ``geomean_speedup``: by baseline, over correct kernels, with ``geomean_interval``. Sums over
        attempts: ``tokens`` and ``cost`` (None where no provider told), ``evaluations``,
        ``seconds``.
    """
    scored = score(records)
    spent = [record.spent for record in records]
    return {
        "agent": agent,
        "n": scored["n"],
        "attempts": len(records),
        "outside_denominator": scored["outside_denominator"],
        "statuses": scored["statuses"],
        "correct_at": scored["correct_at"]["1"],
        "fast_at": {name: at["1.0"] for name, at in scored["fast_at"].items()},
        "geomean_speedup": scored["geomean_speedup"],
        "geomean_interval": scored["geomean_interval"],
        "tokens": _sum([s.tokens for s in spent]),
        "cost": _sum([s.cost for s in spent]),
        "evaluations": _sum([s.evaluations for s in spent]),
        "seconds": _sum([s.seconds for s in spent]),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
