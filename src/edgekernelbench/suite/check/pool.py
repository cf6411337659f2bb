"""Many workloads, several processes, outcomes as they come."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from edgekernelbench.suite.check.check import check_workload
from edgekernelbench.suite.check.model import Effort, Finding, Outcome
from edgekernelbench.suite.model import Workload

Check = Callable[[Workload, Effort], Outcome]


def check_all(
    workloads: Sequence[Workload], effort: Effort, jobs: int, check: Check = check_workload
) -> Generator[Outcome, None, None]:
    """One outcome for each workload, in the order of completion.

    A workload whose process dies is tried once more alone, and then reported as a finding; the
    others are not affected.
    """
    suspects: list[Workload] = []
    waiting = deque(workloads)
    while waiting:
        yield from _until_broken(waiting, suspects, effort, jobs, check)
    for workload in suspects:
        alone: list[Workload] = []
        yield from _until_broken(deque([workload]), alone, effort, 1, check)
        if alone:
            died = Finding(rule="compiled", message="the process that ran the checks died")
            yield Outcome(
                workload=workload.id, applied={}, findings=(died,), figures={}, skipped={}
            )


def _until_broken(
    waiting: deque[Workload],
    suspects: list[Workload],
    effort: Effort,
    jobs: int,
    check: Check,
) -> Iterator[Outcome]:
    """Outcomes until nothing waits, or a process dies: then what was running is suspect."""
    context = multiprocessing.get_context("spawn")
    running: dict[Future[Outcome], Workload] = {}
    with _one_thread_each(), ProcessPoolExecutor(jobs, context) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    workload = waiting.popleft()
                    running[pool.submit(check, _plain(workload), effort)] = workload
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                    del running[future]
        except BrokenProcessPool:
            suspects.extend(running.values())
        except BaseException:  # an interrupt must not wait for checks that nobody asks for now
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _plain(workload: Workload) -> Workload:
    """Without what it has cached: a pattern's functions cannot be sent to a process."""
    return Workload.model_validate(workload.model_dump())


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started now use one core each: they are as many as there are cores.

    NumPy reads these when it is imported, which is before any code of ours runs in a process.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
