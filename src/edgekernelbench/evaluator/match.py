"""The measurement of one candidate against the baselines, and the figures that come of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from edgekernelbench.evaluator.canary import Overhead
from edgekernelbench.evaluator.contestant import Failure
from edgekernelbench.evaluator.environment import observe_device
from edgekernelbench.evaluator.judge import Judge, WrongResult
from edgekernelbench.evaluator.model import (
    BaselineResult,
    DeviceFigures,
    DeviceState,
    Noise,
    Performance,
)
from edgekernelbench.evaluator.noise import Watch
from edgekernelbench.evaluator.parentclock import Clocks, compare_clocks, processor_seconds
from edgekernelbench.evaluator.plausible import DEVICE_SLACK, implausible, least_seconds
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.rivals import Rival
from edgekernelbench.evaluator.statistics import LEAST, grouped, median, speedup, stretched
from edgekernelbench.evaluator.sweep import Sweep
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
_AGAIN = 2
"""Further measurements where clocks disagree and other work may be why."""

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
        self._watch = self._watched()
        self._meter = Meter(settings, len(pool.sets), source, watch=self._watch, **self._cold())
        self.candidate = Entrant(candidate, True, self._timed(judge))
        self._entrants: dict[str, Entrant] = {}
        self._canary: Entrant | None = None
        self._overhead: Overhead | None = None
        self._clocks: Clocks | None = None
        self._recalled = ""
        self._device_state: DeviceState | None = None
        self._noise: Noise | None = None
        self._busy_audit = ""

    def _cold(self) -> dict[str, Any]:
        """What empties the caches, where they are to be cold."""
        if self._evaluator.settings.cache_state == "warm":
            return {}
        others = self._evaluator.cores[1:]
        return {
            "flush_bytes": flush_bytes(self._evaluator.target),
            "sweep": Sweep(others) if others else None,
        }

    def _watched(self) -> Watch | None:
        """A watch of the processors where programs run on them; a device of its own is not
        disturbed by what they do."""
        device = self._evaluator.target.device
        on_host = device is None or device.is_host_cpu
        return Watch(self._evaluator.cores, self._pids) if on_host else None

    def _pids(self) -> list[int]:
        running = [r.contestant for r in self._session.rivals.all if r.name in self._entrants]
        programs = [each for each in (self._replicas, *running) if each]
        return [*self._evaluator.canary.pids, *(pid for each in programs for pid in each.pids)]

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

    def enter_canary(self) -> None:
        """The overhead of a call is measured beside the candidate. Raises `ChildLost`, `Failure`
        or `WrongResult` where a kernel known to be good fails."""
        with self._attempt.step("canary"):
            self._canary = self._evaluator.canary.enter(self._meter)

    def play(self) -> None:
        """Measures everybody. Raises `WrongResult` or `Failure` for the candidate."""
        others = [] if self._canary is None else [self._canary]
        began = time.monotonic()
        with self._attempt.step("baselines"):
            for rival in self._session.rivals.ready(self._pool):
                entrant = self._enter(rival)
                if entrant is not None:
                    others.append(entrant)
        # The candidate slept meanwhile, for minutes if they had to be built.
        self._replicas.postpone(time.monotonic() - began)
        self._measure(others)
        for _ in range(_AGAIN):
            if self._clocks is None or self._clocks.forged or not self._clocks.disagree:
                break
            self._measure(self._afresh())
        with self._attempt.step("audit"):
            self._recalled = recalls(self._replicas.first, self._session.task, self._pool)

    def _measure(self, others: Sequence[Entrant]) -> None:
        with self._attempt.step("measure"):
            self._meter.rounds(self.candidate, others, self._dropped)
            self._noise = self._watch.seen() if self._watch is not None else None
        with self._attempt.step("audit"):
            self._audit()

    def _afresh(self) -> list[Entrant]:
        """Forgets all times; who is measured beside the candidate."""
        canary = [] if self._canary is None else [self._canary]
        others = [*canary, *self._entrants.values()]
        for entrant in (self.candidate, *others):
            entrant.series.forget()
        return others

    def _audit(self) -> None:
        """Asks the other clocks, and how busy the machine is meanwhile: where they disagree for
        reasons that other work can have, a busy machine leaves doubt."""
        self._replicas.turn(0)
        self._device_state = observe_device(self._evaluator.target.cuda)
        watch = Watch(self._evaluator.cores, lambda: self._replicas.pids[:1])
        watch.begin()
        around_us = _LAUNCH_US * self._attempt.launches
        median_us = self.candidate.series.median_us
        clocks = compare_clocks(self.candidate.runs, median_us, around_us, self._ran)
        self._clocks = clocks
        self._busy_audit = ""
        if clocks is not None and clocks.disagree and not clocks.forged:
            self._busy_audit = "; ".join(watch.seen().causes)

    def _ran(self) -> float | None:
        """Where a device takes the time, processors tell nothing of it."""
        pid = self._replicas.current.pid
        on_device = self._evaluator.target.device is not None
        return None if pid is None or on_device else processor_seconds(pid)

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
        if entrant is self._canary:
            self._canary = None
            return False
        name = next(n for n, e in self._entrants.items() if e is entrant)
        del self._entrants[name]
        rival = next(r for r in self._session.rivals.all if r.name == name)
        if not isinstance(error, Failure | WrongResult):
            raise error
        status = "wrong_result" if isinstance(error, WrongResult) else "failed"
        rival.fails(status, str(error))
        return status == "wrong_result" and rival.gives_way(str(error))

    # ------------------------------------------------------------ figures
    @property
    def _widening(self) -> float:
        return 1.0 if self._noise is None else self._noise.widening

    def performance(self) -> Performance:
        series = self.candidate.series
        times = stretched(grouped(series.rounds, self.candidate.runs.count), self._widening)
        overhead = self._overhead_now()
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
            launch_overhead_us=overhead.times.median,
            launch_overhead_low_us=overhead.times.low,
            launch_overhead_high_us=overhead.times.high,
            launch_overhead_readings_us=overhead.readings_us,
            overhead_dominated=overhead.times.median > times.median / 4,
            replicas=self.candidate.runs.count,
            interval_reached=times.half_width <= self._evaluator.settings.interval,
            device=self._device_figures(),
            noise=self._noise,
            roofline=self._evaluator.roofline(),
            roofline_us=self._roof_us(),
        )

    def _overhead_now(self) -> Overhead:
        """As measured beside the candidate; apart from it where the canary was lost meanwhile."""
        if self._overhead is None:
            readings = [] if self._canary is None else list(self._canary.series.rounds.values())
            enough = len(readings) >= LEAST
            self._overhead = Overhead.of(readings) if enough else self._evaluator.canary.overhead()
        return self._overhead

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
        times = stretched(grouped(series.rounds, replicas[0]), self._widening)
        ratio = speedup(series.rounds, self.candidate.series.rounds, replicas)
        ratio = stretched(ratio, self._widening)
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

        Before the roofline accuses, it is measured anew, and so is the overhead of a call: they
        may have been taken on a busy machine.
        """
        if self._recalled:
            return self._recalled
        found = self._implausible(performance)
        if (
            found
            and (anew := self._evaluator.canary.overhead()).times.median
            < self._overhead_now().times.median
        ):
            self._overhead = anew
            found = self._implausible(performance)
        if found and self._evaluator.measure_peaks():
            found = self._implausible(performance)
        return found

    def doubt(self) -> str:
        """Why the machine, and not the candidate, may be what the clocks disagree about; empty
        where they agree, or where the machine was quiet. Other work only ever slows the parent's
        clock down, so it excuses nothing else."""
        return self._busy_audit

    @property
    def _slack(self) -> float:
        on_device = self._evaluator.target.device is not None
        return self._evaluator.settings.roofline_slack * (DEVICE_SLACK if on_device else 1.0)

    def _roof_us(self) -> float | None:
        """The time below which the roofline calls a result implausible."""
        peaks = self._evaluator.peaks()
        if peaks is None:
            return None
        return least_seconds(self._session.task, peaks)[0] * 1e6 / self._slack

    def _implausible(self, performance: Performance) -> str:
        return implausible(
            self._session.task,
            performance.median_us,
            self._overhead_now().times.median,
            self._clocks,
            self._evaluator.peaks(),
            self._slack,
        )
