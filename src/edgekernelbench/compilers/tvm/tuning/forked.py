"""Work in forked children that may crash, hang or be killed without harm to the tuning process.

A fork takes some milliseconds where a fresh worker would have to import the compiler first. The
tuning process itself never runs a kernel: a parallel loop starts threads, and after that no fork
could run one.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import select
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_MESSAGE_BYTES = 500

Say = Callable[[Any], None]
"""Tells the parent something (plain JSON data) while the work goes on."""
Work = Callable[[Say], Any]
"""What a child does; returns plain JSON data."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a piece of work returned (plain JSON data), or why there is nothing."""

    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how long children work.

    Attributes:
        cpus: processors that they may use; none given, all.
        workers: children side by side.
        silence_s: seconds without a word after which a child and all that it started are killed.
    """

    cpus: tuple[int, ...] = ()
    workers: int = 1
    silence_s: float = 60.0


@dataclass(slots=True)
class _Task:
    work: Work
    place: Place
    ended: Callable[[Outcome], None]
    heard: Say | None


@dataclass(slots=True)
class _Child:
    task: _Task
    pid: int
    reader: int
    deadline: float
    said: bytes = b""
    outcome: Outcome | None = None


@dataclass(slots=True)
class Yard:
    """Work waiting for its place, and the children at work."""

    _waiting: dict[Place, deque[_Task]] = field(default_factory=dict)
    _running: dict[int, _Child] = field(default_factory=dict)

    def submit(
        self,
        work: Work,
        place: Place,
        ended: Callable[[Outcome], None],
        heard: Say | None = None,
    ) -> None:
        """Puts work in the queue of a place.

        Args:
            ended: is told what came of it, and may submit more.
            heard: is told what the child says on the way.
        """
        self._waiting.setdefault(place, deque()).append(_Task(work, place, ended, heard))

    def run(self) -> None:
        """Until nothing waits or runs. Children are killed when it is left early."""
        with selectors.DefaultSelector() as selector:
            try:
                while self._start_waiting(selector) or self._running:
                    for child in self._ended(selector):
                        selector.unregister(child.reader)
                        del self._running[child.reader]
                        child.task.ended(_outcome(child))
            finally:
                for child in self._running.values():
                    _kill(child)
                self._running.clear()

    def _start_waiting(self, selector: selectors.BaseSelector) -> bool:
        started = False
        for place, tasks in self._waiting.items():
            busy = sum(child.task.place == place for child in self._running.values())
            while tasks and busy < place.workers:
                child = _start(tasks.popleft())
                self._running[child.reader] = child
                selector.register(child.reader, selectors.EVENT_READ)
                busy, started = busy + 1, True
        return started

    def _ended(self, selector: selectors.BaseSelector) -> list[_Child]:
        """Children that closed their end of the pipe or said nothing for too long, after a wait
        for any word."""
        ended = []
        first = min(child.deadline for child in self._running.values())
        for event, _ in selector.select(max(0.0, first - time.monotonic())):
            child = self._running[event.fd]
            part = os.read(event.fd, 1 << 16)
            if part:
                child.said += part
                child.deadline = time.monotonic() + child.task.place.silence_s
                _listen(child)
            else:
                ended.append(child)
        now = time.monotonic()
        late = [c for c in self._running.values() if c.deadline <= now and c not in ended]
        for child in late:
            silence = child.task.place.silence_s
            child.outcome = Outcome(error=f"no word for {silence:g} s")
        return ended + late


def run_all(work: Sequence[Work], place: Place) -> list[Outcome]:
    """Runs each piece of work in a child of its own; the outcomes in that order."""
    return run_pairs([(one, None) for one in work], place, place, beside=False)


def run_pairs(
    pairs: Sequence[tuple[Work, Work | None]], first: Place, then: Place, *, beside: bool
) -> list[Outcome]:
    """Runs the first work of each pair, and where that comes to an end the second.

    Args:
        beside: second works may run while first ones do; otherwise they wait for the last of these.

    Returns:
        Of each pair the outcome of the second work, or of the first where it failed or there is
        no second.
    """
    outcomes = [Outcome(error="not run")] * len(pairs)
    yard, later = Yard(), list[tuple[int, Work]]()

    def keep(n: int, outcome: Outcome) -> None:
        outcomes[n] = outcome

    def follow(n: int, outcome: Outcome) -> None:
        second = pairs[n][1]
        outcomes[n] = outcome
        if second is None or outcome.error is not None:
            return
        if beside:
            yard.submit(second, then, lambda done: keep(n, done))
        else:
            later.append((n, second))

    for n, (one, _) in enumerate(pairs):
        yard.submit(one, first, lambda done, n=n: follow(n, done))
    yard.run()
    for n, second in sorted(later, key=lambda item: item[0]):
        yard.submit(second, then, lambda done, n=n: keep(n, done))
    yard.run()
    return outcomes


class Declined(Exception):
    """What a servant answers a question with when it can go on all the same."""


Answer = Callable[[Any, Say], Any]
"""Answers a question (plain JSON data); says anything at all to tell that it is still at it."""


class Servant:
    """A child that answers one question after another, as beginning takes long. It is begun with
    the first one, and anew behind a question at which it ended.

    Args:
        answer: what the child does; with anything it raises but `Declined` it ends.
        place: of the child; its silence is that within one question.
    """

    def __init__(self, answer: Answer, place: Place) -> None:
        self._answer, self._place = answer, place
        self._child: _Child | None = None
        self._questions = -1
        self._answers: list[Outcome] = []

    def ask(self, question: Any) -> Outcome:
        """The answer, or why there is none."""
        child = self._child or self._begin()
        self._answers.clear()
        with contextlib.suppress(BrokenPipeError):  # then there is an end to be read
            _write(self._questions, question)
        while select.select([child.reader], [], [], self._place.silence_s)[0]:
            part = os.read(child.reader, 1 << 16)
            child.said += part
            _listen(child)
            if self._answers:
                return self._answers[0]
            if not part:
                self.close()
                return child.outcome or Outcome(error="the process crashed")
        self.close()
        return Outcome(error=f"no word for {self._place.silence_s:g} s")

    def close(self) -> None:
        """Ends the child, if there is one."""
        if self._child is not None:
            os.close(self._questions)
            _kill(self._child)
            self._child = None

    def _begin(self) -> _Child:
        reader, self._questions = os.pipe()
        work = functools.partial(_serve, self._answer, reader, self._questions)
        self._child = _start(_Task(work, self._place, lambda _outcome: None, self._heard))
        os.close(reader)
        return self._child

    def _heard(self, said: Any) -> None:
        if said:
            self._answers.append(Outcome(said["value"], said["error"]))


def _serve(answer: Answer, questions: int, other_end: int, say: Say) -> None:
    os.close(other_end)
    with os.fdopen(questions) as lines:
        for line in lines:
            try:
                said = {"value": answer(json.loads(line), lambda _said: say(None)), "error": None}
            except Declined as reason:
                said = {"value": None, "error": str(reason)}
            say(said)


# ---------------------------------------------------------------- the child's side
def _start(task: _Task) -> _Child:
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(task, writer, parent)
    os.close(writer)
    return _Child(task, pid, reader, time.monotonic() + task.place.silence_s)


def _child(task: _Task, writer: int, parent: int) -> NoReturn:
    """Never returns, and leaves without clean-up: handlers at exit are the parent's."""
    try:
        os.setsid()
        _die_with(parent)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _silence()
        if task.place.cpus:
            os.sched_setaffinity(0, task.place.cpus)
        last = {"value": task.work(lambda said: _write(writer, {"said": said}))}
    except BaseException as error:
        lines = str(error).strip().splitlines() or [""]
        last = {"error": f"{type(error).__name__}: {lines[-1]}"[:_MESSAGE_BYTES]}
    with contextlib.suppress(OSError):
        _write(writer, last)
    os._exit(0)


def _write(writer: int, message: Any) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(writer, data) :]


def _die_with(parent: int) -> None:
    """A process that was killed must not leave work behind that goes on for half an hour."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was killed before that
        os._exit(1)


def _silence() -> None:
    """What the compiler prints about a hopeless candidate is of no use to anyone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


# ---------------------------------------------------------------- the parent's side
def _listen(child: _Child) -> None:
    """Takes whole lines from what a child wrote."""
    *lines, child.said = child.said.split(b"\n")
    for message in map(_message, lines):
        if "said" not in message:
            child.outcome = Outcome(message.get("value"), message.get("error"))
        elif child.task.heard is not None:
            child.task.heard(message["said"])


def _message(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        return {"error": "the process said something unintelligible"}


def _outcome(child: _Child) -> Outcome:
    _kill(child)
    return child.outcome or Outcome(error="the process crashed")


def _kill(child: _Child) -> None:
    """Ends a child and what it started, and collects it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    os.close(child.reader)
    os.waitpid(child.pid, 0)
