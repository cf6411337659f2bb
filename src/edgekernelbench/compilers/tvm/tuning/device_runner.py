"""Runs and times candidates on a device for `device_bench`: the program of its servant. Needs the
project's drivers and NumPy, not the compiler."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.launch import LaunchPlan
from edgekernelbench.compilers.tvm.tuning.bench import drawn
from edgekernelbench.compilers.tvm.tuning.forked import Say
from edgekernelbench.compilers.tvm.tuning.measure import HOPELESS, ROUNDS
from edgekernelbench.compilers.tvm.tuning.servant import Declined, serve
from edgekernelbench.targets.model import Target

CODE, PLAN = "code", "plan.json"
"""What is in a candidate's folder."""

_REPEATS = 3
_REPEAT_S = 0.004
_MOST_CALLS = 200
_LAUNCH_US = 20.0
"""What one call by itself takes, however little it does."""


def main(profile: str, turn: str, parent: str) -> None:
    """Serves the process that began this one.

    Args:
        profile: JSON of the device's.
        turn: a file; whoever uses the device holds a lock on it.
    """
    serve(Runner(Target.model_validate_json(profile), Path(turn)).answer, int(parent))


class Runner:
    """Answers a bench's questions about built candidates."""

    def __init__(self, profile: Target, turn: Path) -> None:
        self._profile, self._turn_file = profile, turn
        self._drawn: dict[str, list[np.ndarray]] = {}

    def answer(self, question: dict[str, Any], say: Say) -> Any:
        """Raises `Declined` for what says nothing against the device's state."""
        from edgekernelbench.compilers.tvm.device.bound import ProgramRefused

        try:
            loaded = self._loaded(question, say)
            with _turn(self._turn_file, say):
                match question["ask"]:
                    case "measure":
                        return _microseconds(loaded[0], question["best_us"])
                    case "in turn":
                        return _in_turn(loaded, say)
                    case "save":
                        loaded[0].place()
                        return np.savez(question["file"], *loaded[0].arrays())
        except (ProgramRefused, MemoryError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise Declined(lines[0][:300]) from error

    def _loaded(self, question: dict[str, Any], say: Say) -> list[_Loaded]:
        interface = question["interface"]
        key = repr(interface)
        if key not in self._drawn:
            self._drawn[key] = drawn(tuple((dtype, tuple(shape)) for dtype, shape in interface))
        loaded = []
        for folder in question["folders"]:
            loaded.append(_Loaded(self._profile, Path(folder), self._drawn[key]))
            say(None)  # what the driver compiles may take its time
        return loaded


def _microseconds(loaded: _Loaded, best_us: float | None) -> float:
    loaded.place()
    once = loaded.seconds(1)
    if best_us is not None and once * 1e6 > HOPELESS * best_us + _LAUNCH_US:
        return once * 1e6
    count = _calls(once)
    return min(loaded.seconds(count) for _ in range(_REPEATS)) * 1e6


def _in_turn(loaded: Sequence[_Loaded], say: Say) -> list[float]:
    for one in loaded:
        one.place()
    counts = [_calls(one.seconds(1)) for one in loaded]
    rounds = []
    for _ in range(ROUNDS):
        say(None)
        rounds.append([one.seconds(n) for one, n in zip(loaded, counts, strict=True)])
    return [min(times) * 1e6 for times in zip(*rounds, strict=True)]


def _calls(seconds: float) -> int:
    return max(1, min(_MOST_CALLS, int(_REPEAT_S / seconds)))


class _Loaded:
    """A candidate in the device's driver, and its arguments once they have been placed there."""

    def __init__(self, profile: Target, folder: Path, arguments: Sequence[np.ndarray]) -> None:
        from edgekernelbench.compilers.tvm.device.load import open_program
        from edgekernelbench.targets.opencl import private_caches

        assert profile.device is not None
        # Read by drivers when they are first used in this process.
        os.environ.update(private_caches(str(folder.parent)))
        self._program = open_program(folder / CODE, profile.device.choice)
        self._plan = LaunchPlan.model_validate_json((folder / PLAN).read_text())
        self._arguments = arguments
        self._buffers: dict[str, Any] = {}
        self._launches: Sequence[Any] = ()

    def place(self) -> None:
        """Gives the device the arguments, and calls once: drivers compile on when a kernel first
        runs."""
        from edgekernelbench.compilers.tvm.device.bound import device_copy

        pairs = zip(self._plan.params, self._arguments, strict=True)
        self._buffers = {name: device_copy(self._program, array) for name, array in pairs}
        spaces = {s.name: self._program.buffer(s.bytes) for s in self._plan.workspaces}
        self._launches = self._program.prepared(self._plan, {**self._buffers, **spaces})
        self._program.run(self._launches)

    def seconds(self, count: int) -> float:
        """Of one call, by the device's clock: the mean of so many."""
        times = self._program.timed(self._launches, count)
        return max(1, times.span_ns) / count / 1e9

    def arrays(self) -> Iterator[np.ndarray]:
        """The arguments as the calls left them."""
        for name, array in zip(self._plan.params, self._arguments, strict=True):
            back = np.empty_like(array)
            if back.size:
                self._program.read(self._buffers[name], back)
            yield back


_POLL_S = 0.002
_SAY_S = 1.0


@contextlib.contextmanager
def _turn(path: Path, say: Say) -> Iterator[None]:
    """Has the device to itself; tells the parent that it waits. A lock ends with its process."""
    with path.open("a") as file:
        told = time.monotonic()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_POLL_S)
            if time.monotonic() - told > _SAY_S:
                told = time.monotonic()
                say(None)
        say(None)
        yield


if __name__ == "__main__":
    main(*sys.argv[1:])
