"""Turns at the device: whose is next when several attempts wait for it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MOST_OVERTAKEN = 16
"""How many others may go before one that waits because their tasks are warm."""


@dataclass(eq=False, slots=True)
class _Waiting:
    task: str | None
    overtaken: int = 0


class Turns:
    """One at a time. The first come is next, unless somebody behind it waits for a task that is
    warm: starting a task's baselines takes as long as several evaluations of it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = False
        self._waiting: list[_Waiting] = []

    @contextmanager
    def turn(self, task: str | None, warm: Collection[str]) -> Iterator[None]:
        """Waits for a turn and holds it.

        Args:
            task: by its name; None for what is about no task.
            warm: names of tasks; altered only by who has the turn.
        """
        self._wait(_Waiting(task), warm)
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()

    def _wait(self, own: _Waiting, warm: Collection[str]) -> None:
        with self._changed:
            self._waiting.append(own)
            try:
                while self._taken or self._next(warm) is not own:
                    self._changed.wait()
                for other in self._waiting[: self._waiting.index(own)]:
                    other.overtaken += 1
                self._taken = True
            finally:
                self._waiting.remove(own)
                self._changed.notify_all()

    def _next(self, warm: Collection[str]) -> _Waiting:
        first = self._waiting[0]
        if first.task in warm or first.overtaken >= MOST_OVERTAKEN:
            return first
        return next((one for one in self._waiting if one.task in warm), first)
