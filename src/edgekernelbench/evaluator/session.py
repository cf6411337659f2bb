"""A session: many evaluations of one task, with inputs, truths and baselines kept warm."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from edgekernelbench.evaluator.attempt import Attempt, Check
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.heap import trim_heap
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.rivals import Rivals
from edgekernelbench.evaluator.room import require_room
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.task import EvalTask, Pool

if TYPE_CHECKING:
    from edgekernelbench.evaluator.evaluator import Evaluator
    from edgekernelbench.evaluator.stages import NoProfile, StageProfile


class TaskSession:
    """Evaluates kernels for one task.

    Constants and inputs are drawn in secret and used for `EvalSettings.pool_evaluations`
    evaluations, then drawn anew; `redraw` does so at once. The baselines' processes live as long
    as the session, and are restarted when they die. Not for use by several threads at a time.

    Args:
        evaluator: the warm state of the target.
        task: the workload.
        baselines: others than the settings name.
    """

    def __init__(
        self, evaluator: Evaluator, task: EvalTask, baselines: tuple[str, ...] | None = None
    ) -> None:
        self.evaluator = evaluator
        self.task = task
        self.interface = Interface.of(task)
        self.rivals = Rivals(evaluator, task, baselines)
        self._pool: Pool | None = None

    def evaluate(self, kernel_text: str) -> Evaluation:
        """The verdict on a kernel. Whatever the text does, this returns.

        Raises:
            UsageError: the disk is full; see `require_room`.
        """
        asked = time.perf_counter()
        with self._attempt(kernel_text) as attempt:
            waited = time.perf_counter() - asked
            verdict = attempt.run().model_copy(update={"lock_wait_seconds": round(waited, 6)})
        lost = any(baseline.status == "failed" for baseline in verdict.baselines.values())
        if lost or verdict.status is not EvaluationStatus.CORRECT:
            self._require_room()
        return verdict

    def check(self, kernel_text: str) -> Check:
        """What is known of a kernel without running it; as `evaluate`."""
        asked = time.perf_counter()
        with self._attempt(kernel_text) as attempt:
            waited = time.perf_counter() - asked
            found = replace(attempt.check(), lock_wait_seconds=round(waited, 6))
        if found.status is not None:
            self._require_room()
        return found

    def profile(self, kernel_text: str) -> StageProfile | NoProfile:
        """Times a kernel's nests, see `stages`. Whatever the text does, this returns.

        Raises:
            UsageError: the disk is full; see `require_room`.
        """
        from edgekernelbench.evaluator.stages import profile

        asked = time.perf_counter()
        with self.evaluator.device_lock():
            waited = time.perf_counter() - asked
            require_room(self.evaluator.cache_dir)
            found = profile(self, kernel_text)
        return found.model_copy(update={"lock_wait_seconds": round(waited, 6)})

    def _require_room(self) -> None:
        """After a bad verdict, or one beside a baseline that was lost, the kernel's own files are
        gone: what is missing now was not its."""
        require_room(self.evaluator.cache_dir)

    @contextmanager
    def _attempt(self, kernel_text: str) -> Iterator[Attempt]:
        with self.evaluator.device_lock():
            require_room(self.evaluator.cache_dir)
            folder = scratch_folder("kernel")
            try:
                yield Attempt(self, kernel_text, folder)
            finally:
                remove_folder(folder)

    def redraw(self) -> None:
        """Forgets the present draws: the next evaluation has constants and inputs of its own."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
            trim_heap()

    def renew(self) -> None:
        """`redraw`; and a baseline that was given up is tried again, as often as at first. What an
        agent did to the machine while its kernels were measured is over."""
        self.redraw()
        self.rivals.forgive()

    def pool(self) -> Pool:
        """The draws for the next evaluation.

        Raises:
            InvalidReference: see `Pool`.
        """
        settings = self.evaluator.settings
        if self._pool is not None and self._pool.age >= settings.pool_evaluations:
            self.redraw()
        if self._pool is None:
            self._pool = Pool(self.task, settings.input_sets)
        self._pool.age += 1
        return self._pool

    def random_source(self) -> tuple[int, random.Random]:
        """A fresh seed and what it drives: order, fillings, looks."""
        fixed = self.evaluator.settings.order_seed
        seed = secrets.randbits(62) if fixed is None else fixed
        return seed, random.Random(seed)

    def close(self) -> None:
        """Ends the baselines' processes and frees the inputs. May be called again."""
        self.rivals.close()
        self.redraw()

    def __enter__(self) -> TaskSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
