"""Where a run loses, and why: families by lost tasks, and what its failures have in common."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus
from edgekernelbench.records.schema import Record
from edgekernelbench.report.tasks import TaskRow
from edgekernelbench.scores.attempts import is_correct

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Loss:
    """A family and its tasks without a kernel that counts as fast over the best baseline.

    Attributes:
        n: tasks that count at Fast@1.0 over the best baseline.
        failed: without a correct kernel, by status.
        slow: with correct kernels, all surely slower than the best baseline.
        unsure: with correct kernels of which nobody can tell: the interval holds 1.
        ahead: of these, those ahead by median.
        noisy: of these, those that other work of the machine disturbed.
        overhead: of the slow and unsure, those whose time is mostly that of the call.
        slow_speedup: median speed-up over the slow ones.
        depth: product of the slow ones' slow-downs, as a logarithm.
        rivals: what the slow ones lost to, with its route.
        worst: rows to look at first.
    """

    family: str
    n: int
    failed: Counter[EvaluationStatus]
    slow: int
    unsure: int
    ahead: int
    noisy: int
    overhead: int
    slow_speedup: float | None
    depth: float
    rivals: Counter[str]
    worst: tuple[TaskRow, ...]

    @property
    def lost(self) -> int:
        """For sure."""
        return self.slow + self.failed.total()


def losses(rows: Iterable[TaskRow]) -> tuple[Loss, ...]:
    """Families with a task that does not count as fast: most lost tasks first, of these the ones
    that are furthest behind, then those with most undecided."""
    families: dict[str, list[TaskRow]] = defaultdict(list)
    for row in rows:
        if row.outcome in ("fast", "unsure", "slow", "failed"):
            families[row.shown.task.family].append(row)
    found = [_loss(family, members) for family, members in families.items()]
    return tuple(
        sorted(
            (x for x in found if x.lost + x.unsure),
            key=lambda x: (-x.lost, -x.depth, -x.unsure, x.family),
        )
    )


def _loss(family: str, rows: Sequence[TaskRow]) -> Loss:
    known = [(s, row) for row in rows if (s := row.speedup) is not None]
    slow = sorted(((s, r) for s, r in known if r.outcome == "slow"), key=lambda x: x[0])
    unsure = sorted(((s, r) for s, r in known if r.outcome == "unsure"), key=lambda x: x[0])
    failed = [row for row in rows if row.outcome == "failed"]
    rival = (row.rival_told for _, row in slow)
    worst = [*failed[:_EXAMPLES], *(row for _, row in slow), *(row for _, row in unsure)]
    return Loss(
        family=family,
        n=len(rows),
        failed=Counter(row.status for row in failed),
        slow=len(slow),
        unsure=len(unsure),
        ahead=sum(s >= 1 for s, _ in unsure),
        noisy=sum(row.noisy for _, row in unsure),
        overhead=sum(row.overhead_dominated for _, row in (*slow, *unsure)),
        slow_speedup=statistics.median(s for s, _ in slow) if slow else None,
        depth=-sum(math.log(s) for s, _ in slow),
        rivals=Counter(name for name in rival if name is not None),
        worst=tuple(worst[:_EXAMPLES]),
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """What several failed attempts of one status have in common.

    ``code``: of the diagnostic that came first; empty where the verdict's message tells.
    """

    code: str
    words: str
    attempts: int
    examples: tuple[tuple[str, str], ...]
    """Task and message of attempts, a few."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Attempts of one status; ``causes`` commonest first."""

    status: EvaluationStatus
    attempts: int
    tasks: int
    causes: tuple[Cause, ...]


def failures(rows: Iterable[TaskRow]) -> tuple[Failure, ...]:
    """Every status but ``correct`` that occurs, commonest first, those that say nothing of the
    kernel last; with its causes."""
    found: dict[EvaluationStatus, list[tuple[TaskRow, Record]]] = defaultdict(list)
    for row in rows:
        for record in row.attempts:
            if not is_correct(record):
                found[record.status].append((row, record))
    out = [
        Failure(status, len(each), len({row.task for row, _ in each}), _causes(each))
        for status, each in found.items()
    ]
    return tuple(
        sorted(out, key=lambda f: (f.status in OUTSIDE_DENOMINATOR, -f.attempts, f.status.value))
    )


def _causes(found: Sequence[tuple[TaskRow, Record]]) -> tuple[Cause, ...]:
    groups: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for row, record in found:
        code, words, message = _cause(record)
        groups[code, words].append((row.task, message))
    causes = [
        Cause(code, words, len(each), tuple(dict.fromkeys(each))[:_EXAMPLES])
        for (code, words), each in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (-cause.attempts, cause.code, cause.words)))


def _cause(record: Record) -> tuple[str, str, str]:
    """Code and rule of the first error, or the message without its numbers and names."""
    evaluation = record.evaluation
    message = (record.message if evaluation is None else evaluation.message) or "no message"
    for diagnostic in () if evaluation is None else evaluation.diagnostics:
        if diagnostic.get("severity", "error") == "error" and diagnostic.get("code"):
            code, rule = str(diagnostic["code"]), str(diagnostic.get("rule", ""))
            return code, rule, str(diagnostic.get("message", message))
    return "", _common(message), message


def _common(message: str) -> str:
    """A message's kind: numbers, quoted names and what is in brackets are left out."""
    text = re.sub(r"\([^()]*\)", "", message.splitlines()[0] if message else "")
    text = re.sub(r"[`'\"][^`'\"]{1,80}[`'\"]", "…", text)
    text = re.sub(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?", "#", text)
    return re.sub(r"\s+", " ", text).strip()[:160] or "no message"
