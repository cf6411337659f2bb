"""Workloads by targets: where each kernel is correct and fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgekernelbench.report.tasks import TaskRow


@dataclass(frozen=True, slots=True)
class Matrix:
    """``lines``: a workload and its row on each of ``targets``, None where it was not tried."""

    targets: tuple[str, ...]
    lines: tuple[tuple[str, tuple[TaskRow | None, ...]], ...]


def matrix_of(rows: Sequence[TaskRow]) -> Matrix | None:
    """None where there is only one target."""
    targets = tuple(sorted({row.shown.task.target for row in rows}))
    if len(targets) < 2:
        return None
    cells = {(row.shown.task.workload, row.shown.task.target): row for row in rows}
    workloads = sorted({workload for workload, _ in cells})
    return Matrix(
        targets, tuple((w, tuple(cells.get((w, target)) for target in targets)) for w in workloads)
    )
