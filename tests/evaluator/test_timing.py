"""The measurement on simulated contestants: shares, looks, adaptivity, what entrants may know."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.timing import Entrant, Meter

SETTINGS = EvalSettings(measure_s=0.5, interval=0.02)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Simulated:
    """Takes ``us`` per call, times noise; advances the clock."""

    count = 1

    def __init__(self, name: str, us: float, clock: Clock, noise: float = 0.0) -> None:
        self.name = name
        self.us = us
        self.noise = noise
        self.requests: list[list[Sample]] = []
        self._clock = clock
        self._random = random.Random(name)
        self.fail_after: int | None = None
        self.turns: list[int] = []

    def turn(self, number: int) -> None:
        self.turns.append(number)

    def pause(self) -> None: ...

    def run(self, samples: Sequence[Sample]) -> list[int]:
        self.requests.append(list(samples))
        if self.fail_after is not None and len(self.requests) > self.fail_after:
            raise RuntimeError("dead")
        out = []
        for sample in samples:
            factor = 1 + self.noise * self._random.random()
            self._clock.now += (sample.lead + sample.calls) * self.us * factor / 1e6
            out.append(round(sample.calls * self.us * factor * 1e3))
        return out


def field(*specs: tuple[str, float, bool], noise: float = 0.0) -> tuple[Meter, list[Entrant]]:
    clock = Clock()
    meter = Meter(SETTINGS, 3, random.Random(7), clock.sleep, clock)
    entrants = [
        Entrant(Simulated(name, us, clock, noise), scored, lambda _: None)
        for name, us, scored in specs
    ]
    for entrant in entrants:
        meter.first(entrant)
    return meter, entrants


def play(meter: Meter, entrants: list[Entrant]) -> None:
    meter.rounds(entrants[0], entrants[1:], reraise)


def reraise(entrant: Entrant, error: Exception) -> None:
    raise error


@pytest.mark.parametrize("us", [0.5, 3.0, 70.0, 500.0, 8_000.0, 50_000.0])
def test_medians_are_right_and_effort_fits(us: float) -> None:
    meter, entrants = field(("candidate", us, True), ("tvm", 2 * us, True), ("raw", 50 * us, False))
    play(meter, entrants)
    for entrant, expected in zip(entrants, (us, 2 * us, 50 * us), strict=True):
        assert entrant.series.median_us == pytest.approx(expected, rel=0.01)
    candidate, tvm, raw = (e.series for e in entrants)
    assert candidate.calls * us >= 200 or candidate.calls == 10_000
    assert len(candidate.rounds) >= 6 and len(tvm.rounds) >= 6
    assert raw.seconds <= 0.1 + 5 * 50 * us / 1e6 * raw.calls
    if us < 1_000:
        assert sum(s.seconds for s in (candidate, tvm, raw)) < 0.6 + 2 * 50 * us / 1e6


def test_noise_costs_rounds_up_to_the_cap() -> None:
    calm, entrants_calm = field(("c", 100.0, True), ("t", 100.0, True), noise=0.001)
    rough, entrants_rough = field(("c", 100.0, True), ("t", 100.0, True), noise=1.0)
    play(calm, entrants_calm)
    play(rough, entrants_rough)
    assert len(entrants_calm[0].series.rounds) < len(entrants_rough[0].series.rounds)
    assert sum(e.series.seconds for e in entrants_rough) < 0.6


class Refilling(Simulated):
    """Its first call of a request finds the caches empty."""

    def run(self, samples: Sequence[Sample]) -> list[int]:
        cold = 2_000_000 * (samples[0].lead == 0)
        first, *rest = super().run(samples)
        return [first + cold, *rest]


@pytest.mark.parametrize(("a", "b"), [(9_900.0, 10_100.0), (10_100.0, 9_900.0), (5_000.0, 19_000)])
def test_both_sides_of_a_ratio_are_warm_or_neither(a: float, b: float) -> None:
    clock = Clock()
    meter = Meter(SETTINGS, 3, random.Random(7), clock.sleep, clock)
    runs = Refilling("c", a, clock), Refilling("t", b, clock)
    entrants = [Entrant(each, True, lambda _: None) for each in runs]
    for entrant in entrants:
        meter.first(entrant)
    play(meter, entrants)
    candidate, tvm = (e.series.median_us for e in entrants)
    assert tvm / candidate == pytest.approx(b / a, rel=0.01)


def test_slow_unscored_is_called_once_more_at_most() -> None:
    meter, entrants = field(("c", 100.0, True), ("raw", 150_000.0, False))
    play(meter, entrants)
    raw = entrants[1].runs
    assert isinstance(raw, Simulated)
    assert sum(s.lead + s.calls for request in raw.requests for s in request) == 1
    assert entrants[1].series.rounds == {0: pytest.approx(150_000.0)}


class Spiking(Simulated):
    """One request of it is disturbed: ten times as slow."""

    spike = 0

    def run(self, samples: Sequence[Sample]) -> list[int]:
        times = super().run(samples)
        return [10 * ns for ns in times] if len(self.requests) == self.spike else times


def test_one_disturbed_reading_of_the_overhead_decides_nothing() -> None:
    clock = Clock()
    meter = Meter(SETTINGS, 3, random.Random(7), clock.sleep, clock)
    kernel = Entrant(Simulated("c", 20_000.0, clock), True, lambda _: None)
    spiking = Spiking("empty", 1.0, clock)
    empty = Entrant(spiking, False, lambda _: None, readings=9)
    for entrant in (kernel, empty):
        meter.first(entrant)
    spiking.spike = len(spiking.requests) + 2
    meter.rounds(kernel, [empty], reraise)
    readings = sorted(empty.series.rounds.values())
    assert 6 <= len(readings) <= 9 and readings[-1] > 5.0, "the disturbed one is among them"
    assert empty.series.median_us == pytest.approx(1.0, rel=0.01)
    assert kernel.series.lead == 0, "who is only there for the overhead changes nothing for others"


def test_first_and_last_samples_are_looked_at_and_nothing_tells() -> None:
    looks: list[int] = []
    clock = Clock()
    contestant = Simulated("c", 100.0, clock)
    entrant = Entrant(contestant, True, looks.append)
    meter = Meter(SETTINGS, 3, random.Random(3), clock.sleep, clock)
    meter.first(entrant)
    assert len(looks) == 1 and contestant.requests[0][0].keep
    meter.rounds(entrant, [], reraise)
    assert contestant.requests[-1][-1].keep
    assert len(looks) == SETTINGS.verify_samples == entrant.series.kept
    samples = [s for request in contestant.requests for s in request]
    assert {s.set for s in samples} == {0, 1, 2}
    assert len({s.poison for s in samples}) > len(samples) // 2
    assert any(s.poison == 2**64 - 1 for s in samples)
    # Samples that are not counted look like those that are.
    block = contestant.requests[-1]
    assert len({(s.lead, s.calls) for s in block}) == 1


def test_looks_differ_between_measurements() -> None:
    def kept(seed: int) -> list[int]:
        clock = Clock()
        contestant = Simulated("c", 100.0, clock)
        meter = Meter(SETTINGS, 3, random.Random(seed), clock.sleep, clock)
        entrant = Entrant(contestant, True, lambda _: None)
        meter.first(entrant)
        meter.rounds(entrant, [], reraise)
        samples = [s for request in contestant.requests for s in request]
        return [i for i, s in enumerate(samples) if s.keep]

    assert len({tuple(kept(seed)) for seed in range(10)}) > 3


def test_order_is_shuffled() -> None:
    order: list[str] = []
    meter, entrants = field(("a", 100.0, True), ("b", 100.0, True), ("c", 100.0, True))
    for entrant in entrants:
        entrant.runs.run = _noting(entrant.runs, order)  # type: ignore[method-assign]
    play(meter, entrants)
    triples = {tuple(order[i : i + 3]) for i in range(0, 18, 3)}
    assert len(triples) > 1
    assert all(sorted(triple) == ["a", "b", "c"] for triple in triples)


def _noting(runs: object, order: list[str]) -> Callable[[Sequence[Sample]], list[int]]:
    inner = runs.run  # type: ignore[attr-defined]

    def run(samples: Sequence[Sample]) -> list[int]:
        order.append(runs.name)  # type: ignore[attr-defined]
        return inner(samples)

    return run


def test_a_failing_baseline_is_dropped_a_failing_candidate_ends_it() -> None:
    meter, entrants = field(("c", 100.0, True), ("bad", 100.0, True), ("good", 100.0, True))
    bad = entrants[1].runs
    assert isinstance(bad, Simulated)
    bad.fail_after = len(bad.requests) + 2
    dropped: list[str] = []
    meter.rounds(entrants[0], entrants[1:], lambda e, _: dropped.append(e.runs.name))
    assert dropped == ["bad"]
    assert len(entrants[2].series.rounds) >= 6
    meter, entrants = field(("c", 100.0, True))
    candidate = entrants[0].runs
    assert isinstance(candidate, Simulated)
    candidate.fail_after = len(candidate.requests) + 2
    with pytest.raises(RuntimeError, match="dead"):
        play(meter, entrants)


def test_replicas_take_turns_and_come_equally_often() -> None:
    meter, entrants = field(("c", 100.0, True), ("t", 100.0, True), noise=0.01)
    for entrant in entrants:
        entrant.runs.count = 3  # type: ignore[misc]
    play(meter, entrants)
    for entrant in entrants:
        turns = entrant.runs.turns  # type: ignore[attr-defined]
        assert len(turns) >= 9 and len(turns) % 3 == 0
        assert turns == list(range(len(turns)))
