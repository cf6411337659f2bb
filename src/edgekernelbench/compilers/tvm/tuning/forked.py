"""Work in forked children that may crash, hang or be killed without harm to the tuning process.

A fork takes some milliseconds where a fresh worker would have to import the compiler first. The
tuning process itself never runs a kernel: a parallel loop starts threads, and after that no fork
could run one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
Work = Callable[[], Any]


@dataclass(slots=True)
class _Child:
    index: int
    pid: int
    reader: int
    deadline: float
    said: bytes = b""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a piece of work returned (plain JSON data), or why there is nothing."""

    value: Any = None
    error: str | None = None


def run_all(work: Sequence[Work], workers: int, seconds: float) -> list[Outcome]:
    """Runs each piece of work in a child of its own, ``workers`` at a time.

    Args:
        work: functions whose results can be written as JSON.
        workers: children that run side by side.
        seconds: after that long a child and all that it started are killed.
    """
    outcomes: list[Outcome] = [Outcome(error="not run")] * len(work)
    waiting = list(enumerate(work))[::-1]
    running: dict[int, _Child] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    child = _start(*waiting.pop(), seconds)
                    running[child.reader] = child
                    selector.register(child.reader, selectors.EVENT_READ)
                for ended in _ended(selector, running):
                    selector.unregister(ended.reader)
                    del running[ended.reader]
                    outcomes[ended.index] = _outcome(ended, seconds)
        finally:
            for child in running.values():
                _kill(child)
    return outcomes


def _start(index: int, work: Work, seconds: float) -> _Child:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(work, writer)
    os.close(writer)
    return _Child(index, pid, reader, time.monotonic() + seconds)


def _child(work: Work, writer: int) -> NoReturn:
    """Never returns, and leaves without clean-up: handlers at exit are the parent's."""
    try:
        os.setsid()
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _silence()
        said = {"value": work()}
    except BaseException as error:
        lines = str(error).strip().splitlines() or [""]
        said = {"error": f"{type(error).__name__}: {lines[-1]}"[:500]}
    with contextlib.suppress(OSError):
        os.write(writer, json.dumps(said).encode())
    os._exit(0)


def die_with_parent() -> None:
    """A process that was killed must not leave work behind that goes on for half an hour."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _silence() -> None:
    """What the compiler prints about a hopeless candidate is of no use to anyone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _ended(selector: selectors.BaseSelector, running: dict[int, _Child]) -> list[_Child]:
    """Children that closed their end of the pipe or ran out of time, after a wait for either."""
    ended = []
    first = min(child.deadline for child in running.values())
    for event, _ in selector.select(max(0.0, first - time.monotonic())):
        child = running[event.fd]
        part = os.read(event.fd, 1 << 16)
        child.said += part
        if not part:
            ended.append(child)
    now = time.monotonic()
    return ended + [c for c in running.values() if c.deadline <= now and c not in ended]


def _outcome(child: _Child, seconds: float) -> Outcome:
    late = time.monotonic() >= child.deadline
    _kill(child)
    try:
        return Outcome(**json.loads(child.said))
    except ValueError:
        return Outcome(error=f"not done within {seconds:g} s" if late else "the process crashed")


def _kill(child: _Child) -> None:
    """Ends a child and what it started, and collects it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    os.close(child.reader)
    os.waitpid(child.pid, 0)
