"""What an evaluation says: one closed set of statuses, and only the figures a status may carry.

Times are microseconds per call (``*_us``) or seconds of wall time, sizes are bytes.
"""

from __future__ import annotations

import itertools
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from edgekernelbench.compilers.base import StaticFacts
from edgekernelbench.compilers.budget import Item
from edgekernelbench.evaluator.conditions import Noise, Sustained
from edgekernelbench.suite.correctness import OutputDetail


class EvaluationStatus(StrEnum):
    """How an attempt ended. The set is closed; everything that can happen maps to one of these."""

    CORRECT = "correct"
    WRONG_RESULT = "wrong_result"
    WRONG_SHAPE_OR_DTYPE = "wrong_shape_or_dtype"
    CRASHED = "crashed"
    RUN_TIMEOUT = "run_timeout"
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    INVALID_IR = "invalid_ir"
    UNPARSEABLE = "unparseable"
    NO_KERNEL = "no_kernel"
    OVER_BUDGET = "over_budget"
    IMPLAUSIBLE = "implausible"
    UNSUPPORTED = "unsupported"
    INFRA_ERROR = "infra_error"
    PROVIDER_ERROR = "provider_error"
    INVALID_REFERENCE = "invalid_reference"


OUTSIDE_DENOMINATOR: frozenset[EvaluationStatus] = frozenset(
    (
        EvaluationStatus.UNSUPPORTED,
        EvaluationStatus.INFRA_ERROR,
        EvaluationStatus.PROVIDER_ERROR,
        EvaluationStatus.INVALID_REFERENCE,
    )
)
"""Statuses that say nothing of the kernel: always printed, never counted."""

TOO_BUSY = "the machine is too busy to tell whether this is true"
"""How the message of an ``infra_error`` begins where a time may be true or not."""

_JUDGED = frozenset(
    (EvaluationStatus.CORRECT, EvaluationStatus.WRONG_RESULT, EvaluationStatus.IMPLAUSIBLE)
)


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Correctness(_Stored):
    """The parent's verdict on the very calls that were timed.

    Attributes:
        passed: every checked output of every checked sample is within tolerance, and no byte
            outside the outputs was touched.
        checked_samples: how many samples came back and were compared.
        checked_sets: how many different input sets those covered.
        tolerance: name of the tolerance class.
        tolerance_version: version of its calibration.
        matched_ratio, worst_error, max_abs, max_rel, outputs: of the worst sample checked; see
            `suite.correctness.OutputDetail`.
        message: what is wrong, in one line; empty when passed.
    """

    passed: bool
    checked_samples: int
    checked_sets: int
    tolerance: str
    tolerance_version: int
    matched_ratio: float | None = None
    worst_error: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    outputs: tuple[OutputDetail, ...] = ()
    message: str = ""


class DeviceState(_Stored):
    """What a device's management library says right after measuring; None where it does not.

    Attributes:
        clock_mhz, memory_clock_mhz: at that moment.
        throttled: why it runs below the clocks it was set to, as a bit mask of the library's; 0
            where nothing holds it back.
    """

    name: str
    clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: int | None = None


class DeviceFigures(_Stored):
    """What a device's time does not say. Medians of microseconds per call.

    Attributes:
        launches: kernels that one call starts.
        kernels_us: in the kernels alone; the time of the call less this is gaps between them.
            None where the device's timer does not tell them apart.
        host_us: by the host's clock, from the first launch until all is done, less the time of
            the call: what starting work on the device costs here.
        state: of the device, where it tells.
    """

    launches: int
    kernels_us: float | None
    host_us: float
    state: DeviceState | None = None


_LARGEST = 1e12
"""Microseconds, or a ratio of them, that no measurement of ours can reach (eleven days)."""

ROUNDING = 2e-3
"""By which figures of one measurement may differ: samples are stored with four decimals."""


def _refuse_strange(*figures: float | None) -> None:
    if any(figure is not None and not 0 < figure < _LARGEST for figure in figures):
        raise ValueError("times and speed-ups are positive, and not astronomic")


def _refuse_unordered(what: str, *figures: float | None) -> None:
    """Of a median between the bounds of its interval."""
    known = [figure for figure in figures if figure is not None]
    if any(low > high * (1 + ROUNDING) for low, high in itertools.pairwise(known)):
        raise ValueError(f"the {what} does not lie within its interval")


class Performance(_Stored):
    """Time of one call. ``low_us..high_us`` is a 95 % interval of the median.

    Attributes:
        samples_us: every counted sample in the order measured, each a mean over its calls.
        timer: the clock and where it ran; never mixed within a record.
        rounds: interleaved rounds that the samples came from.
        calls_per_sample: calls between two readings of the clock.
        threads: cores the kernel could use.
        replicas: processes that took turns; round r was replica ``r % replicas``.
        cache_state: ``warm``: same buffers, contents changed between samples.
        launch_overhead_us: what calling a kernel with nothing to do costs the same way: the median
            of ``launch_overhead_readings_us``, taken in turn with the kernel's, whose interval is
            ``launch_overhead_low_us..launch_overhead_high_us``. Older records have the one figure.
        overhead_dominated: the overhead is more than a quarter of the median.
        interval_reached: the interval is as narrow as the settings asked.
        device: there when a device took the time, which then reaches from the start of the first
            kernel to the end of the last.
        noise: what disturbed the measurement, where that can be watched.
        roofline: which roofline the time was held against, or why none.
        roofline_us: what it would have to be below to be implausible.
    """

    median_us: float
    low_us: float
    high_us: float
    samples_us: tuple[float, ...]
    timer: str
    rounds: int
    calls_per_sample: int
    threads: int
    replicas: int = 1
    cache_state: Literal["warm", "cold"] = "warm"
    launch_overhead_us: float
    launch_overhead_low_us: float | None = None
    launch_overhead_high_us: float | None = None
    launch_overhead_readings_us: tuple[float, ...] = ()
    overhead_dominated: bool
    interval_reached: bool
    device: DeviceFigures | None = None
    noise: Noise | None = None
    roofline: str = ""
    roofline_us: float | None = None

    @model_validator(mode="after")
    def _times_can_be(self) -> Performance:
        _refuse_strange(self.median_us, self.low_us, self.high_us, *self.samples_us)
        _refuse_unordered("median", self.low_us, self.median_us, self.high_us)
        return self


BaselineStatus = Literal["measured", "unavailable", "failed", "wrong_result"]


class BaselineResult(_Stored):
    """What the deployer would otherwise ship, measured in the same rounds as the candidate.

    Attributes:
        status: ``measured``, or why there is no number: ``unavailable`` (the task or the target
            has none), ``failed`` (it did not build or run), ``wrong_result``.
        scored: takes part in ``best``.
        speedup: median of the baseline over median of the candidate; above 1 the candidate wins.
        speedup_low, speedup_high: 95 % interval, from the ratios of the rounds both took part in
            and the differences between replicas (`statistics`).
        route: how it was made (``ONNX twin``, ``canonical program``, ...).
        samples_us: every counted sample, in the order measured.
        rounds: rounds it took part in. Fewer than six give no 95 % interval of their own; the
            extremes are given then.
    """

    status: BaselineStatus
    scored: bool
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    route: str = ""
    notes: tuple[str, ...] = ()
    message: str = ""
    samples_us: tuple[float, ...] = ()
    rounds: int = 0
    calls_per_sample: int = 0
    replicas: int = 1

    @model_validator(mode="after")
    def _numbers_only_when_measured(self) -> BaselineResult:
        numbers = (
            self.median_us, self.low_us, self.high_us,
            self.speedup, self.speedup_low, self.speedup_high,
        )  # fmt: skip
        measured = self.status == "measured"
        _refuse_strange(*numbers, *self.samples_us)
        _refuse_unordered("median", self.low_us, self.median_us, self.high_us)
        _refuse_unordered("speed-up", self.speedup_low, self.speedup, self.speedup_high)
        if measured and any(n is None for n in numbers):
            raise ValueError("a measured baseline needs all its figures")
        if not measured and (any(n is not None for n in numbers) or self.samples_us):
            raise ValueError(f"a baseline that is {self.status} carries no figures")
        return self


class Resources(_Stored):
    """The bill.

    Attributes:
        facts: what the compiler knows without a run.
        memory_bytes: inputs, outputs, packed copies and workspace together.
        memory_limit_bytes: what the target allows.
        budget: a line for each limit of the target, those that are kept included.
        peak_rss_bytes: growth of the process's resident memory, inputs and outputs once included.
        first_call_us: the first call after loading, page faults and thread start included.
        prepack_seconds: packing the constants, outside the timed call.
        load_seconds: loading the program into a fresh process.
        first_run_seconds: from a process that has nothing to the first result: loading, packing,
            first call.
        build_seconds: from the text to a program, checks included; ``facts.compile_seconds`` of it
            in the compiler.
    """

    facts: StaticFacts | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    budget: tuple[Item, ...] = ()
    peak_rss_bytes: int | None = None
    first_call_us: float | None = None
    prepack_seconds: float | None = None
    load_seconds: float | None = None
    first_run_seconds: float | None = None
    build_seconds: float | None = None


class Environment(_Stored):
    """Where and under what conditions it ran; None where the system does not tell.

    Attributes:
        load_average: of the last minute, before measuring.
        network: ``isolated``, or why the children were not cut off from the network.
        files: ``isolated``, or why the children could reach more files than they need; empty in
            records from before that was closed.
    """

    cpu: str
    system: str
    threads: int
    governor: str | None = None
    frequency_mhz: float | None = None
    temperature_c: float | None = None
    load_average: float | None = None
    network: str = ""
    files: str = ""
    versions: dict[str, str] = {}


class SeedInfo(_Stored):
    """How the inputs were drawn, so that a finished evaluation can be repeated.

    ``input_seeds`` belong to a pool that later evaluations of the same session use again: never
    show them to an agent while it works (`Evaluation.public` leaves them out).
    """

    input_seeds: tuple[int, ...]
    const_seed: int
    order_seed: int
    pool_age: int


class Evaluation(_Stored):
    """The verdict on one kernel text for one workload on one target.

    Attributes:
        kernel_hash: SHA-256 of the canonical text; of the text as given when it does not parse.
        message: the verdict's reason in one line; empty when correct.
        performance: there exactly when the kernel is correct.
        quarantined: figures that beat the measured roofline, kept for audit.
        baselines: empty unless the kernel is correct or implausible.
        best: name of the fastest scored baseline, None when there is none.
        sustained: what became of its time, where a correct kernel was run on without pause.
        diagnostics: JSON form of `ir.diagnostics.Diagnostic`.
        timings: seconds of wall time by step, ``total`` among them, without ``lock_wait_seconds``.
        lock_wait_seconds: time spent waiting for the device; no limit counts it.
    """

    version: Literal[1] = 1
    status: EvaluationStatus
    workload: str
    target: str
    kernel_hash: str | None = None
    message: str = ""
    correctness: Correctness | None = None
    performance: Performance | None = None
    quarantined: Performance | None = None
    baselines: dict[str, BaselineResult] = {}
    best: str | None = None
    resources: Resources | None = None
    sustained: Sustained | None = None
    diagnostics: tuple[dict[str, Any], ...] = ()
    timings: dict[str, float] = {}
    environment: Environment | None = None
    seed: SeedInfo | None = None
    lock_wait_seconds: float = 0.0

    @model_validator(mode="after")
    def _status_decides_fields(self) -> Evaluation:
        status = self.status
        correct = status is EvaluationStatus.CORRECT
        implausible = status is EvaluationStatus.IMPLAUSIBLE
        if (self.performance is not None) != correct:
            raise ValueError("performance is there exactly when the status is correct")
        if (self.quarantined is not None) != implausible:
            raise ValueError("quarantined figures are there exactly when implausible")
        if (self.correctness is not None) != (status in _JUDGED):
            raise ValueError(f"status {status.value} does not fit the presence of correctness")
        if self.correctness is not None and self.correctness.passed != (correct or implausible):
            raise ValueError(f"correctness.passed contradicts status {status.value}")
        if self.baselines and not (correct or implausible):
            raise ValueError("baselines are measured only beside a correct kernel")
        if "best" in self.baselines:
            raise ValueError("no baseline is named best: that stands for the fastest scored one")
        if self.sustained is not None and not correct:
            raise ValueError("only a correct kernel is run on")
        if self.best is not None:
            result = self.baselines.get(self.best)
            if result is None or result.status != "measured" or not result.scored:
                raise ValueError("best must name a measured, scored baseline")
        if not correct and not self.message:
            raise ValueError("a verdict other than correct needs its reason")
        return self

    def public(self) -> dict[str, Any]:
        """JSON form for an agent at work: without seeds and raw samples."""
        out = self.model_dump(mode="json", exclude={"seed"})
        for figures in (out["performance"], out["quarantined"], *out["baselines"].values()):
            if figures is not None:
                figures.pop("samples_us", None)
                figures.pop("launch_overhead_readings_us", None)
        return out
