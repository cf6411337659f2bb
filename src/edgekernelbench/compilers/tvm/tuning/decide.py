"""Which of the best candidates of a search it is: timed in turn, its results compared.

A search times each candidate once, minutes apart, so its best is the luckiest of the good ones.
And nothing in a search looks at results: what the compiler's schedule primitives get wrong would
be found only when the schedule is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.tuning.bench import Bench
from edgekernelbench.compilers.tvm.tuning.search import Trial, replay

FINALISTS = 3
_TOLERANCE = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-6}
_OTHER_TOLERANCE = 1e-2  # the rounding of a quantised result may fall the other way


@dataclass(frozen=True, slots=True)
class Decision:
    """``best``: with its time among the finalists; None where every one of them is wrong.

    Attributes:
        checked: the results of ``best`` were compared with those of the unscheduled function.
        remarks: what was found wrong, or why nothing was compared.
    """

    best: Trial | None
    checked: bool
    remarks: tuple[str, ...] = ()


def decide(module: Any, trials: Sequence[Trial], bench: Bench) -> Decision:
    """The fastest of the trials that has the results of ``main`` in the unscheduled ``module``.

    Args:
        trials: candidates that ran.
    """
    ran = sorted((t for t in trials if t.us is not None), key=lambda t: t.us or 0.0)
    remarks: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ekb-tune-") as folder:
        check = _Check(module, bench, Path(folder))
        while ran:
            finalists, ran = ran[:FINALISTS], ran[FINALISTS:]
            for trial in _timed(module, finalists, bench, Path(folder)):
                wrong = check.fault(trial)
                if wrong is None:
                    remarks += [check.missing] if check.missing else []
                    return Decision(trial, not check.missing, tuple(remarks))
                remarks.append(f"a candidate of {trial.us:.1f} us was dropped: {wrong}")
    return Decision(None, False, tuple(remarks))


def _timed(module: Any, trials: Sequence[Trial], bench: Bench, folder: Path) -> list[Trial]:
    """The trials, the fastest first, with times taken in turn; with their own where that fails."""
    times = bench.in_turn([replay(trial.trace, module).mod for trial in trials], folder)
    if times is None:
        return list(trials)
    again = [Trial(trial.trace, us) for trial, us in zip(trials, times, strict=True)]
    return sorted(again, key=lambda trial: trial.us or 0.0)


class _Check:
    """Compares results with those of the unscheduled function, which runs when first needed.

    Attributes:
        missing: why there is nothing to compare with; empty otherwise.
    """

    def __init__(self, module: Any, bench: Bench, folder: Path) -> None:
        self._module = module
        self._bench = bench
        self._folder = folder
        self._truth = folder / "unscheduled.npz"
        self._ready = False
        self.missing = ""

    def fault(self, trial: Trial) -> str | None:
        """What is wrong with the results of a trial, if anything."""
        if not self._ready:
            self._ready = True
            done = self._bench.unscheduled(self._module, self._truth)
            if done.error is not None:
                self.missing = f"results not compared: unscheduled function: {done.error}"
        if self.missing:
            return None
        found = self._folder / "found.npz"
        done = self._bench.scheduled(replay(trial.trace, self._module).mod, found)
        return done.error or difference(self._truth, found)


def difference(expected: Path, found: Path) -> str | None:
    """How the second file's arrays differ from those of the first, in one line; None if they are
    the same but for rounding."""
    with np.load(expected) as wanted, np.load(found) as given:
        for name in wanted.files:
            problem = _distance(wanted[name], given[name])
            if problem is not None:
                return problem
    return None


def _distance(wanted: np.ndarray, given: np.ndarray) -> str | None:
    """A norm, which a wrong edge of a large array would not move much, and the worst element."""
    real = wanted.dtype.kind == "f"
    tolerance = _TOLERANCE[str(wanted.dtype)] if real else _OTHER_TOLERANCE
    a, b = wanted.astype(np.float64), given.astype(np.float64)
    numbers = np.isfinite(a)
    if not np.array_equal(numbers, np.isfinite(b)):
        return "wrong results: other values are NaN or infinite"
    a, b = a[numbers], b[numbers]
    if not a.size:
        return None
    error = float(np.linalg.norm(a - b)) / max(float(np.linalg.norm(a)), 1e-30)
    worst, allowed = float(np.abs(a - b).max()), 10 * tolerance * float(np.abs(a).max())
    if error <= tolerance and worst <= (allowed if real else 1.0):
        return None
    return f"wrong results: relative error {error:.2g}, worst {worst:.2g}"
