"""What is known of a candidate, static and measured, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekernelbench.agents.base import Task
from edgekernelbench.agents.leka.archive import Branch
from edgekernelbench.agents.leka.layers import Layer
from edgekernelbench.agents.leka.listing import shortened
from edgekernelbench.agents.leka.shares import Shares
from edgekernelbench.analysis.explain import Explanation
from edgekernelbench.evaluator.stages import PartTime, StageProfile

_NEST_LINES = 40
_STAGES = 6


@dataclass(frozen=True, slots=True)
class Observation:
    """A candidate as rules and authors see it. Times in microseconds.

    Attributes:
        correct: it was measured and is right.
        us: measured; None before that.
        speedups: over each baseline; ``rival``: the name of the one that counts.
        overhead: most of the time is that of a call which does nothing.
        surplus: operations of the nest over the task's nominal ones; None where these are unknown.
        serial, scalar, apart: shares of the estimated time, see `analysis.estimate.Share`; None on
            GPUs.
        traffic: bytes from memory over distinct bytes touched.
        least_us: no less by the roofline; ``bound``: which roof that is.
        stages: shares of the time, the slowest first: of nests where there is a profile, else
            estimated ones of buffers.
        profile: the time by nest, measured; the shares above are of that time then, with each nest
            divided as estimated.
        tried: rounds without a gain since the last one, by layer.
        explanation: the whole static report.
        buffers: shares of the time by buffer that is written.
    """

    explanation: Explanation
    correct: bool = False
    us: float | None = None
    speedups: dict[str, float] = field(default_factory=dict)
    rival: str | None = None
    overhead: bool = False
    surplus: float | None = None
    serial: float | None = None
    scalar: float | None = None
    apart: float | None = None
    traffic: float = 1.0
    least_us: float | None = None
    bound: str | None = None
    stages: tuple[tuple[str, float], ...] = ()
    tried: dict[Layer, int] = field(default_factory=dict)
    profile: StageProfile | None = None
    buffers: Mapping[str, float] = field(default_factory=dict)

    def text(self) -> str:
        """The report as a model reads it."""
        nest = shortened(self.explanation.nest, self.buffers, _NEST_LINES)
        return "\n".join([*_measured(self), *_static(self), "loop nest:", *nest])


def observe(
    task: Task, branch: Branch, report: Explanation, profile: StageProfile | None = None
) -> Observation:
    """Looks at the head of a branch.

    Args:
        report, profile: of it.
    """
    head, best = branch.head, branch.best
    performance = None if best is None else best.evaluation.performance
    baselines = {} if best is None else best.evaluation.baselines
    bounds = [us for us in (report.least_compute_us, report.least_memory_us) if us is not None]
    outer = report.levels[-1].bytes if report.levels else report.footprint_bytes
    nominal = task.workload.flops
    shares = Shares.of(head.estimate, profile)
    return Observation(
        explanation=report,
        correct=performance is not None,
        us=None if performance is None else performance.median_us,
        speedups={n: b.speedup for n, b in baselines.items() if b.speedup is not None},
        rival=None if best is None else best.evaluation.best,
        overhead=performance is not None and performance.overhead_dominated,
        surplus=report.flops / nominal if nominal else None,
        serial=shares.serial,
        scalar=shares.scalar,
        apart=shares.apart,
        traffic=outer / max(1.0, report.footprint_bytes),
        least_us=max(bounds) if bounds else None,
        bound=report.bound,
        stages=shares.stages,
        tried=dict(branch.tried),
        profile=shares.profile,
        buffers=shares.buffers,
    )


def _measured(seen: Observation) -> list[str]:
    if seen.us is None:
        return ["not measured yet"]
    lines = [f"measured: {seen.us:.4g} us a call, correct"]
    for name, ratio in seen.speedups.items():
        mark = ", the one to beat" if name == seen.rival else ""
        lines.append(f"- {ratio:.2f} times as fast as {name}{mark}")
    if seen.overhead:
        lines.append("- most of that is the call itself, not the kernel")
    return lines


def _static(seen: Observation) -> list[str]:
    report = seen.explanation
    lines = []
    if seen.least_us is not None and seen.us is not None:
        lines.append(
            f"roofline: at least {seen.least_us:.3g} us, {seen.bound or 'one'}-bound; this takes "
            f"{seen.us / seen.least_us:.1f} times that"
        )
    lines.append(
        f"operations: {report.flops:.3g}"
        + (f", {seen.surplus:.2f} of the nominal number" if seen.surplus is not None else "")
    )
    for level in report.levels:
        lines.append(f"into {level.name}: {level.bytes:.3g} B")
    lines.append(
        f"distinct bytes: {report.footprint_bytes:.3g}; workspace {report.workspace_bytes}"
    )
    how = "estimated" if seen.profile is None else "measured"
    if seen.scalar is not None and seen.serial is not None and seen.apart is not None:
        lines.append(
            f"of the {how} time {seen.scalar:.0%} is outside of vector loops, "
            f"{seen.serial:.0%} outside of parallel loops, {seen.apart:.0%} in lanes that lie apart"
        )
    if seen.profile is not None:
        return [*lines, _by_nest(seen.profile)]
    stages = ", ".join(f"{name} {share:.0%}" for name, share in seen.stages[:_STAGES])
    return [*lines, f"estimated time by stage: {stages}"] if stages else lines


def _by_nest(profile: StageProfile) -> str:
    ordered = sorted(profile.parts, key=lambda part: -part.share)[:_STAGES]

    def told(part: PartTime) -> str:
        inside = [name for name in part.stages if name != part.label]
        return f"{part.label} {part.share:.0%}" + (f" (with {', '.join(inside)})" if inside else "")

    return f"measured time by nest: {', '.join(map(told, ordered))}"
