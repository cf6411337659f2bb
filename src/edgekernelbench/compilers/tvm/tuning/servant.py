"""A process of its own that answers one question after another, as beginning takes long.

It is a fresh interpreter and not a fork: where a driver was once used its threads are missing from
a fork, which then waits for them without end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from edgekernelbench.compilers.tvm.tuning.forked import (
    Outcome,
    Place,
    Say,
    die_with,
    kill_group,
    message_of,
    silence,
)


class Declined(Exception):
    """What a servant answers a question with when it can go on all the same."""


Answer = Callable[[Any, Say], Any]
"""Answers a question (plain JSON data); says anything at all to tell that it is still at it."""


class Servant:
    """The parent's side. The process is begun with the first question, and anew behind one at
    which it ended.

    Args:
        module: what it runs, with a call of `serve` at its end.
        arguments: of that.
        place: of the process; its silence is that within one question.
    """

    def __init__(self, module: str, arguments: Sequence[str], place: Place) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._place = place
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def ask(self, question: Any) -> Outcome:
        """The answer, or why there is none."""
        process = self._process or self._begin()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # then there is an end to be read
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        deadline = time.monotonic() + self._place.silence_s
        while select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = os.read(process.stdout.fileno(), 1 << 16)
            deadline = time.monotonic() + self._place.silence_s
            *lines, self._said = (self._said + part).split(b"\n")
            for message in map(message_of, lines):
                if "value" in message or "error" in message:
                    return self._answered(message)
            if not part:
                self.close()
                return Outcome(error="the process crashed")
        self.close()
        return Outcome(error=f"no word for {self._place.silence_s:g} s")

    def close(self) -> None:
        """Ends the process, if there is one."""
        process, self._process, self._said = self._process, None, b""
        if process is not None:
            kill_group(process.pid)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):  # a question that nobody read
                    pipe.close()

    def _begin(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [*self._command, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self._place.cpus:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(self._process.pid, self._place.cpus)
        return self._process

    def _answered(self, message: dict[str, Any]) -> Outcome:
        if message.get("last"):
            self.close()
        return Outcome(message.get("value"), message.get("error"))


def serve(answer: Answer, parent: int) -> None:
    """The process's side: answers until there are no more questions, or to the first one at which
    ``answer`` raises anything but `Declined`.

    Args:
        parent: the process without which this one ends.
    """
    die_with(parent)
    with os.fdopen(os.dup(1), "w") as told, os.fdopen(os.dup(0)) as questions:
        silence()

        def tell(message: dict[str, Any]) -> None:
            told.write(json.dumps(message) + "\n")
            told.flush()

        for line in questions:
            try:
                tell({"value": answer(json.loads(line), lambda said: tell({"said": said}))})
            except Declined as reason:
                tell({"error": str(reason)})
            except Exception as error:
                lines = str(error).strip().splitlines() or [""]
                tell({"error": f"{type(error).__name__}: {lines[-1]}"[:500], "last": True})
                os._exit(1)
