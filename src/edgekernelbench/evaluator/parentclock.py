"""A second opinion on a contestant's clock, by ones that it cannot reach.

The child's clock lies in the same process as the candidate's code. The parent times requests that
differ only in the number of calls; the difference has no share of copying or messages, and is
compared with what the child says of the very same requests, so that a busy machine raises no
suspicion. To the child they look like those that find out how long a sample must be.

A forged time is wrong by a factor, what other processes add is so many milliseconds a request. So
before this accuses, it asks for ever longer requests, in which a factor stays and an addend drowns.
A third clock says how long the child's main thread had a processor, where the system tells. A call
cannot have one for longer than it lasts, so what that contradicts is forged on the busiest machine.

It contradicts what was said *while it was measured*, too, when that was forged and these requests
are not. There a busy machine explains much: honest calls may take ten times as long now, and a
thread that waits for another one may keep its processor meanwhile. So that is no proof, but a
reason to measure again.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.timing import SETTLE_SECONDS, Runs

CLOCK_RATIO = 3.0
"""How many times the child's time the parent's may be."""

_WORTH_SECONDS = (600e-6, 8e-3, 80e-3)
_SLOW_US = 100_000.0
_MAX_CALLS = 10_000
_TRIES = 4
_MORE_TRIES = (20, 4, 4)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Microseconds of one call by each clock, from the least of some tries: other work on the
    machine only adds to it.

    Attributes:
        parent_us: as the parent saw it.
        child_us: as the child says of the same requests.
        around_us: what the parent may see beside the call itself.
        ran_us: in which the child's main thread had a processor; None where that is not told.
        claimed_us: as the child said while it was measured.
    """

    parent_us: float
    child_us: float
    around_us: float = 0.0
    ran_us: float | None = None
    claimed_us: float = math.inf

    @property
    def forged(self) -> bool:
        """Whether no other work can explain it."""
        return (self.ran_us or 0.0) > self._most(self.child_us)

    @property
    def unlike(self) -> bool:
        """Whether calls need a processor for much longer than they took while it was measured."""
        return (self.ran_us or 0.0) > self._most(self.claimed_us)

    @property
    def disagree(self) -> bool:
        return self.forged or self.unlike or self.parent_us > self._most(self.child_us)

    def complaint(self) -> str:
        """In which way they disagree."""
        seen = max(self.parent_us, self.ran_us or 0.0)
        if seen <= self._most(self.child_us):
            return (
                f"{self.claimed_us:.3g} us a call by the child's clock while it was measured, for "
                f"which it then has a processor for {self.ran_us:.3g} us"
            )
        return f"{self.child_us:.3g} us a call by the child's clock, {seen:.3g} us by the parent's"

    def _most(self, said_us: float) -> float:
        return CLOCK_RATIO * said_us + self.around_us


def untold() -> float | None:
    """Of a process whose time on processors is not told."""
    return None


def processor_seconds(pid: int) -> float | None:
    """How long a process's main thread has had a processor; right once it sleeps again."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return None


def compare_clocks(
    runs: Runs,
    median_us: float,
    around_us: float = 0.0,
    ran: Callable[[], float | None] = untold,
) -> Clocks | None:
    """What the clocks say of a contestant.

    Args:
        runs: the contestant.
        median_us: what its own clock said while it was measured.
        around_us: what a call may cost beside that: a device's clock says nothing of launches.
        ran: seconds that its main thread has had a processor, so far.

    Returns:
        None for calls that by the child's clock take long: nobody forges those.
    """
    if median_us > _SLOW_US:
        return None
    rest = _request(runs, 1, ran).parent
    clocks = Clocks(math.inf, 0.0)
    for worth, more in zip(_WORTH_SECONDS, _MORE_TRIES, strict=True):
        # As much again as the rest of a request takes, so that its noise stays below the calls'.
        known = Clocks(0.0, median_us, around_us, claimed_us=median_us)
        clocks = _compare(runs, known, ran, max(worth, rest), more)
        if not clocks.disagree:
            break
    return clocks


@dataclass(frozen=True, slots=True)
class _Request:
    """Seconds of a request by each clock."""

    parent: float = math.inf
    child: float = math.inf
    ran: float = math.inf

    def least(self, other: _Request) -> _Request:
        return _Request(
            min(self.parent, other.parent), min(self.child, other.child), min(self.ran, other.ran)
        )


def _compare(
    runs: Runs, known: Clocks, ran: Callable[[], float | None], worth: float, more_tries: int
) -> Clocks:
    """Compares requests that differ by ``worth`` seconds of calls, until the clocks agree."""
    calls = min(_MAX_CALLS, math.ceil(worth * 1e6 / known.child_us))
    tries = _TRIES if worth < 0.005 else 1
    few = many = _Request()
    clocks = known
    for attempt in range(tries + more_tries):
        few = few.least(_request(runs, 1, ran))
        many = many.least(_request(runs, calls + 1, ran))
        told = math.isfinite(few.ran) and math.isfinite(many.ran)
        clocks = Clocks(
            parent_us=_per_call(few.parent, many.parent, calls),
            child_us=_per_call(few.child, many.child, calls),
            around_us=known.around_us,
            claimed_us=known.claimed_us,
            ran_us=_per_call(few.ran, many.ran, calls) if told else None,
        )
        if attempt + 1 >= tries and not clocks.disagree:
            break
    return clocks


def _per_call(few: float, many: float, calls: int) -> float:
    return max(0.0, many - few) * 1e6 / calls


def _request(runs: Runs, calls: int, ran: Callable[[], float | None]) -> _Request:
    before = ran()
    began = time.perf_counter()
    [ns] = runs.run([Sample(set=0, poison=0, lead=1, calls=calls)])
    passed = time.perf_counter() - began
    if before is None:
        return _Request(passed, ns / 1e9)
    time.sleep(SETTLE_SECONDS)  # so that it sleeps, and its counter is up to date
    after = ran()
    return _Request(passed, ns / 1e9, math.inf if after is None else after - before)
