"""Builds candidates for a device and times them on it, as kernels of authors are: by the project's
own launch plans and drivers.

Building runs side by side, timing takes turns: whoever uses the device holds a lock. A batch is
timed in one child, since opening a device takes longer than timing a kernel; what a broken
candidate takes down with it is begun anew behind it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.launch import LaunchPlan
from edgekernelbench.compilers.tvm.tuning.bench import Effort, Interface, drawn, interface_of
from edgekernelbench.compilers.tvm.tuning.forked import Outcome, Place, Say, Work, Yard, run_all
from edgekernelbench.compilers.tvm.tuning.measure import HOPELESS, ROUNDS, RUN_S, HostBench
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.placement import Slot

_EFFORT = Effort("cuda", population=32, generations=2)
"""TVM's rules for every GPU. What verifies a candidate's blocks and shared memory takes far longer
than all there is to check of one for a CPU."""

_BUILD_S = 30.0
_REPEATS = 3
_REPEAT_S = 0.004
_MOST_CALLS = 200
_LAUNCH_US = 20.0
"""What one call by itself takes, however little it does."""

_PLAN = "plan.json"
_CODE = "code"


@dataclass(frozen=True, slots=True)
class DeviceBench:
    """See `bench.Bench`.

    Attributes:
        profile: of the device.
        target: TVM's for it.
        host: where functions run without a schedule.
        turn: a file; whoever uses the device holds a lock on it.
    """

    profile: Target
    target: Any
    host: HostBench
    turn: Path

    @property
    def slot(self) -> Slot:
        return self.host.slot

    @property
    def threads(self) -> int:
        return self.host.threads

    @property
    def effort(self) -> Effort:
        return _EFFORT

    def measure(self, modules: Sequence[Any], best_us: float | None) -> list[Outcome]:
        with tempfile.TemporaryDirectory(prefix="ekb-tune-") as scratch:
            built = self._built(modules, Path(scratch))
            work = partial(_measure, self, best_us)
            return _through(built, work, Place(self.slot.timed, 1, RUN_S))

    def in_turn(self, modules: Sequence[Any], folder: Path) -> list[float] | None:
        made = self._built(modules, folder)
        built = [one for one in made if isinstance(one, _Built)]
        if len(built) < len(made):
            return None
        work: Work = partial(_in_turn, self, built)
        (done,) = run_all([work], Place(self.slot.timed, 1, RUN_S))
        return None if done.error is not None else done.value

    def unscheduled(self, module: Any, file: Path) -> Outcome:
        """By the host's CPU: no rule and no part of the device's way to code is in it."""
        return self.host.unscheduled(module, file)

    def scheduled(self, module: Any, file: Path) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="ekb-tune-") as scratch:
            (built,) = self._built([module], Path(scratch))
            if isinstance(built, Outcome):
                return built
            work: Work = partial(_save, self, built, file)
            return run_all([work], Place(self.slot.timed, 1, RUN_S))[0]

    def _built(self, modules: Sequence[Any], scratch: Path) -> list[_Built | Outcome]:
        folders = [scratch / f"candidate{n}" for n in range(len(modules))]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        pairs = list(zip(modules, folders, strict=True))
        builds = [partial(_build, module, self.profile, folder) for module, folder in pairs]
        place = Place(self.slot.others, len(self.slot.others), _BUILD_S)
        return [
            done if done.error is not None else _Built(folder, interface_of(module))
            for done, (module, folder) in zip(run_all(builds, place), pairs, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Built:
    """A folder with code and plan."""

    folder: Path
    interface: Interface


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


# ---------------------------------------------------------------- the children that run
def _through(built: Sequence[_Built | Outcome], work: Any, place: Place) -> list[Outcome]:
    """The outcomes of everything that was built, tried one after another in a child, and in
    another one behind each at which a child ended.

    Args:
        work: takes the numbered candidates; says ``[number]`` before each, and ``[number, value,
            error]`` behind it.
    """
    outcomes = [one if isinstance(one, Outcome) else Outcome() for one in built]
    left = [(n, one) for n, one in enumerate(built) if isinstance(one, _Built)]
    while left:
        at, ended = left[0][0], list[Outcome]()

        def heard(said: Any) -> None:
            nonlocal at
            at = said[0] if said else at
            if len(said) > 1:
                outcomes[at] = Outcome(said[1], said[2])

        yard = Yard()
        yard.submit(partial(work, left), place, ended.append, heard)
        yard.run()
        if ended[0].error is None:
            return outcomes
        outcomes[at] = ended[0]
        left = [(n, one) for n, one in left if n > at]
    return outcomes


def _measure(
    bench: DeviceBench, best_us: float | None, jobs: Sequence[tuple[int, _Built]], say: Say
) -> None:
    from edgekernelbench.compilers.tvm.device.bound import ProgramRefused

    arguments = drawn(jobs[0][1].interface)
    for number, built in jobs:
        say([number])
        try:
            loaded = _Loaded(bench, built, arguments, say)
            with _turn(bench.turn, say):
                us = _microseconds(loaded, best_us)
        except (ProgramRefused, MemoryError) as error:
            say([number, None, (str(error).strip().splitlines() or ["refused"])[0][:300]])
        else:
            say([number, us, None])


def _microseconds(loaded: _Loaded, best_us: float | None) -> float:
    loaded.place()
    once = loaded.seconds(1)
    if best_us is not None and once * 1e6 > HOPELESS * best_us + _LAUNCH_US:
        return once * 1e6
    count = max(1, min(_MOST_CALLS, int(_REPEAT_S / once)))
    return min(loaded.seconds(count) for _ in range(_REPEATS)) * 1e6


def _in_turn(bench: DeviceBench, built: Sequence[_Built], say: Say) -> list[float]:
    arguments = drawn(built[0].interface)
    loaded = [_Loaded(bench, one, arguments, say) for one in built]
    with _turn(bench.turn, say):
        for one in loaded:
            one.place()
        counts = [max(1, min(_MOST_CALLS, int(_REPEAT_S / one.seconds(1)))) for one in loaded]
        rounds = [
            [one.seconds(count) for one, count in zip(loaded, counts, strict=True)]
            for _ in range(ROUNDS)
        ]
    return [min(times) * 1e6 for times in zip(*rounds, strict=True)]


def _save(bench: DeviceBench, built: _Built, file: Path, say: Say) -> None:
    loaded = _Loaded(bench, built, drawn(built.interface), say)
    with _turn(bench.turn, say):
        loaded.place()
        np.savez(file, *loaded.arrays())


class _Loaded:
    """A candidate in the device's driver, and its arguments once they have been placed there."""

    def __init__(
        self, bench: DeviceBench, built: _Built, arguments: Sequence[np.ndarray], say: Say
    ) -> None:
        from edgekernelbench.compilers.tvm.device.load import open_program
        from edgekernelbench.targets.opencl import private_caches

        assert bench.profile.device is not None
        # Read by drivers when they are first used in this process.
        os.environ.update(private_caches(str(built.folder.resolve())))
        self._program = open_program(built.folder / _CODE, bench.profile.device.choice)
        self._plan = LaunchPlan.model_validate_json((built.folder / _PLAN).read_text())
        self._arguments = arguments
        self._buffers: dict[str, Any] = {}
        self._launches: Sequence[Any] = ()
        say([])  # what the driver compiles may take its time

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
                say([])
        say([])
        yield
