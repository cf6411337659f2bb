"""A second opinion on a contestant's clock, by ones that it cannot reach.

The child's clock lies in the same process as the candidate's code. The parent times requests that
differ only in the number of calls; the difference has no share of copying or messages, and is
compared with what the child says of the very same requests, so that a busy machine raises no
suspicion. To the child they look like those that find out how long a sample must be.

A forged time is wrong by a factor, what other processes add is so many milliseconds a request. So
before this accuses, it asks for ever longer requests, in which a factor stays and an addend drowns.
A third clock says how long the child's main thread had a processor, where the system tells. A call
cannot have one for longer than it lasts, however busy the machine is, so what that contradicts is
forged: in these requests, and in those that were measured before. Times of the two are not
compared: a machine that got busy in between makes honest calls many times slower, and a thread that
waits for another one may keep its processor meanwhile.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.timing import SETTLE_SECONDS, Runs

CLOCK_RATIO = 3.0
"""How many times the child's time the parent's may be."""

_REST_RATIO = 4.0
"""How many times what is beside the calls may be of what it is at its quickest."""

_WORTH_SECONDS = (600e-6, 8e-3, 80e-3)
_SLOW_US = 100_000.0
_MAX_CALLS = 10_000
_FEW_CALLS = 2  # of a sample with one call, the one before the clock starts included
_FURTHER = 8
_REST_TRIES = 8
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
        work: what it did while it was measured.
        rest_s: seconds of that in which it had a processor beside the calls, were all of it as
            quick as it can be.
    """

    parent_us: float
    child_us: float
    around_us: float = 0.0
    ran_us: float | None = None
    work: Work | None = None
    rest_s: float = 0.0

    @property
    def forged(self) -> bool:
        """Whether no other work can explain it."""
        return self.overworked or (self.ran_us or 0.0) > self._most(self.child_us)

    @property
    def overworked(self) -> bool:
        """Whether it had a processor for longer, while it was measured, than it says it worked."""
        if self.work is None:
            return False
        return self.work.ran_s > CLOCK_RATIO * self.work.claimed_s + _REST_RATIO * self.rest_s

    @property
    def disagree(self) -> bool:
        return self.forged or self.parent_us > self._most(self.child_us)

    def complaint(self) -> str:
        """In which way they disagree."""
        seen = max(self.parent_us, self.ran_us or 0.0)
        if seen <= self._most(self.child_us) and self.work is not None:
            return (
                f"{self.work.claimed_s:.3g} s of calls while it was measured, by the child's "
                f"clock; its main thread had a processor for {self.work.ran_s:.3g} s"
            )
        return f"{self.child_us:.3g} us a call by the child's clock, {seen:.3g} us by the parent's"

    def _most(self, said_us: float) -> float:
        return CLOCK_RATIO * said_us + self.around_us


@dataclass(frozen=True, slots=True)
class Work:
    """What a contestant's processes did so far, or between two moments.

    Attributes:
        ran_s: seconds that their main threads had a processor.
        claimed_s: of calls, see `Contestant.claimed_seconds`.
        samples: that were taken, in how many ``requests``.
    """

    ran_s: float
    claimed_s: float
    samples: int
    requests: int

    @classmethod
    def of(cls, contestants: Iterable[Worked]) -> Work | None:
        """So far; None where the system does not tell."""
        ran, claimed, samples, requests = 0.0, 0.0, 0, 0
        for each in contestants:
            own = None if each.pid is None else processor_seconds(each.pid)
            if own is None:
                return None
            ran += own
            claimed += each.claimed_seconds
            samples += each.samples
            requests += each.requests
        return cls(ran, claimed, samples, requests)

    def since(self, before: Work | None) -> Work | None:
        if before is None:
            return None
        return Work(
            self.ran_s - before.ran_s,
            self.claimed_s - before.claimed_s,
            self.samples - before.samples,
            self.requests - before.requests,
        )


class Worked(Protocol):
    """A `Contestant`."""

    @property
    def pid(self) -> int | None: ...
    @property
    def samples(self) -> int: ...
    @property
    def requests(self) -> int: ...
    @property
    def claimed_seconds(self) -> float: ...


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
    work: Work | None = None,
) -> Clocks | None:
    """What the clocks say of a contestant.

    Args:
        runs: the contestant.
        median_us: what its own clock said while it was measured.
        around_us: what a call may cost beside that: a device's clock says nothing of launches.
        ran: seconds that its main thread has had a processor, so far.
        work: what its processes did while it was measured.

    Returns:
        None for calls that by the child's clock take long: nobody forges those.
    """
    if median_us > _SLOW_US:
        return None
    rest = _request(runs, 1, ran).parent
    clocks = Clocks(math.inf, 0.0)
    for worth, more in zip(_WORTH_SECONDS, _MORE_TRIES, strict=True):
        # As much again as the rest of a request takes, so that its noise stays below the calls'.
        known = Clocks(0.0, median_us, around_us)
        clocks = _compare(runs, known, ran, max(worth, rest), more)
        if not clocks.disagree:
            break
    if work is None or clocks.ran_us is None:
        return clocks
    held = replace(clocks, work=work)
    # Only what would be accused without it is worth the requests.
    return replace(held, rest_s=_rest(runs, work, ran, clocks.ran_us)) if held.overworked else held


def _rest(runs: Runs, work: Work, ran: Callable[[], float | None], call_us: float) -> float:
    """Seconds that all requests of some work have a processor beside its calls; from the least of
    some tries of a request with one sample, and of one with several."""
    one = several = math.inf
    for _ in range(_REST_TRIES):
        one = min(one, _request(runs, 1, ran).ran)
        several = min(several, _request(runs, 1, ran, 1 + _FURTHER).ran)
    if not math.isfinite(one) or not math.isfinite(several):
        return math.inf
    calls = _FEW_CALLS * call_us * 1e-6
    each = max(0.0, (several - one) / _FURTHER - calls)
    return work.requests * max(0.0, one - calls - each) + work.samples * each


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
            ran_us=_per_call(few.ran, many.ran, calls) if told else None,
        )
        if attempt + 1 >= tries and not clocks.disagree:
            break
    return clocks


def _per_call(few: float, many: float, calls: int) -> float:
    return max(0.0, many - few) * 1e6 / calls


def _request(runs: Runs, calls: int, ran: Callable[[], float | None], samples: int = 1) -> _Request:
    before = ran()
    began = time.perf_counter()
    told = runs.run([Sample(set=0, poison=0, lead=1, calls=calls)] * samples)
    passed = time.perf_counter() - began
    if before is None:
        return _Request(passed, sum(told) / 1e9)
    time.sleep(SETTLE_SECONDS)  # so that it sleeps, and its counter is up to date
    after = ran()
    return _Request(passed, sum(told) / 1e9, math.inf if after is None else after - before)
