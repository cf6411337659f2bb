"""Interleaved measurement: rounds in random order, one block of samples a contestant and round.

While one contestant works the others sleep. What a round measures of each, it measures under the
same conditions, so ratios are formed within rounds. The number of rounds adapts to the noise: to
what shows in the times, and to what a watch sees on the machine.

Each sample has its own input set and its own filling of the outputs, both unpredictable; which
samples are looked at afterwards is unpredictable too, but for the very first and the last.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.statistics import LEAST, MARGIN, estimate, median, speedup

SETTLE_SECONDS = 0.0008
"""Pause after a block, longer than idle worker threads spin (`machinery.SPIN_SECONDS`)."""

NOISY_ROUNDS = 2
"""How many times the least number of rounds a measurement has that is disturbed."""

NOISY_SECONDS = 3.0
"""How many times the time cap it may take."""

_SLOW_US = 20_000.0
_LEAD_BELOW_US = 10_000.0
_ALIKE = 4.0
_DISCARD_BELOW_US = 5_000.0
_WARM_US = 2_000.0
_BLOCK_US = 1_500.0
_UNSCORED_SECONDS = 0.1
_MAX_BLOCK = 5
_ROUNDS_PER_REPLICA = 3
_MAX_CALLS = 10_000


class Runs(Protocol):
    """What is measured: a group of processes that take turns; `replicas.Replicas` is one."""

    @property
    def name(self) -> str: ...

    @property
    def count(self) -> int: ...
    def turn(self, number: int) -> None: ...
    def run(self, samples: Sequence[Sample]) -> list[int]: ...


class Watching(Protocol):
    """Tells whether the machine is quiet; `noise.Watch` is one."""

    def begin(self) -> None: ...
    def between(self) -> None: ...
    @property
    def disturbed(self) -> bool: ...


@dataclass(slots=True)
class Entrant:
    """A contestant in a measurement.

    Attributes:
        runs: the program.
        scored: must be measured well; others get what time is left, and at least one sample.
        check: called with the input set of a sample that was kept, right after its block; raises
            to end the measurement of this entrant.
        readings: rounds that are enough of it, where it is there for its overhead alone.
    """

    runs: Runs
    scored: bool
    check: Callable[[int], None]
    readings: int | None = None
    series: Series = field(init=False)

    def __post_init__(self) -> None:
        self.series = Series()


@dataclass(slots=True)
class Series:
    """What was measured of one contestant. Microseconds per call.

    Attributes:
        calls: within one reading of the clock.
        call_us: what one takes, as far as that is known beforehand.
        lead: calls before it.
        block: counted samples a round.
        discard: samples at a block's start that are not counted.
        samples: all counted samples in the order measured.
        rounds: median of a round's samples, by round.
        seconds: wall time that its blocks took.
        kept: samples that were looked at; ``kept_sets``: of which input sets.
        first_call_us: the very first call.
    """

    calls: int = 1
    call_us: float = 0.0
    lead: int = 0
    block: int = 1
    discard: int = 0
    samples: list[float] = field(default_factory=list)
    rounds: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    kept: int = 0
    kept_sets: set[int] = field(default_factory=set)
    first_call_us: float = 0.0

    def forget(self) -> None:
        """Drops all times; how it is measured stays, and what was looked at."""
        self.samples.clear()
        self.rounds.clear()
        self.seconds = 0.0

    @property
    def is_short(self) -> bool:
        """Whether calls are so short that where a process lies in memory shows in its time."""
        return self.discard > 0

    @property
    def median_us(self) -> float:
        return median(list(self.rounds.values()))


class Meter:
    """Measures entrants together.

    Args:
        settings: effort and the number of looks.
        n_sets: input sets there are.
        random_source: decides order, inputs, fillings and looks.
        sleep, clock: for simulations.
        flush_bytes: memory to write before each sample, so that it finds the caches empty.
        sweep: empties what `flush_bytes` does not reach; called before each block, which then is
            of one sample.
        watch: of the machine; without one it is taken for quiet.
    """

    def __init__(
        self,
        settings: EvalSettings,
        n_sets: int,
        random_source: random.Random,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        flush_bytes: int = 0,
        watch: Watching | None = None,
        sweep: Callable[[], None] | None = None,
    ) -> None:
        self._sweep = sweep
        self._flush_bytes = flush_bytes
        self._watch = watch
        self._disturbed = False
        self._settings = settings
        self._n_sets = n_sets
        self._random = random_source
        self._sleep = sleep
        self._clock = clock

    # ------------------------------------------------------------ one entrant
    def first(self, entrant: Entrant) -> None:
        """The very first call, whose outputs are looked at; then how long samples must be."""
        series = entrant.series
        began = self._clock()
        [ns] = self._block(entrant, [self._sample(calls=1, lead=0, keep=True)])
        series.first_call_us = ns / 1e3
        per_call = series.first_call_us
        if per_call < _SLOW_US:
            per_call = self._calibrate(entrant)
        elif not entrant.scored:
            # Being shown is worth one slow call, and what a first call costs extra is lost in it.
            series.samples.append(per_call)
            series.rounds[0] = per_call
        self._plan(series, per_call)
        series.seconds += self._clock() - began

    def _calibrate(self, entrant: Entrant) -> float:
        """Microseconds of one call once warm."""
        calls, per_call = 1, 0.0
        while True:
            [ns] = self._block(entrant, [self._sample(calls=calls, lead=1)])
            per_call = max(ns / 1e3 / calls, 1e-3)
            if calls * per_call >= self._settings.sample_us / 2 or calls >= _MAX_CALLS:
                return per_call
            calls = min(_MAX_CALLS, max(2 * calls, int(self._settings.sample_us / per_call)))

    def _plan(self, series: Series, per_call: float) -> None:
        series.call_us = per_call
        if self._flush_bytes:
            return  # single calls, each into empty caches: a series' defaults
        wanted = self._settings.sample_us / per_call
        series.calls = min(_MAX_CALLS, max(1, math.ceil(wanted)))
        series.lead = 1 if per_call < _LEAD_BELOW_US else 0
        sample_us = per_call * (series.calls + series.lead)
        if per_call < _DISCARD_BELOW_US:
            series.discard = math.ceil(_WARM_US / sample_us)
        series.block = max(1, min(_MAX_BLOCK, int(_BLOCK_US / sample_us)))

    def _sample(self, calls: int, lead: int, keep: bool = False) -> Sample:
        poison = 0xFFFF_FFFF_FFFF_FFFF if self._random.random() < 0.25 else 0
        return Sample(
            set=self._random.randrange(self._n_sets),
            poison=poison or self._random.getrandbits(64),
            lead=lead,
            calls=calls,
            keep=keep,
            flush_bytes=self._flush_bytes,
        )

    def _block(self, entrant: Entrant, samples: list[Sample]) -> list[int]:
        if self._sweep is not None:
            self._sweep()
        times = entrant.runs.run(samples)
        for sample in samples:
            if sample.keep:
                entrant.series.kept += 1
                entrant.series.kept_sets.add(sample.set)
                entrant.check(sample.set)
        return times

    # ------------------------------------------------------------ rounds
    def rounds(
        self,
        candidate: Entrant,
        others: Sequence[Entrant],
        failed: Callable[[Entrant, Exception], object],
    ) -> None:
        """Measures all until the candidate's interval is narrow enough or time is up.

        Args:
            candidate: what it is about; its exceptions end the measurement.
            others: measured beside it; one that raises is dropped.
            failed: told of an entrant that was dropped, and what it raised.
        """
        active = [candidate, *others]
        _warm_alike(active)
        looks = self._looks()
        if self._watch is not None:
            self._watch.begin()
        number, final = 0, False
        while True:
            for entrant in self._shuffled(active):
                if self._rests(entrant, candidate, len(active), final):
                    continue
                look = final or (entrant is candidate and number in looks)
                try:
                    self._round(entrant, number, look, final)
                except Exception as error:
                    if entrant is candidate:
                        raise
                    active.remove(entrant)
                    failed(entrant, error)
            number += 1
            if final:
                return
            if self._watch is not None:
                self._watch.between()
            # One more round follows the decision, so that the last samples can be looked at.
            final = self._enough(candidate, active)

    def _looks(self) -> set[int]:
        """Rounds in which the candidate is looked at, beside the first call and the last."""
        wanted = self._settings.verify_samples - 2
        early = range(LEAST - 1)
        return set(self._random.sample(early, min(wanted, len(early))))

    def _shuffled(self, entrants: Sequence[Entrant]) -> list[Entrant]:
        return self._random.sample(list(entrants), len(entrants))

    def _round(self, entrant: Entrant, number: int, look: bool, last: bool) -> None:
        series = entrant.series
        count = series.discard + series.block
        seen = count - 1 if last else self._random.randrange(count)
        samples = [
            self._sample(series.calls, series.lead, keep=look and at == seen) for at in range(count)
        ]
        entrant.runs.turn(number)
        began = self._clock()
        counted = [ns / 1e3 / series.calls for ns in self._block(entrant, samples)]
        counted = [max(us, 1e-3) for us in counted[series.discard :]]
        self._sleep(SETTLE_SECONDS)
        series.seconds += self._clock() - began
        series.samples += counted
        series.rounds[number] = median(counted)

    def _rests(self, entrant: Entrant, candidate: Entrant, n: int, final: bool) -> bool:
        """Whether an entrant has had its share. The candidate never rests: without it a round
        says nothing."""
        if entrant is candidate or not entrant.series.rounds:
            return False
        if entrant.readings is not None:
            return len(entrant.series.rounds) >= entrant.readings
        if not entrant.scored:
            return entrant.series.seconds >= _UNSCORED_SECONDS
        if final:
            return False
        share = self._cap_s / n
        enough = len(entrant.series.rounds) >= self._least(entrant)
        return enough and entrant.series.seconds >= share

    def _least(self, entrant: Entrant) -> int:
        """Rounds that an entrant needs: each replica has several."""
        least = max(LEAST, self._settings.min_rounds, _ROUNDS_PER_REPLICA * entrant.runs.count)
        return least * NOISY_ROUNDS if self._disturbed else least

    @property
    def _cap_s(self) -> float:
        return self._settings.measure_s * (NOISY_SECONDS if self._disturbed else 1.0)

    def _enough(self, candidate: Entrant, active: Sequence[Entrant]) -> bool:
        rounds = len(candidate.series.rounds) + 1  # the final one is still to come
        if rounds % candidate.runs.count:
            return False
        if any(len(e.series.rounds) + 1 < self._least(e) for e in active if e.scored):
            return False
        spent = sum(e.series.seconds for e in active if e.readings is None)
        if spent < self._cap_s and not self._narrow(candidate, active):
            return False
        return self._disturbed or not self._notices(spent)

    def _notices(self, spent: float) -> bool:
        """Whether the machine turns out disturbed, which makes the measurement longer. Slow
        entrants, which are past the longer cap already, have had their rounds."""
        self._disturbed = self._watch is not None and self._watch.disturbed
        return self._disturbed and spent < self._cap_s

    def _narrow(self, candidate: Entrant, active: Sequence[Entrant]) -> bool:
        """The candidate's median and its scored speed-ups are known well enough."""
        wanted = self._settings.interval
        own = candidate.series.rounds
        if len(own) < LEAST or estimate(list(own.values())).half_width > wanted:
            return False
        scored = [e for e in active if e.scored and e is not candidate]
        widths = (speedup(e.series.rounds, own).half_width - MARGIN for e in scored)
        return all(width <= wanted for width in widths)


def _warm_alike(entrants: Sequence[Entrant]) -> None:
    """Who just misses `_LEAD_BELOW_US` must not find the caches that the others left, while a rival
    that just meets it has had a call before. Far above it, what a first call costs is lost."""
    programs = [entrant for entrant in entrants if entrant.readings is None]
    if any(entrant.series.lead for entrant in programs):
        for entrant in programs:
            if entrant.series.call_us < _ALIKE * _LEAD_BELOW_US:
                entrant.series.lead = 1
