"""A machine whose noise is known: what a measurement makes of it can be counted over thousands.

Time is simulated, so a measurement of half a second costs a millisecond. The truth of an A/A
trial is a speed-up of 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.statistics import Estimate, speedup
from edgekernelbench.evaluator.timing import Entrant, Meter

SETTINGS = EvalSettings(order_seed=0)


@dataclass(frozen=True)
class Noise:
    """What disturbs a time; factors of it unless named otherwise.

    Attributes:
        sample: standard deviation of the logarithm of each sample.
        luck: the same of each process, for its life.
        slow: probability that a process is the slower kind, ``slow_factor`` times slower.
        drift: amplitude of a slow swing of the whole machine, over about 100 ms.
        spikes: probability that a sample is held up, by ``spike`` on average.
        load: share of the time that another process takes half of the processor, in stretches of
            ``stretch_s`` on average.
    """

    sample: float = 0.004
    luck: float = 0.0
    slow: float = 0.0
    slow_factor: float = 2.0
    drift: float = 0.0
    spikes: float = 0.0
    spike: float = 1.0
    load: float = 0.0
    stretch_s: float = 0.004


class Machine:
    """A clock, and what the whole machine is doing at any time."""

    def __init__(self, noise: Noise, source: random.Random) -> None:
        self.noise, self.source, self.now = noise, source, 0.0
        self._phase = source.uniform(0, 2 * math.pi)
        self._loaded = source.random() < noise.load
        self._until = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def factor(self) -> float:
        """By how much everything is slower now."""
        noise = self.noise
        swing = noise.drift * math.sin(self._phase + 2 * math.pi * self.now / 0.1)
        return (1 + swing) * (2.0 if self._busy() else 1.0)

    def _busy(self) -> bool:
        if not self.noise.load:
            return False
        while self.now >= self._until:
            self._loaded = not self._loaded
            share = self.noise.load if self._loaded else 1 - self.noise.load
            self._until += self.source.expovariate(1 / (2 * share * self.noise.stretch_s))
        return self._loaded


@dataclass
class Processes:
    """Replicas of one program on a machine; `timing.Runs`."""

    name: str
    us: float
    machine: Machine
    count: int = 1
    own: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        noise, source = self.machine.noise, self.machine.source
        for _ in range(self.count):
            slow = noise.slow_factor if source.random() < noise.slow else 1.0
            self.own.append(slow * math.exp(source.gauss(0, noise.luck)))
        self._turn = 0

    def turn(self, number: int) -> None:
        self._turn = number % self.count

    def pause(self) -> None: ...

    def run(self, samples: Sequence[Sample]) -> list[int]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> int:
        noise, source = self.machine.noise, self.machine.source
        us = self.us * self.own[self._turn] * math.exp(source.gauss(0, noise.sample))
        if source.random() < noise.spikes:
            us *= 1 + source.expovariate(1 / noise.spike)
        spent = 0.0
        for _ in range(sample.lead):
            self.machine.sleep(us * 1e-6)
        for _ in range(min(sample.calls, 4)):  # the machine changes within a sample, too
            part = us * 1e-6 * sample.calls / min(sample.calls, 4) * self.machine.factor()
            self.machine.sleep(part)
            spent += part
        return round(spent * 1e9)


@dataclass
class Alarm:
    """A watch that always says the same; `timing.Watching`."""

    disturbed: bool
    looks: int = 0

    def begin(self) -> None: ...

    def between(self) -> None:
        self.looks += 1


def aa(
    noise: Noise,
    seed: int,
    us: float = 100.0,
    replicas: int = 4,
    ratio: float = 1.0,
    alarm: Alarm | None = None,
) -> Estimate:
    """The speed-up that a measurement finds where it is ``ratio``."""
    source = random.Random(seed)
    machine = Machine(noise, source)
    entrants = []
    for name, time in (("candidate", us), ("baseline", us * ratio)):
        runs = Processes(name, time, machine, replicas)
        entrants.append(Entrant(runs, True, lambda _: None))
    meter = Meter(SETTINGS, 3, source, machine.sleep, machine.clock, watch=alarm)
    for entrant in entrants:
        meter.first(entrant)
    candidate, baseline = entrants
    meter.rounds(candidate, [baseline], _never)
    return speedup(baseline.series.rounds, candidate.series.rounds, (replicas, replicas))


def _never(entrant: Entrant, error: Exception) -> None:
    raise error
