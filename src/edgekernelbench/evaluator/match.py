"""The measurement of one candidate against the baselines, and the figures that come of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from edgekernelbench.evaluator.contestant import Failure
from edgekernelbench.evaluator.environment import observe_device
from edgekernelbench.evaluator.judge import Judge, WrongResult
from edgekernelbench.evaluator.model import (
    BaselineResult,
    DeviceFigures,
    DeviceState,
    Performance,
)
from edgekernelbench.evaluator.parentclock import Clocks, compare_clocks
from edgekernelbench.evaluator.plausible import implausible
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.rivals import Rival
from edgekernelbench.evaluator.statistics import grouped, median, speedup
from edgekernelbench.evaluator.task import Pool
from edgekernelbench.evaluator.timing import Entrant, Meter
from edgekernelbench.evaluator.unseen import recalls
from edgekernelbench.targets.model import Target

if TYPE_CHECKING:
    from edgekernelbench.evaluator.attempt import Attempt
    from edgekernelbench.evaluator.session import TaskSession


def flush_bytes(target: Target) -> int:
    """Memory to write so that nothing else is left in the caches: twice the last level."""
    return 2 * max(target.cache_bytes, default=16 << 20)


TIMER = "perf_counter_ns/child"
DEVICE_TIMERS = {
    "opencl": "opencl profiling events, first start to last end/child",
    "cuda": "cuda events around calls back to back/child",
}
_LAUNCH_US = 200.0
"""What launching a kernel, and asking when it ran, may cost the host."""


class Match:
    """Candidate and baselines in one interleaved measurement."""

    def __init__(
        self,
        attempt: Attempt,
        session: TaskSession,
        pool: Pool,
        candidate: Replicas,
        judge: Judge,
        source: random.Random,
    ) -> None:
        self._source = source
        self._replicas = candidate
        self._attempt = attempt
        self._session = session
        self._evaluator = session.evaluator
        self._pool = pool
        settings = self._evaluator.settings
        flush = flush_bytes(self._evaluator.target) if settings.cache_state == "cold" else 0
        self._meter = Meter(settings, len(pool.sets), source, flush_bytes=flush)
        self.candidate = Entrant(candidate, True, self._timed(judge))
        self._entrants: dict[str, Entrant] = {}
        self._clocks: Clocks | None = None
        self._recalled = ""
        self._device_state: DeviceState | None = None

    def _timed(self, judge: Judge) -> Callable[[int], None]:
        def look(number: int) -> None:
            with self._attempt.step("check"):
                judge.look(number)

        return look

    # ------------------------------------------------------------ measuring
    def first_call(self) -> None:
        """Raises `WrongResult` or `Failure` for the candidate."""
        with self._attempt.step("first"):
            self._meter.first(self.candidate)
        with self._attempt.step("start"):
            self._multiply(self._replicas, self.candidate, self._evaluator.bind_seconds)

    def _multiply(self, replicas: Replicas, entrant: Entrant, timeout: float) -> None:
        if entrant.scored and entrant.series.is_short:
            wanted = self._evaluator.settings.replicas
            replicas.multiply(wanted, self._pool, self._source, timeout)

    def play(self) -> None:
        """Measures everybody. Raises `WrongResult` or `Failure` for the candidate."""
        others = []
        began = time.monotonic()
        with self._attempt.step("baselines"):
            for rival in self._session.rivals.ready(self._pool):
                entrant = self._enter(rival)
                if entrant is not None:
                    others.append(entrant)
        # The candidate slept meanwhile, for minutes if they had to be built.
        self._replicas.postpone(time.monotonic() - began)
        with self._attempt.step("measure"):
            self._meter.rounds(self.candidate, others, self._dropped)
        with self._attempt.step("audit"):
            self._replicas.turn(0)
            median_us = self.candidate.series.median_us
            around_us = _LAUNCH_US * self._attempt.launches
            self._device_state = observe_device(self._evaluator.target.cuda)
            self._clocks = compare_clocks(self.candidate.runs, median_us, around_us)
            self._recalled = recalls(self._replicas.first, self._session.task, self._pool)

    def _enter(self, rival: Rival) -> Entrant | None:
        assert rival.contestant is not None
        judge = Judge(self._session.task, self._pool, rival.contestant)
        entrant = Entrant(rival.contestant, rival.scored, self._timed(judge))
        self._entrants[rival.name] = entrant
        try:
            self._meter.first(entrant)
            limit = self._evaluator.settings.baseline_compile_s
            self._multiply(rival.contestant, entrant, limit)
        except (Failure, WrongResult) as error:
            if self._dropped(entrant, error) and self._session.rivals.bind(rival, self._pool):
                return self._enter(rival)
            return None
        return entrant

    def _dropped(self, entrant: Entrant, error: Exception) -> bool:
        """Takes a baseline out; whether another build of it may come in."""
        name = next(n for n, e in self._entrants.items() if e is entrant)
        del self._entrants[name]
        rival = next(r for r in self._session.rivals.all if r.name == name)
        if not isinstance(error, Failure | WrongResult):
            raise error
        status = "wrong_result" if isinstance(error, WrongResult) else "failed"
        rival.fails(status, str(error))
        return status == "wrong_result" and rival.gives_way(str(error))

    # ------------------------------------------------------------ figures
    def performance(self) -> Performance:
        series = self.candidate.series
        times = grouped(series.rounds, self.candidate.runs.count)
        overhead = self._evaluator.canary.overhead_us()
        return Performance(
            median_us=times.median,
            low_us=times.low,
            high_us=times.high,
            samples_us=tuple(round(us, 4) for us in series.samples),
            timer=DEVICE_TIMERS.get(self._evaluator.target.backend, TIMER),
            rounds=len(series.rounds),
            calls_per_sample=series.calls,
            threads=self._evaluator.target.threads,
            cache_state=self._evaluator.settings.cache_state,
            launch_overhead_us=overhead,
            overhead_dominated=overhead > times.median / 4,
            replicas=self.candidate.runs.count,
            interval_reached=times.half_width <= self._evaluator.settings.interval,
            device=self._device_figures(),
        )

    def _device_figures(self) -> DeviceFigures | None:
        device = self._evaluator.target.device
        if device is None:
            return None
        samples = self._replicas.device_samples
        alone = [s.kernels_ns / 1e3 / s.calls for s in samples if s.kernels_ns is not None]
        return DeviceFigures(
            launches=self._attempt.launches,
            kernels_us=median(alone) if alone else None,
            host_us=median([max(0, s.host_ns - s.span_ns) / 1e3 / s.calls for s in samples]),
            state=self._device_state,
        )

    def baseline_results(self) -> dict[str, BaselineResult]:
        out = {}
        for rival in self._session.rivals.all:
            entrant = self._entrants.get(rival.name)
            if entrant is None:
                out[rival.name] = rival.without_figures()
            else:
                out[rival.name] = self._result(rival, entrant)
        return out

    def _result(self, rival: Rival, entrant: Entrant) -> BaselineResult:
        series = entrant.series
        replicas = entrant.runs.count, self.candidate.runs.count
        times = grouped(series.rounds, replicas[0])
        ratio = speedup(series.rounds, self.candidate.series.rounds, replicas)
        return BaselineResult(
            status="measured",
            scored=rival.scored,
            median_us=times.median,
            low_us=times.low,
            high_us=times.high,
            speedup=ratio.median,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            route=rival.route,
            notes=rival.notes,
            samples_us=tuple(round(us, 4) for us in series.samples),
            rounds=len(series.rounds),
            calls_per_sample=series.calls,
            replicas=replicas[0],
        )

    def best(self, results: dict[str, BaselineResult]) -> str | None:
        """The fastest scored baseline that was measured."""
        times = {
            name: result.median_us
            for name, result in results.items()
            if result.scored and result.median_us is not None
        }
        return min(times, key=lambda name: times[name]) if times else None

    def suspicion(self, performance: Performance) -> str:
        """Why the candidate's time cannot be true; empty when it can.

        Before the roofline accuses, it is measured anew: it may have been taken on a busy machine.
        """
        if self._recalled:
            return self._recalled
        found = self._implausible(performance)
        if found and self._evaluator.measure_peaks():
            found = self._implausible(performance)
        return found

    def _implausible(self, performance: Performance) -> str:
        return implausible(
            self._session.task,
            performance.median_us,
            performance.launch_overhead_us,
            self._clocks,
            self._evaluator.peaks(),
            self._evaluator.settings.roofline_slack,
        )
