"""Peaks of the targets that an entry's kernels ran on."""

from __future__ import annotations

from collections.abc import Sequence

from edgekernelbench.errors import UsageError
from edgekernelbench.records.schema import Record
from edgekernelbench.report.plots.points import Roofs
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import device_peaks, load_peaks
from edgekernelbench.targets.registry import find_target


def roofs_of(name: str, records: Sequence[Record], target: Target | None) -> Roofs | None:
    """Measured on the processor that the records name, where this machine has them; else what the
    target's profile says; None where neither is known.

    Args:
        name: of the target.
        records: on it.
        target: as the run's settings describe it, None where they do not.
    """
    if target is None:
        target = _registered(name)
    if target is None:
        return None
    peaks = load_peaks(target)
    if peaks is not None and peaks.cpu in _processors(records, target):
        return Roofs(peaks.flops_f32, peaks.memory_bytes_per_s, f"measured, {peaks.date[:10]}")
    rated = device_peaks(target) if target.peaks else None
    if rated is None:
        return None
    return Roofs(rated.flops_f32, rated.memory_bytes_per_s, rated.method)


def _registered(name: str) -> Target | None:
    try:
        return find_target(name)
    except UsageError:  # of another machine
        return None


def _processors(records: Sequence[Record], target: Target) -> set[str]:
    """Names under which peaks of the device may be stored: the host's processor on CPUs, the
    device's own description elsewhere."""
    if not target.on_cpu:
        return {target.description}
    told = [None if r.evaluation is None else r.evaluation.environment for r in records]
    return {environment.cpu for environment in told if environment is not None}
