"""The roofs of a target: measured peaks where there are any, else those that its profile cites."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.lowering.facts import Facts
from edgekernelbench.targets.model import RatedPeak, Target
from edgekernelbench.targets.peaks import Peaks

PROBE = "run `ekb devices probe%s`"


REACHED = "reached by our own kernels, which a better one may exceed"
"""Whose the measured peaks of a device are: its kernels follow default rules."""


@dataclass(frozen=True, slots=True)
class Roof:
    """Bounds of a kernel's time on a target; None where a peak is not known.

    Attributes:
        source: whose figures they are, in words; empty where there are none.
        missing: which peak is not known and what to do about it, in words; else empty.
    """

    compute_s: float | None = None
    memory_s: float | None = None
    source: str = ""
    missing: str = ""


def roof(
    target: Target, peaks: Peaks | None, facts: Facts, traffic: float, resident: float
) -> Roof:
    """What the operations, and the bytes from memory, take at least.

    Args:
        peaks: measured ones.
        traffic: bytes from memory in one call.
        resident: distinct bytes that one call touches.
    """
    if peaks is not None:
        seconds = _measured_seconds(facts, peaks)
        missing = f"the peak of dot products of bytes is not measured: {PROBE % ''}"
        bandwidth = peaks.bytes_per_s(int(resident))
        source = "measured" if target.gpu is None else REACHED
        return Roof(seconds, traffic / bandwidth, source, "" if seconds else missing)
    if not target.peaks:
        host = target.on_cpu and target.mtriple is None
        which = "this host" if host else target.name
        how = PROBE % ("" if host else f" --target {target.name}")
        if target.unreachable or not (host or target.device):
            how = "a device profile can name them (`ekb devices list`)"
        return Roof(missing=f"the peaks of {which} are not measured: {how}")
    return _rated(target, facts, traffic)


def _measured_seconds(facts: Facts, peaks: Peaks) -> float | None:
    """What the operations take at the peaks; None where the peak of one kind was not measured."""
    if not facts.dots:
        return facts.flops / peaks.flops_f32
    if peaks.ops_bytes is None:
        return None
    return (facts.flops - facts.dots) / peaks.flops_f32 + facts.dots / peaks.ops_bytes


def _rated(target: Target, facts: Facts, traffic: float) -> Roof:
    bandwidth = _best(target.peaks, "bandwidth")
    f32, s8 = _best(target.peaks, "f32"), _best(target.peaks, "s8")
    compute = None if f32 is None else (facts.flops - facts.dots) / f32.rate
    if facts.dots:
        compute = None if compute is None or s8 is None else compute + facts.dots / s8.rate
    memory = None if bandwidth is None else traffic / bandwidth.rate
    unknown = [what for what, us in (("arithmetic", compute), ("memory", memory)) if us is None]
    sources = sorted({peak.source for peak in target.peaks})
    source = " and ".join(_WHOSE[source] for source in sources)
    missing = f"the profile of {target.name} names no peak of {', '.join(unknown)}"
    return Roof(compute, memory, source, missing if unknown else "")


_WHOSE = {"vendor": "of the vendor", "measured": "measured", "own": "of its profile's author"}


def _best(peaks: tuple[RatedPeak, ...], of: str) -> RatedPeak | None:
    """The largest of a kind; of bandwidths that at the largest working set, which is memory's."""
    found = [peak for peak in peaks if peak.of == of]
    if of == "bandwidth":
        return max(found, key=lambda peak: (peak.working_set or 0, peak.rate), default=None)
    return max(found, key=lambda peak: peak.rate, default=None)
