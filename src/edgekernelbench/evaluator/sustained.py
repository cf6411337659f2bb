"""Sustained speed: a kernel called without pause until the device is as hot as it gets.

A phone or a board without a fan is fast for seconds and then slower. The evaluator's own figures
are bursts; this says what is left of them.
"""

from __future__ import annotations

import random
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.evaluator.environment import observe
from edgekernelbench.evaluator.judge import Judge
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.evaluator.statistics import median
from edgekernelbench.evaluator.task import Pool
from edgekernelbench.evaluator.timing import Entrant, Meter

_BURST_SECONDS = 1.0
_STEADY_SHARE = 0.25
_REQUEST_US = 20_000.0


class Window(BaseModel):
    """A stretch of calls: when it ended (seconds from the start), the median of its samples, and
    the state of the device then, where it tells."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    at_s: float
    median_us: float
    frequency_mhz: float | None
    temperature_c: float | None


class Sustained(BaseModel):
    """What became of a kernel's time.

    Attributes:
        burst_us: median over the windows of the first second.
        steady_us: median over the windows of the last quarter.
        checked_samples: outputs that were compared on the way, all right.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    burst_us: float
    steady_us: float
    seconds: float
    checked_samples: int
    windows: tuple[Window, ...]


def sustained(
    session: TaskSession, kernel_text: str, seconds: float = 60.0, window_s: float = 0.25
) -> Sustained | Evaluation:
    """Calls a kernel without pause for some time.

    Returns:
        What its time became; or the evaluation, when that does not find the kernel correct.

    Raises:
        ChildLost, Failure, WrongResult: the kernel was correct at first and failed later.
    """
    evaluation = session.evaluate(kernel_text)
    if evaluation.status is not EvaluationStatus.CORRECT:
        return evaluation
    folder = Path(tempfile.mkdtemp(prefix="edgekernelbench-"))
    try:
        with session.evaluator.device_lock():
            session.evaluator.builder.kernel(kernel_text, session.interface, folder)
            return _run(session, folder, seconds, window_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(session: TaskSession, folder: Path, seconds: float, window_s: float) -> Sustained:
    evaluator, task = session.evaluator, session.task
    # A process of its own kind: it may use the processor for as long as this takes.
    contestant = Replicas(
        lambda: evaluator.kernel_contestant("the kernel", folder, task, unlimited_time=True)
    )
    pool = Pool(task, evaluator.settings.input_sets)
    source = random.Random(secrets.randbits(62))
    judge = Judge(task, pool, contestant)
    entrant = Entrant(contestant, True, judge.look)
    try:
        contestant.bind(pool, source, evaluator.settings.run_s)
        Meter(evaluator.settings, len(pool.sets), source).first(entrant)
        windows = []
        began = time.monotonic()
        while not windows or windows[-1].at_s < seconds:
            times = _window(entrant, source, len(pool.sets), window_s)
            state = observe(evaluator.target.threads)
            windows.append(
                Window(
                    at_s=time.monotonic() - began,
                    median_us=median(times),
                    frequency_mhz=state.frequency_mhz,
                    temperature_c=state.temperature_c,
                )
            )
    finally:
        contestant.close()
        pool.close()
    return _summary(windows, judge.samples)


def _window(entrant: Entrant, source: random.Random, n_sets: int, window_s: float) -> list[float]:
    """Microseconds per call of the samples of a window; the last one's outputs are compared."""
    series, times = entrant.series, []
    until = time.monotonic() + window_s
    # Long requests: between two of them the device rests.
    count = max(1, int(_REQUEST_US / (series.calls * max(series.first_call_us, 1e-3))))
    while True:
        last = time.monotonic() >= until
        samples = [
            Sample(
                set=source.randrange(n_sets),
                poison=source.getrandbits(64),
                lead=0,
                calls=series.calls,
                keep=last and at == count - 1,
            )
            for at in range(count)
        ]
        times += [ns / 1e3 / series.calls for ns in entrant.runs.run(samples)]
        if last:
            entrant.check(samples[-1].set)
            return times


def _summary(windows: list[Window], checked: int) -> Sustained:
    end = windows[-1].at_s
    burst = [w.median_us for w in windows if w.at_s <= _BURST_SECONDS] or [windows[0].median_us]
    steady = [w.median_us for w in windows if w.at_s >= end * (1 - _STEADY_SHARE)]
    return Sustained(
        burst_us=median(burst),
        steady_us=median(steady),
        seconds=end,
        checked_samples=checked,
        windows=tuple(windows),
    )
