"""Sustained speed: a kernel called without pause until the device is as hot as it gets.

A phone or a board without a fan is fast for seconds and then slower. The evaluator's own figures
are bursts; this says what is left of them, what shows that the device was held back, and what a
call takes of energy where there is a counter.
"""

from __future__ import annotations

import random
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.conditions import Energy, Sustained, Window
from edgekernelbench.evaluator.contestant import Failure
from edgekernelbench.evaluator.environment import observe_device
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.judge import Judge, WrongResult
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.statistics import median, ratio_of
from edgekernelbench.evaluator.task import Pool
from edgekernelbench.evaluator.timing import Entrant, Meter
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.targets.energy import Gauge, find_counter
from edgekernelbench.targets.thermal import Heat, read_heat

if TYPE_CHECKING:
    from edgekernelbench.evaluator.session import TaskSession

BURST_SECONDS = 1.0
STEADY_SHARE = 0.25
WINDOW_SECONDS = 0.2
IDLE_SECONDS = 2.0
LEAST_SECONDS = 4.0
SLOWER = 1.05
"""Steady over burst above which, by the whole interval, the times show throttling."""
FREQUENCY_KEPT = 0.95
"""Share of the burst's frequency below which the steady one shows throttling."""

_REQUEST_US = 20_000.0
_IDLE_STEP_SECONDS = 0.1


def sustained(
    session: TaskSession,
    kernel_text: str,
    seconds: float = 60.0,
    window_s: float = WINDOW_SECONDS,
    root: Path = Path("/"),
) -> Evaluation:
    """Evaluates a kernel and then, if it is correct, calls it without pause for some time.

    Args:
        session: of its task.
        kernel_text: the kernel.
        seconds: of calls; at least `LEAST_SECONDS`, so that there are windows to compare.
        window_s: length of a window.
        root: of the file system that tells of heat and energy.

    Returns:
        The evaluation, with ``sustained`` where it is correct. A kernel that fails while it runs
        on is not.

    Raises:
        UsageError: for too few seconds.
    """
    require_long(seconds)
    evaluation = session.evaluate(kernel_text)
    if evaluation.status is not EvaluationStatus.CORRECT:
        return evaluation
    folder = scratch_folder("sustained")
    try:
        with session.evaluator.device_lock():
            session.evaluator.builder.kernel(kernel_text, session.interface, folder)
            found = _Run(session, folder, root).play(seconds, window_s)
    except (Failure, ChildLost, WrongResult) as error:
        return _failed_later(evaluation, error)
    finally:
        remove_folder(folder)
    return evaluation.model_copy(update={"sustained": found})


def require_long(seconds: float) -> None:
    """Refuses what is too short.

    Raises:
        UsageError: no steady state can be seen in so many seconds.
    """
    if not seconds >= LEAST_SECONDS:
        raise UsageError(
            f"{seconds:g} s are too short to see a steady state", f"take {LEAST_SECONDS:g} or more"
        )


def _failed_later(evaluation: Evaluation, error: Exception) -> Evaluation:
    correctness = None
    match error:
        case WrongResult():
            status = EvaluationStatus.WRONG_RESULT
            assert evaluation.correctness is not None
            update = {"passed": False, "message": str(error)}
            correctness = evaluation.correctness.model_copy(update=update)
        case Failure(kind="timeout"):
            status = EvaluationStatus.RUN_TIMEOUT
        case Failure(kind="server") | ChildLost():
            status = EvaluationStatus.INFRA_ERROR
        case _:
            status = EvaluationStatus.CRASHED
    fields = evaluation.model_dump()
    fields |= {
        "status": status, "message": f"while it ran on: {error}"[:2000], "performance": None,
        "correctness": correctness, "baselines": {}, "best": None,
    }  # fmt: skip
    return Evaluation.model_validate(fields)


@dataclass(frozen=True, slots=True)
class _State:
    """Heat of what programs run on, and what an NVIDIA device says holds it back."""

    heat: Heat
    reasons: int | None = None


class _Run:
    """One run on: a process of its own, which may use the processor for as long as it takes."""

    def __init__(self, session: TaskSession, folder: Path, root: Path) -> None:
        self._evaluator = session.evaluator
        self._root = root
        self._source = random.Random(secrets.randbits(62))
        self._pool = Pool(session.task, self._evaluator.settings.input_sets)
        self._contestant = Replicas(
            lambda: self._evaluator.kernel_contestant(
                "the kernel", folder, session.task, unlimited_time=True
            )
        )
        self._judge = Judge(session.task, self._pool, self._contestant)
        self._entrant = Entrant(self._contestant, True, self._judge.look)
        self._counter, self._energy_note = find_counter(self._evaluator.target.cuda, root)

    def play(self, seconds: float, window_s: float) -> Sustained:
        """Raises `Failure` or `WrongResult` for the kernel."""
        try:
            settings = self._evaluator.settings
            self._contestant.bind(self._pool, self._source, self._evaluator.bind_seconds)
            Meter(settings, len(self._pool.sets), self._source).first(self._entrant)
            idle_watts = self._idle()
            before, windows, gauge = self._state(), [], self._gauge()
            began = time.monotonic()
            while not windows or windows[-1].at_s < seconds:
                windows.append(self._window(began, window_s, gauge))
        finally:
            self._contestant.close()
            self._pool.close()
        return self._summary(windows, before, self._state(), idle_watts, gauge)

    def _gauge(self) -> Gauge | None:
        return None if self._counter is None else Gauge(self._counter)

    def _idle(self) -> float | None:
        """Watts of doing nothing, with everything loaded."""
        gauge = self._gauge()
        if gauge is None:
            return None
        for _ in range(round(IDLE_SECONDS / _IDLE_STEP_SECONDS)):
            time.sleep(_IDLE_STEP_SECONDS)
            self._sample(gauge)
        return gauge.watts

    def _sample(self, gauge: Gauge) -> float | None:
        """Watts since the last time; None, and no energy in the end, when it does not answer."""
        joules, seconds = gauge.joules, gauge.seconds
        try:
            gauge.sample()
        except (OSError, ValueError) as error:
            self._counter, self._energy_note = None, f"no energy: the counter went silent ({error})"
            return None
        return (gauge.joules - joules) / max(gauge.seconds - seconds, 1e-9)

    def _state(self) -> _State:
        device = observe_device(self._evaluator.target.cuda)
        if device is None:
            return _State(read_heat(self._evaluator.cores or (0,), self._root))
        heat = Heat(device.clock_mhz, device.temperature_c, None, None)
        return _State(heat, device.throttled)

    def _window(self, began: float, window_s: float, gauge: Gauge | None) -> Window:
        times, calls = self._calls(window_s)
        watts = None if gauge is None else self._sample(gauge)
        heat = self._state().heat
        return Window(
            at_s=time.monotonic() - began,
            median_us=median(times),
            calls=calls,
            frequency_mhz=heat.frequency_mhz,
            temperature_c=heat.temperature_c,
            watts=watts,
        )

    def _calls(self, window_s: float) -> tuple[list[float], int]:
        """Microseconds per call of the samples of a window, and how many calls there were; the
        last sample's outputs are compared."""
        series, source = self._entrant.series, self._source
        times: list[float] = []
        until = time.monotonic() + window_s
        # Long requests: between two of them the device rests.
        count = max(1, int(_REQUEST_US / (series.calls * max(series.first_call_us, 1e-3))))
        while True:
            last = time.monotonic() >= until
            samples = [
                Sample(
                    set=source.randrange(len(self._pool.sets)),
                    poison=source.getrandbits(64),
                    lead=0,
                    calls=series.calls,
                    keep=last and at == count - 1,
                )
                for at in range(count)
            ]
            times += [ns / 1e3 / series.calls for ns in self._entrant.runs.run(samples)]
            if last:
                self._entrant.check(samples[-1].set)
                return times, len(times) * series.calls

    def _summary(
        self,
        windows: list[Window],
        before: _State,
        after: _State,
        idle_watts: float | None,
        gauge: Gauge | None,
    ) -> Sustained:
        burst, steady = phases(windows)
        ratio = ratio_of([w.median_us for w in steady], [w.median_us for w in burst])
        sources, signs = throttling(burst, steady, before, after)
        energy = None
        if gauge is not None and idle_watts is not None and self._counter is not None:
            energy = _energy(self._counter.name, gauge, idle_watts, sum(w.calls for w in windows))
        return Sustained(
            burst_us=median([w.median_us for w in burst]),
            steady_us=median([w.median_us for w in steady]),
            seconds=windows[-1].at_s,
            checked_samples=self._judge.samples,
            windows=tuple(windows),
            ratio=ratio.median if ratio else None,
            ratio_low=ratio.low if ratio else None,
            ratio_high=ratio.high if ratio else None,
            throttled=signs,
            throttle_sources=sources,
            energy=energy,
            energy_note=self._energy_note,
        )


def phases(windows: list[Window]) -> tuple[list[Window], list[Window]]:
    """The windows of the burst, and those of the steady state."""
    end = windows[-1].at_s
    burst = [w for w in windows if w.at_s <= BURST_SECONDS] or windows[:1]
    return burst, [w for w in windows if w.at_s >= end * (1 - STEADY_SHARE)]


def throttling(
    burst: list[Window], steady: list[Window], before: _State, after: _State
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What could show that the processor is held back, and what does."""
    sources, signs = ["times"], []
    ratio = ratio_of([w.median_us for w in steady], [w.median_us for w in burst])
    if ratio is not None and ratio.low > SLOWER:
        signs.append(f"times: {ratio.median:.2f} of the burst's, at least {ratio.low:.2f}")
    early, late = (
        [w.frequency_mhz for w in part if w.frequency_mhz is not None] for part in (burst, steady)
    )
    if early and late:
        sources.append("frequency")
        if median(late) < FREQUENCY_KEPT * median(early):
            signs.append(f"frequency: from {median(early):.0f} to {median(late):.0f} MHz")
    if before.heat.throttles is not None and after.heat.throttles is not None:
        sources.append("throttle counters")
        if (events := after.heat.throttles - before.heat.throttles) > 0:
            signs.append(f"throttle counters: {events} events")
    if after.heat.firmware is not None:
        sources.append("firmware")
        signs += [f"firmware: {reason}" for reason in after.heat.firmware]
    if after.reasons is not None:
        sources.append("NVML")
        if after.reasons:
            signs.append(f"NVML: reasons {after.reasons:#x}")
    return tuple(sources), tuple(signs)


def _energy(name: str, gauge: Gauge, idle_watts: float, calls: int) -> Energy:
    beyond = gauge.joules - idle_watts * gauge.seconds
    return Energy(
        counter=name,
        idle_watts=idle_watts,
        watts=gauge.watts,
        joules_per_call=beyond / calls if beyond > 0 else None,
    )
