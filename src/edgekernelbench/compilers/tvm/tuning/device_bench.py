"""Builds candidates for a device and times them on it, as kernels of authors are: by the project's
own launch plans and drivers.

Building runs side by side, timing takes turns: whoever uses the device holds a lock. One child
times all candidates of a search, since opening a device takes longer than timing a kernel; what a
broken candidate takes down with it is begun anew behind it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.launch import LaunchPlan
from edgekernelbench.compilers.tvm.tuning.bench import Effort, Interface, drawn, interface_of
from edgekernelbench.compilers.tvm.tuning.forked import (
    Declined,
    Outcome,
    Place,
    Say,
    Servant,
    run_all,
)
from edgekernelbench.compilers.tvm.tuning.measure import HOPELESS, ROUNDS, RUN_S, HostBench
from edgekernelbench.targets.model import Target

_EFFORT = Effort("cuda", population=32, generations=2, draws=16)
"""TVM's rules for every GPU. What verifies a candidate's blocks and shared memory takes far longer
than all there is to check of one for a CPU, and refuses most draws for some functions."""

_BUILD_S = 30.0
_REPEATS = 3
_REPEAT_S = 0.004
_MOST_CALLS = 200
_LAUNCH_US = 20.0
"""What one call by itself takes, however little it does."""

_PLAN = "plan.json"
_CODE = "code"


@dataclass(frozen=True, slots=True)
class _Built:
    """A folder with code and plan."""

    folder: Path
    interface: Interface

    def question(self, ask: str, **more: Any) -> dict[str, Any]:
        return {"ask": ask, "folders": [str(self.folder)], "interface": self.interface, **more}


class DeviceBench:
    """See `bench.Bench`. To be closed.

    Args:
        profile: of the device.
        target: TVM's for it.
        host: where functions run without a schedule.
        turn: a file; whoever uses the device holds a lock on it.
        scratch: a folder for what is built.
    """

    def __init__(
        self, profile: Target, target: Any, host: HostBench, turn: Path, scratch: Path
    ) -> None:
        self.target = target
        self._profile, self._host, self._scratch = profile, host, scratch
        self._made: dict[int, _Built | Outcome] = {}
        answer = _Runner(profile, turn).answer
        self._servant = Servant(answer, Place(host.slot.timed, 1, RUN_S))

    @property
    def threads(self) -> int:
        return self._host.threads

    @property
    def effort(self) -> Effort:
        return _EFFORT

    def close(self) -> None:
        self._servant.close()

    def measure(self, modules: Sequence[Any], best_us: float | None) -> list[Outcome]:
        return [
            one
            if isinstance(one, Outcome)
            else self._servant.ask(one.question("measure", best_us=best_us))
            for one in self.built(modules)
        ]

    def in_turn(self, modules: Sequence[Any], folder: Path) -> list[float] | None:
        made = self.built(modules)
        built = [one for one in made if isinstance(one, _Built)]
        if len(built) < len(made):
            return None
        folders = [str(one.folder) for one in built]
        done = self._servant.ask(built[0].question("in turn") | {"folders": folders})
        return None if done.error is not None else done.value

    def unscheduled(self, module: Any, file: Path) -> Outcome:
        """By the host's CPU: no rule and no part of the device's way to code is in it."""
        return self._host.unscheduled(module, file)

    def scheduled(self, module: Any, file: Path) -> Outcome:
        (built,) = self.built([module])
        if isinstance(built, Outcome):
            return built
        return self._servant.ask(built.question("save", file=str(file)))

    def built(self, modules: Sequence[Any]) -> list[_Built | Outcome]:
        """Of each module what is to be run, or why it is not built. What was built before for this
        bench is not built again."""
        import tvm_ffi

        keys = [tvm_ffi.structural_hash(module, map_free_vars=True) for module in modules]
        new = {k: m for k, m in zip(keys, modules, strict=True) if k not in self._made}
        folders = [self._scratch / f"{key & (1 << 64) - 1:016x}" for key in new]
        for folder in folders:
            folder.mkdir()
        pairs = list(zip(new.values(), folders, strict=True))
        builds = [partial(_build, module, self._profile, folder) for module, folder in pairs]
        cpus = self._host.slot.others
        done = run_all(builds, Place(cpus, len(cpus), _BUILD_S))
        for key, outcome, (module, folder) in zip(new, done, pairs, strict=True):
            right = _Built(folder, interface_of(module))
            self._made[key] = outcome if outcome.error is not None else right
        return [self._made[key] for key in keys]


# ---------------------------------------------------------------- building
def _build(module: Any, profile: Target, folder: Path, _say: Say) -> None:
    from edgekernelbench.compilers.tvm.device import build, split

    names = [f"#{n}" for n in range(len(module["main"].params))]
    # Without its device OpenCL code is not compiled yet: the child that loads it does that.
    codeless = profile.model_copy(update={"opencl": None})
    built = build.build_device(module, {"main": names}, codeless, folder, split.split_blocks)
    if built.code is None:
        raise ValueError(built.diagnostics[0].message)
    (folder / built.library).rename(folder / _CODE)
    (folder / _PLAN).write_text(built.code.plans["main"].model_dump_json())


# ---------------------------------------------------------------- the child that runs
class _Runner:
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
        self._program = open_program(folder / _CODE, profile.device.choice)
        self._plan = LaunchPlan.model_validate_json((folder / _PLAN).read_text())
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
