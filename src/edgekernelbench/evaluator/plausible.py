"""Whether a time can be true: against the measured roofline, and against the parent's own clock.

The bound is deliberately loose. A task's nominal operations can be undercut honestly (Winograd,
FFT, padded taps, sparse reads), and peaks of narrow integers lie far above those of f32, so the
bound leaves room for all of it: what falls below it was not computed.
"""

from __future__ import annotations

import math

from edgekernelbench.evaluator.parentclock import Clocks
from edgekernelbench.evaluator.task import EvalTask, Spec
from edgekernelbench.targets.peaks import Peaks

_ALGORITHMS = 4.0
"""By how much a better algorithm may undercut the nominal operations. Winograd F(4x4, 3x3) saves
4.0, F(2x2, 3x3) 2.25."""

_CACHES = 4.0
"""By how much a kernel may exceed the bandwidth measured in caches: at such sizes the measured one
is lowered by launch and wake-up, and a kernel's own inputs may lie in a nearer cache."""

DEVICE_SLACK = 1.5
"""By how much more the roofline of a device may be exceeded: a vendor's figure is for a nominal
clock, and a device may boost beyond it; a host's is measured through another compiler."""

_INPUTS_READ = 0.25
"""Share of the inputs that a kernel surely reads: strides, crops and conditions skip some."""


def least_seconds(task: EvalTask, peaks: Peaks) -> tuple[float, str]:
    """A time that one call cannot undercut, and which roof gives it.

    Operations bound only tasks in f32: other dtypes pack more into a register, up to 32 times
    for bits, and are left to the bytes.
    """
    written = sum(_bytes(spec) for spec in task.output_specs)
    read = sum(_bytes(spec) for spec in task.input_specs)
    needed = min(written + _INPUTS_READ * read, float(task.bytes_touched))
    bandwidth = peaks.bytes_per_s(int(needed))
    if needed < peaks.bandwidths[-1].working_set:
        bandwidth *= _CACHES
    roofs = {"bandwidth": needed / bandwidth}
    if task.dtype == "f32":
        roofs["operations"] = task.flops / _ALGORITHMS / peaks.flops_f32
    name = max(roofs, key=lambda key: roofs[key])
    return roofs[name], name


def _bytes(spec: Spec) -> int:
    return math.prod(spec.shape) * spec.dtype.bytes


def implausible(
    task: EvalTask,
    median_us: float,
    overhead_us: float,
    clocks: Clocks | None,
    peaks: Peaks | None,
    slack: float,
) -> str:
    """Why a measured median cannot be true; empty when it can.

    Args:
        task: what one call does.
        median_us: as the child's clock said.
        overhead_us: of a call that does next to nothing, the same way.
        clocks: the child's clock beside the parent's, where they were compared.
        peaks: of the target, where they have been measured.
        slack: factor by which the roofline may be exceeded.
    """
    if median_us < overhead_us / 4:
        return f"{median_us:.3g} us a call, but a call alone costs {overhead_us:.3g} us"
    if clocks is not None and clocks.disagree:
        return clocks.complaint()
    if peaks is None:
        return ""
    least, roof = least_seconds(task, peaks)
    if median_us * 1e-6 * slack < least:
        return (
            f"{median_us:.3g} us a call is beyond the roofline ({roof}: no less than "
            f"{least * 1e6 / slack:.3g} us, by {peaks.method or peaks.target})"
        )
    return ""
