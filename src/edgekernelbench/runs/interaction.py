"""What deciding for a whole graph gains or costs against deciding for each stage alone.

Every unit of a kernel (see `analysis.units`) is measured as a kernel of its own, on the values that
really flow there: under the default rules, under the author's lines for it, and under what the
tuner finds. The least time counts. Whatever the whole kernel takes less than the sum of these is
gained by decisions that span stages; whatever it takes more is lost by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.agents.base import Budget, Device
from edgekernelbench.agents.tuner import Tuning
from edgekernelbench.analysis.units import Cut, Unit, cut
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator, TaskSession
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.task import Arrays, EvalTask, Spec, as_task
from edgekernelbench.ir import core
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.records.schema import Spent
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import TensorSpec, ToleranceClass, Workload
from edgekernelbench.suite.tolerance import Facts, compare

_DRAWS = 3


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UnitTime(_Stored):
    """A unit's best time alone, in microseconds.

    Attributes:
        stages: names in the kernel.
        median_us, low_us, high_us: of one call; None if it could not be measured.
        way: what was fastest: ``default rules``, ``the author's lines``, or a choice of the tuner.
        message: why there is no time.
    """

    stages: tuple[str, ...]
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    way: str = ""
    message: str = ""


class Interaction(_Stored):
    """The whole beside the sum of its parts, in microseconds.

    Attributes:
        overhead_us: what a call costs that does nothing; each part alone pays it, so the sum holds
            it once.
        sum_us: of the units' best times; None while one of them has none.
        gain: ``sum_us / whole_us``: above 1, decisions across stages pay.
        spread: lowest and highest ``gain`` if every time were at the end of its interval.
    """

    workload: str
    kernel: str
    whole_us: float
    whole_low_us: float
    whole_high_us: float
    overhead_us: float
    units: tuple[UnitTime, ...]
    sum_us: float | None = None
    gain: float | None = None
    spread: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        """What `spread` allows to say, in words; empty while there is none."""
        if self.spread is None:
            return ""
        low, high = self.spread
        if low <= 1 <= high:
            return "undecided, 1 lies within the interval"
        return f"decisions across stages {'gain' if low > 1 else 'lose'}"


def interaction(
    text: str,
    workload: Workload,
    evaluator: Evaluator,
    evaluations: int = 8,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Interaction:
    """Measures a kernel and each of its units; the kernel before and after them, the better counts.

    Args:
        text: a kernel for the workload.
        evaluations: what the tuner may measure of each unit.
        progress: told how many of how many measurements are done.

    Raises:
        UsageError: the kernel is not correct.
    """
    checked = check_text(text)
    whole = _whole(text, workload, evaluator)
    if whole.performance is None or checked.kernel is None or checked.program is None:
        raise UsageError(
            f"the kernel has no time: {whole.status.value} {whole.message}".strip(),
            "`ekb eval` says more",
        )
    pieces = cut(checked.kernel, checked.program, evaluator.target)
    flow = Flow(workload, pieces)
    times: list[UnitTime] = []
    for number, unit in enumerate(pieces.units):
        progress(number, len(pieces.units))
        times.append(_measured(unit, flow, evaluator, evaluations))
    progress(len(times), len(times))
    again = _whole(text, workload, evaluator)
    if again.performance is not None:
        whole = min(whole, again, key=_median)
    assert whole.performance is not None
    result = Interaction(
        workload=workload.id,
        kernel=checked.program.name,
        whole_us=whole.performance.median_us,
        whole_low_us=whole.performance.low_us,
        whole_high_us=whole.performance.high_us,
        overhead_us=whole.performance.launch_overhead_us,
        units=tuple(times),
    )
    return _with_sum(result)


def _whole(text: str, workload: Workload, evaluator: Evaluator) -> Evaluation:
    with TaskSession(evaluator, as_task(workload), ()) as session:
        return session.evaluate(text)


def _median(evaluation: Evaluation) -> float:
    assert evaluation.performance is not None
    return evaluation.performance.median_us


def _with_sum(result: Interaction) -> Interaction:
    """The sum and what follows from it, where every unit has a time."""
    spare = result.overhead_us * (len(result.units) - 1)
    sums: list[float] = []
    for field_name in ("median_us", "low_us", "high_us"):
        times = [getattr(unit, field_name) for unit in result.units]
        if None in times:
            return result
        sums.append(max(sum(times) - spare, result.overhead_us))
    middle, low, high = sums
    spread = (low / result.whole_high_us, high / result.whole_low_us)
    gain = middle / result.whole_us
    return result.model_copy(update={"sum_us": middle, "gain": gain, "spread": spread})


# ---------------------------------------------------------------- values
@dataclass
class Flow:
    """The values between the units of a kernel for some draws of its inputs, made once each.

    One set of constants serves all draws.
    """

    workload: Workload
    pieces: Cut
    _made: dict[int, Arrays] = field(default_factory=dict)

    def values(self, seed: int) -> Arrays:
        """Inputs and everything that passes between units, in declared dtypes."""
        number = seed % _DRAWS
        if number not in self._made:
            flow = self.pieces.flow
            inputs = self.workload.inputs(number, 0)
            results = interpret(flow, inputs, "f64")
            passed = {t.name: results[t.name].astype(t.dtype.numpy) for t in flow.outputs}
            self._made[number] = inputs | passed
        return self._made[number]


@dataclass
class UnitTask:
    """A unit as a task of the evaluator; see `evaluator.task.EvalTask`."""

    unit: Unit
    flow: Flow

    flops = 0
    """Work and traffic are not known well enough to hold a time against them."""
    bytes_touched = 0

    @property
    def id(self) -> str:
        return f"{self.flow.workload.id}:{self.unit.stages[-1]}"

    @property
    def dtype(self) -> str:
        return self.flow.workload.dtype

    @property
    def tolerance(self) -> ToleranceClass:
        rounds = any(not t.dtype.is_float for t in self.unit.program.outputs)
        return "int8_requant" if rounds else self.flow.workload.tolerance

    @property
    def sizes(self) -> Mapping[str, int | float]:
        return {}

    @cached_property
    def input_specs(self) -> tuple[Spec, ...]:
        return _specs(self.unit.program.inputs)

    @cached_property
    def output_specs(self) -> tuple[Spec, ...]:
        return _specs(self.unit.program.outputs)

    def header(self) -> str:
        return self.unit.text.partition("{")[0].rstrip()

    def canonical(self) -> str:
        return self.unit.text

    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays:
        values = self.flow.values(seed)
        return {t.name: values[self.unit.names[t.name]] for t in self.unit.program.inputs}

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        return interpret(self.unit.program, inputs, "f64")

    def twin(self, inputs: Mapping[str, np.ndarray]) -> None:
        return None

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        facts = Facts(self.flow.workload.accumulation, 0.01)
        return compare(outputs, truth, self.tolerance, facts)


def _specs(tensors: tuple[core.Tensor, ...]) -> tuple[Spec, ...]:
    return tuple(
        TensorSpec(name=t.name, dtype=t.dtype, shape=t.shape, const=t.const) for t in tensors
    )


# ---------------------------------------------------------------- measuring
def _measured(unit: Unit, flow: Flow, evaluator: Evaluator, evaluations: int) -> UnitTime:
    if not unit.text:
        return UnitTime(stages=unit.stages, message=f"it cannot stand alone: {unit.reason}")
    best = UnitTime(stages=unit.stages)

    def look(evaluation: Evaluation, way: str) -> None:
        nonlocal best
        performance = evaluation.performance
        if performance is None:
            if best.median_us is None:
                said = f"{evaluation.status.value}: {evaluation.message}"
                best = best.model_copy(update={"message": said.rstrip(": ")})
        elif best.median_us is None or performance.median_us < best.median_us:
            best = UnitTime(
                stages=unit.stages,
                median_us=performance.median_us,
                low_us=performance.low_us,
                high_us=performance.high_us,
                way=way,
            )

    with TaskSession(evaluator, cast(EvalTask, UnitTask(unit, flow)), ()) as session:
        if unit.authored:
            look(session.evaluate(unit.authored), "the author's lines")

        device = Device(session.evaluate, Budget(Spent(evaluations=evaluations)))
        for reason, evaluation in Tuning(unit.text, evaluator.target, seed=0).run(device):
            look(evaluation, reason)
    return best
