"""Baselines of many tasks, built before anything is measured.

Compiling uses one core, and measuring must have all of them to itself; so builds side by side
first, then measurements one by one, is the quickest order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from edgekernelbench.baselines.registry import load_baseline
from edgekernelbench.evaluator.room import require_room
from edgekernelbench.evaluator.task import EvalTask, InvalidReference, materials
from edgekernelbench.evaluator.worker import ChildLost

if TYPE_CHECKING:
    from edgekernelbench.evaluator.evaluator import Evaluator


def build_ahead(
    evaluator: Evaluator, tasks: Sequence[EvalTask], jobs: int | None = None
) -> Iterator[str]:
    """Builds the settings' baselines of ``tasks`` into the cache; yields each task that is done.

    What fails here fails again, and is recorded, in the task's session. Holds the device lock.

    Args:
        jobs: builds at a time; the cores that this process may use if left out.

    Raises:
        UsageError: the disk is full; see `require_room`.
    """
    require_room(evaluator.cache_dir)
    jobs = jobs or len(os.sched_getaffinity(0))
    with evaluator.device_lock(), ThreadPoolExecutor(jobs, "build-ahead") as pool:
        futures = {pool.submit(_build, evaluator, task): task.id for task in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _build(evaluator: Evaluator, task: EvalTask) -> None:
    try:
        wanted = materials(task)
    except InvalidReference:
        return
    for name in evaluator.settings.baselines:
        module = evaluator.machinery.baselines[name]
        if load_baseline(module).available(wanted, evaluator.target.reference) is not None:
            continue
        try:
            evaluator.builder.baseline(name, wanted)
        except ChildLost:
            continue
