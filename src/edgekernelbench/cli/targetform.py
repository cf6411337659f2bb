"""A target as ``ekb devices show`` prints it: the words and units of a device profile."""

from __future__ import annotations

from collections.abc import Iterator

from edgekernelbench.cli.common import quantity
from edgekernelbench.targets.model import Gpu, RatedPeak, Target
from edgekernelbench.targets.peaks import Peaks

Row = tuple[str, str]


def rows_of(target: Target, measured: Peaks | None) -> Iterator[Row]:
    """What is known of it, by name; what is not known is left out."""
    yield "name", target.name
    yield "description", target.description
    yield "backend", target.backend
    if target.mcpu or target.mtriple:
        yield "processor", " ".join(part for part in (target.mcpu, target.mtriple) if part)
    yield from _features(target)
    yield "cores", _cores(target)
    if target.gpu is None:
        yield "vector width", f"{target.vector_bits} bits"
    if target.cache_bytes:
        order = " (the first level first)" if len(target.cache_bytes) > 1 else ""
        yield "data caches", ", ".join(_size(size) for size in target.cache_bytes) + order
    yield from (("limit", line) for line in _limits(target))
    if target.dtypes_missing:
        yield "missing dtypes", ", ".join(target.dtypes_missing)
    yield "runs", _runs(target)
    yield from (("peak", _peak(peak)) for peak in target.peaks)
    if measured is not None:
        yield from _measured(measured)
    elif not target.peaks and _runs(target).startswith("here"):
        yield "peaks", "not measured: `ekb devices probe` does that"


def _features(target: Target) -> Iterator[Row]:
    found = (*target.mattr, *target.features)
    if found:
        yield "features", ", ".join(found)


def _cores(target: Target) -> str:
    if target.gpu is None:
        return str(target.threads)
    kind = "multiprocessors" if target.backend == "cuda" else "compute units"
    return f"{target.gpu.units} {kind}"


def _limits(target: Target) -> Iterator[str]:
    sizes = {
        "of memory": target.memory_bytes,
        "in one buffer": target.buffer_bytes,
        "of workspace": target.workspace_bytes,
        "of code": target.code_bytes,
    }
    yield from (f"{_size(size)} {what}" for what, size in sizes.items() if size is not None)
    if target.gpu is not None:
        yield from _gpu_limits(target.gpu)


def _gpu_limits(gpu: Gpu) -> Iterator[str]:
    yield f"{gpu.max_threads} threads a block"
    yield f"{_size(gpu.shared_bytes)} of shared memory a block"
    if gpu.shared_optin_bytes is not None:
        yield f"{_size(gpu.shared_optin_bytes)} where a launch asks for it, which ours never do"
    if gpu.registers is not None:
        yield f"{gpu.registers} registers a thread"
    if gpu.registers_block is not None:
        yield f"{gpu.registers_block} registers a block"
    if gpu.warp > 1:
        yield f"{gpu.warp} threads run in step"


def _runs(target: Target) -> str:
    device = target.device
    if device is not None:
        where = "this host's processor" if device.is_host_cpu else "a device of this host"
        return f"here: {where}"
    if target.unreachable:
        return f"code only: {target.unreachable}"
    return "here" if target.mtriple is None and target.gpu is None else "code only"


def _peak(peak: RatedPeak) -> str:
    whose = {
        "vendor": "of the vendor",
        "own": "its profile's author vouches",
        "measured": "measured",
    }
    spread = "" if peak.spread is None else f", spread {100 * peak.spread:.1f} %"
    size = "" if peak.working_set is None else f" at {_size(peak.working_set)}"
    unit = "B/s" if peak.of == "bandwidth" else "op/s"
    return f"{peak.of}{size}: {quantity(peak.rate, unit)}, {whose[peak.source]}{spread}"


def _measured(peaks: Peaks) -> Iterator[Row]:
    when = f"measured {peaks.date[:10]}"
    yield "peak", f"f32: {quantity(peaks.flops_f32, 'op/s')}, {when}"
    if peaks.ops_bytes is not None:
        yield "peak", f"s8: {quantity(peaks.ops_bytes, 'op/s')}, {when}"
    for dtype, rate in peaks.ops.items():
        yield "peak", f"{dtype}: {quantity(rate, 'op/s')}, {when}"
    for one in peaks.bandwidths:
        size = _size(one.working_set)
        rate = quantity(one.bytes_per_s, "B/s")
        yield "peak", f"bandwidth at {size} ({one.kernel}): {rate}, {when}"


def _size(size: int) -> str:
    """In the binary units of profiles."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} B"
