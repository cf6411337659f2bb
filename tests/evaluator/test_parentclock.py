"""The parent's clock convicts a forged one, and never an honest one on a busy machine."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest

from edgekernelbench.evaluator.parentclock import compare_clocks
from edgekernelbench.evaluator.runchild import Sample


class Spinning:
    """Takes ``us`` a call and says ``us / lie``; each request may be held up, honestly:
    by ``busy`` us on average while calls run, by ``late`` us around them."""

    name = "spinning"
    count = 1

    def __init__(self, us: float, lie: float = 1.0, rest_us: float = 50.0, busy: float = 0.0,
        late: tuple[float, float] = (0.0, 0.0),
    ) -> None:  # fmt: skip
        self.us, self.lie, self.rest_us, self.busy, self.late = us, lie, rest_us, busy, late
        self._random = random.Random(1)
        self.requests = 0

    def turn(self, number: int) -> None: ...

    def run(self, samples: Sequence[Sample]) -> list[int]:
        self.requests += 1
        [sample] = samples
        held_up = self._random.expovariate(1 / self.busy) if self.busy else 0.0
        self._wait(self.rest_us + sample.lead * self.us + self._random.uniform(*self.late))
        took = sample.calls * self.us + held_up
        self._wait(took)
        return [round(took * 1e3 / self.lie)]

    def _wait(self, us: float) -> None:
        until = time.perf_counter() + us * 1e-6
        while time.perf_counter() < until:
            pass


@pytest.mark.parametrize("us", [1.0, 30.0, 2_000.0])
def test_honest(us: float) -> None:
    clocks = compare_clocks(Spinning(us), us)
    assert clocks is not None and not clocks.disagree


@pytest.mark.parametrize("us", [20.0, 500.0])
def test_forged(us: float) -> None:
    clocks = compare_clocks(Spinning(us, lie=6.0), us / 6)
    assert clocks is not None and clocks.disagree


def test_honest_on_a_busy_machine() -> None:
    """The median was taken in a quiet moment; now every request is held up for milliseconds."""
    clocks = compare_clocks(Spinning(100.0, busy=3_000.0), 100.0)
    assert clocks is not None and not clocks.disagree


@pytest.mark.parametrize("us", [0.5, 40.0])
def test_honest_where_every_answer_comes_late(us: float) -> None:
    """The parent waits for a processor up to 20 ms each time it is to wake up."""
    clocks = compare_clocks(Spinning(us, late=(2_000.0, 20_000.0)), us)
    assert clocks is not None and not clocks.disagree


def test_forged_where_every_answer_comes_late() -> None:
    clocks = compare_clocks(Spinning(40.0, lie=6.0, late=(2_000.0, 20_000.0)), 40.0 / 6)
    assert clocks is not None and clocks.disagree


def test_forged_behind_slow_copies() -> None:
    """Ten milliseconds of copying around a call of 50 us do not hide it."""
    clocks = compare_clocks(Spinning(50.0, lie=8.0, rest_us=10_000.0), 50.0 / 8)
    assert clocks is not None and clocks.disagree


def test_slow_calls_are_not_compared() -> None:
    runs = Spinning(1.0)
    assert compare_clocks(runs, 200_000.0) is None
    assert runs.requests == 0


class Accounted(Spinning):
    """Its time on processors is told; ``asleep`` of a call it has none."""

    def __init__(self, us: float, asleep: float = 0.0, **more: float) -> None:
        super().__init__(us, **more)  # type: ignore[arg-type]
        self.asleep, self.ran_s = asleep, 0.0

    def run(self, samples: Sequence[Sample]) -> list[int]:
        [sample] = samples
        calls = sample.lead + sample.calls
        self.ran_s += (self.rest_us + calls * self.us * (1 - self.asleep)) * 1e-6
        return super().run(samples)


def test_processor_time_convicts_where_the_parents_clock_is_lost_in_noise() -> None:
    """Short requests are held up so long that no difference is left."""
    runs = Accounted(40.0, lie=6.0, busy=30_000.0)
    clocks = compare_clocks(runs, 40.0 / 6, ran=lambda: runs.ran_s)
    assert clocks is not None and clocks.disagree and clocks.forged


def test_processor_time_does_not_accuse_the_honest() -> None:
    runs = Accounted(40.0, busy=3_000.0)
    clocks = compare_clocks(runs, 40.0, ran=lambda: runs.ran_s)
    assert clocks is not None and not clocks.disagree


def test_who_sleeps_and_forges_is_suspected_and_not_proven() -> None:
    runs = Accounted(40.0, asleep=1.0, lie=6.0)
    clocks = compare_clocks(runs, 40.0 / 6, ran=lambda: runs.ran_s)
    assert clocks is not None and clocks.disagree and not clocks.forged


def test_a_claim_that_a_busy_machine_made_larger_is_held_against_its_own_requests() -> None:
    """Forged by 8, but as it was measured calls took four times as long as they do now."""
    runs = Accounted(8.0, lie=8.0)
    clocks = compare_clocks(runs, 4.0, ran=lambda: runs.ran_s)
    assert clocks is not None and clocks.forged


def test_forged_while_measured_and_honest_afterwards() -> None:
    runs = Accounted(40.0)
    clocks = compare_clocks(runs, 40.0 / 6, ran=lambda: runs.ran_s)
    assert clocks is not None and clocks.disagree and clocks.unlike and not clocks.forged
    assert "while it was measured" in clocks.complaint()
