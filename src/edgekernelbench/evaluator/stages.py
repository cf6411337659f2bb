"""Where a kernel's time goes: an instrumented build of it, measured beside the plain one.

Both builds take turns on the same inputs, in limited processes of their own like any candidate, and
the outputs of both are judged. The instrumented one reads the clock between its nests
(`compilers.tvm.stages`); what that costs is told with the result.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.baselines.base import Port
from edgekernelbench.compilers.tvm.stages import CLOCK, PARTS, PartList, TimedPart
from edgekernelbench.evaluator.building import plain_file
from edgekernelbench.evaluator.contestant import Contestant, Failure
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.judge import Judge, WrongResult
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.statistics import median
from edgekernelbench.evaluator.task import InvalidReference, Pool
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.ir.dtypes import DType

if TYPE_CHECKING:
    from edgekernelbench.evaluator.session import TaskSession

_COMPILERS = {
    "llvm": "edgekernelbench.compilers.tvm.stages:StageTimer",
    "c": "edgekernelbench.compilers.c.stages:CStageTimer",
}
_MOST_PARTS = 10_000
_LEAST_ROUNDS, _MOST_ROUNDS = 7, 64
_WARM_US = 500.0
_MOST_LEAD = 50


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PartTime(_Stored):
    """A nest and its time in one call, in microseconds, without what reading the clock takes.

    Attributes:
        label: the stage whose loops the nest has, or ``loop t`` of a ``seq`` or ``each`` loop.
        stages: all that it computes, those inside of the loops of the first one included.
        share: of the time of all nests.
    """

    label: str
    stages: tuple[str, ...]
    median_us: float
    share: float


class StageProfile(_Stored):
    """The time of a call by nests, in the order in which they run. Times in microseconds.

    Attributes:
        whole_us: median of a call of the plain build.
        timed_us: of the instrumented one, in turn with it.
        overhead: median of the ratio of the two within a round: 1.02 is 2 % more.
        clock_us: what one reading of the clock takes.
        call_us: what a call of the instrumented build takes outside of its nests: arguments and
            the allocation of workspace.
        rounds: how often both were measured.
        lock_wait_seconds: waiting for the device.
    """

    whole_us: float
    timed_us: float
    overhead: float
    clock_us: float
    call_us: float
    rounds: int
    parts: tuple[PartTime, ...]
    lock_wait_seconds: float = 0.0


class NoProfile(_Stored):
    """Why there is none, in one line."""

    message: str
    lock_wait_seconds: float = 0.0


def profile(session: TaskSession, text: str) -> StageProfile | NoProfile:
    """Times a kernel's nests on the inputs of a session, whose lock is held.

    Args:
        text: whatever it does, this returns.
    """
    if not session.evaluator.target.on_cpu:
        return NoProfile(message="stages are timed on the host's processor only")
    try:
        with _builds(session, text) as builds:
            return builds.measured()
    except _None as none:
        return NoProfile(message=str(none))
    except ChildLost as lost:
        return NoProfile(message=f"it is not built: {lost.detail}")
    except InvalidReference as error:
        return NoProfile(message=str(error))
    except WrongResult as wrong:
        return NoProfile(message=f"its results are wrong: {wrong}")
    except Failure as failure:
        return NoProfile(message=failure.detail)


class _None(Exception):
    """There is no profile, for this reason."""


@contextmanager
def _builds(session: TaskSession, text: str) -> Iterator[_Pair]:
    """Both builds of a kernel, each in a process that has the session's inputs."""
    evaluator, task = session.evaluator, session.task
    with ExitStack() as stack:
        folders = []
        for kind in ("kernel", "timed"):
            folders.append(scratch_folder(kind))
            stack.callback(remove_folder, folders[-1])
        plain = evaluator.builder.kernel(text, session.interface, folders[0])
        if plain.manifest is None or plain.misfit:
            said = plain.reply.message or next(
                (str(d["message"]) for d in plain.reply.diagnostics if d["severity"] == "error"), ""
            )
            raise _None(f"it is not built: {plain.misfit or said}")
        # The interface was held against the text just now; here is an output more.
        timed = evaluator.builder.kernel(
            text, None, folders[1], _COMPILERS[evaluator.target.backend]
        )
        if timed.manifest is None:
            raise _None("the instrumented build fails")
        parts = _parts(folders[1])
        clock = Port(name=CLOCK, dtype=DType.S64, shape=(len(parts) + 2,), role="output")
        pool, (_, source) = session.pool(), session.random_source()
        pair = [
            evaluator.kernel_contestant("the kernel", folders[0], task),
            evaluator.kernel_contestant("the instrumented build", folders[1], task, more=(clock,)),
        ]
        for one in pair:
            stack.callback(one.close)
            one.deadline = time.monotonic() + evaluator.settings.total_run_s
            one.bind(pool, source.getrandbits(64), evaluator.bind_seconds)
        judges = [Judge(task, pool, one) for one in pair]
        yield _Pair(parts, pair, judges, pool, source, evaluator.settings.measure_s)


def _parts(folder: Path) -> tuple[TimedPart, ...]:
    """The nests of an instrumented build, as the child that built it names them."""
    try:
        listed = PartList.model_validate_json(plain_file(folder / PARTS))
    except (OSError, ValueError) as error:
        raise ChildLost("bad_reply", "an unusable list of nests") from error
    if not 0 < len(listed.parts) <= _MOST_PARTS:
        raise _None("it has no nests to be timed")
    return listed.parts


@dataclass(slots=True)
class _Pair:
    """The plain and the instrumented build at work.

    Attributes:
        whole, timed: nanoseconds of a call of each, by round.
        readings: of the clock, by round.
    """

    parts: Sequence[TimedPart]
    pair: Sequence[Contestant]
    judges: Sequence[Judge]
    pool: Pool
    source: random.Random
    seconds: float
    whole: list[int] = field(default_factory=list)
    timed: list[int] = field(default_factory=list)
    readings: list[np.ndarray] = field(default_factory=list)

    def measured(self) -> StageProfile:
        """Raises `WrongResult`, `Failure` or `_None`."""
        first = max(self._sample(which, 0, look=True) for which in (0, 1))
        lead = min(_MOST_LEAD, int(_WARM_US * 1000 / max(1, first)) + 1)
        began = time.monotonic()
        while len(self.whole) < _MOST_ROUNDS and (
            len(self.whole) < _LEAST_ROUNDS or time.monotonic() - began < self.seconds
        ):
            self._round(lead)
        for which in (0, 1):
            self._sample(which, lead, look=True)
        return self._profile()

    def _round(self, lead: int) -> None:
        order = [0, 1]
        self.source.shuffle(order)
        took = {which: self._sample(which, lead) for which in order}
        self.whole.append(took[0])
        self.timed.append(took[1])
        readings = self._clock()
        steps = np.diff(readings)
        if (steps < 0).any() or readings[-1] - readings[0] > took[1]:
            raise _None("the clock of the instrumented build gives times that cannot be")
        self.readings.append(steps)

    def _sample(self, which: int, lead: int, look: bool = False) -> int:
        """Nanoseconds of one call."""
        number = self.source.randrange(len(self.pool.sets))
        keep = look or which == 1
        poison = self.source.getrandbits(64)
        sample = Sample(set=number, poison=poison, lead=lead, calls=1, keep=keep)
        (took,) = self.pair[which].run([sample])
        if look:
            self.judges[which].look(number)
        return took

    def _clock(self) -> np.ndarray:
        region = self.pair[1].outputs_region()
        return self.pair[1].layout.views(region)[CLOCK]

    def _profile(self) -> StageProfile:
        steps = np.array(self.readings)
        clock = float(np.median(steps[:, 0]))
        net = np.maximum(np.median(steps[:, 1:], axis=0) - clock, 0.0) / 1e3
        total = float(net.sum())
        outside = np.array(self.timed) - steps.sum(axis=1)
        return StageProfile(
            whole_us=median([float(ns) for ns in self.whole]) / 1e3,
            timed_us=median([float(ns) for ns in self.timed]) / 1e3,
            overhead=median([b / max(1, a) for a, b in zip(self.whole, self.timed, strict=True)]),
            clock_us=clock / 1e3,
            call_us=float(np.median(outside)) / 1e3,
            rounds=len(self.whole),
            parts=tuple(
                PartTime(
                    label=part.label,
                    stages=part.stages,
                    median_us=round(float(us), 4),
                    share=float(us) / total if total else 0.0,
                )
                for part, us in zip(self.parts, net, strict=True)
            ),
        )
