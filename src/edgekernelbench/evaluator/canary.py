"""The canary: a kernel known to be good, built and run like any candidate.

After a crash it tells a broken kernel from a broken device. Its time is the launch overhead, for
which it takes part in the measurement of every kernel: one reading that other work disturbs decides
nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.evaluator.contestant import Failure
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.judge import Judge, WrongResult
from edgekernelbench.evaluator.machinery import CANARY_SIZE
from edgekernelbench.evaluator.replicas import Replicas
from edgekernelbench.evaluator.runchild import Sample
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.statistics import Estimate, estimate
from edgekernelbench.evaluator.task import Arrays, Pool
from edgekernelbench.evaluator.timing import Entrant, Meter
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.tolerance import compare

if TYPE_CHECKING:
    from edgekernelbench.evaluator.evaluator import Evaluator


_READINGS = 9


class CanaryTask:
    """``y = 2x + 1`` on a few numbers; an `EvalTask`."""

    id = "canary"
    dtype = "f32"
    tolerance = "f32_elementwise"
    flops = 2 * CANARY_SIZE
    bytes_touched = 8 * CANARY_SIZE
    sizes: Mapping[str, int | float] = {"N": CANARY_SIZE}
    input_specs = (TensorSpec(name="x", dtype=DType.F32, shape=(CANARY_SIZE,)),)
    output_specs = (TensorSpec(name="y", dtype=DType.F32, shape=(CANARY_SIZE,)),)

    def header(self) -> str:
        return f"kernel canary[N={CANARY_SIZE}](x: f32[N]) -> (y: f32[N])"

    def canonical(self) -> str:
        raise FileNotFoundError

    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays:
        rng = np.random.default_rng(seed)
        return {"x": rng.standard_normal(CANARY_SIZE).astype(np.float32)}

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        return {"y": inputs["x"].astype(np.float64) * 2 + 1}

    def twin(self, inputs: Mapping[str, np.ndarray]) -> None:
        return None

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        return compare(outputs, truth, "f32_elementwise")


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a call costs that does next to nothing.

    Attributes:
        times: readings, with the interval of their median.
        readings_us: each.
    """

    times: Estimate
    readings_us: tuple[float, ...]

    @classmethod
    def of(cls, readings: Sequence[float]) -> Overhead:
        return cls(estimate(readings), tuple(round(us, 4) for us in readings))


class Canary:
    """Builds lazily, and keeps the build and the process that is measured beside kernels."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._task = CanaryTask()
        self._folder: Path | None = None
        self._pool: Pool | None = None
        self._beside: Replicas | None = None

    def complaint(self, rebuild: bool = False) -> str | None:
        """Why compiling or running a good kernel fails on this device now, in a fresh process; None
        when it works.

        Args:
            rebuild: also compile it anew.
        """
        if rebuild:
            self.close()
        try:
            self._measure(rounds=0)
        except (ChildLost, Failure, WrongResult) as error:
            return f"a kernel known to be good fails, too: {error}"
        return None

    def enter(self, meter: Meter) -> Entrant:
        """Takes part in the measurement of a kernel: its times there are the launch overhead.

        Raises:
            ChildLost, Failure, WrongResult: when the canary fails.
        """
        try:
            return self._enter(meter)
        except Failure:  # its process may have been killed since it was last needed
            return self._enter(meter)

    def _enter(self, meter: Meter) -> Entrant:
        pool, beside = self._bound()
        judge = Judge(self._task, pool, beside)
        entrant = Entrant(beside, False, judge.look, readings=_READINGS)
        meter.first(entrant)
        return entrant

    def warm(self) -> None:
        """Builds it and starts its process, so that the first evaluation is not slower.

        Raises:
            ChildLost, Failure: when that fails.
        """
        self._bound()

    def _bound(self) -> tuple[Pool, Replicas]:
        if self._pool is None:
            self._pool = Pool(self._task, self._evaluator.settings.input_sets)
        if self._beside is None:
            self._beside = self._replicas()
        self._beside.bind(self._pool, random.Random(), self._evaluator.bind_seconds)
        return self._pool, self._beside

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the process that is measured beside kernels, while there is one."""
        return () if self._beside is None else self._beside.pids

    def overhead(self) -> Overhead:
        """Readings of its own, in a fresh process, apart from any kernel.

        Raises:
            ChildLost, Failure, WrongResult: when the canary fails.
        """
        return Overhead.of(self._measure(rounds=_READINGS))

    def _measure(self, rounds: int) -> list[float]:
        """Microseconds of a call, by round."""
        settings = self._evaluator.settings
        canary = self._replicas()
        pool = Pool(self._task, settings.input_sets)
        try:
            canary.bind(pool, random.Random(), self._evaluator.bind_seconds)
            judge = Judge(self._task, pool, canary)
            entrant = Entrant(canary, True, judge.look)
            meter = Meter(settings, settings.input_sets, random.Random())
            meter.first(entrant)
            calls = entrant.series.calls
            sample = Sample(set=0, poison=0, lead=1, calls=calls)
            return [canary.run([sample])[0] / 1e3 / calls for _ in range(rounds)]
        finally:
            canary.close()
            pool.close()

    def _replicas(self) -> Replicas:
        folder = self._built()
        return Replicas(lambda: self._evaluator.kernel_contestant("canary", folder, self._task))

    def _built(self) -> Path:
        if self._folder is None:
            folder = scratch_folder("canary")
            text = self._evaluator.machinery.canary
            try:
                built = self._evaluator.builder.kernel(text, Interface.of(self._task), folder)
                if built.manifest is None or built.misfit:
                    why = built.misfit or _first_message(built.reply.diagnostics)
                    raise ChildLost("bad_reply", f"the canary does not compile: {why}")
            except ChildLost:
                remove_folder(folder)
                raise
            self._folder = folder
        return self._folder

    def close(self) -> None:
        """Ends its process and forgets the build. May be called again."""
        if self._beside is not None:
            self._beside.close()
            self._beside = None
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None


def _first_message(diagnostics: tuple[dict, ...]) -> str:
    return str(diagnostics[0].get("message")) if diagnostics else "no reason given"
