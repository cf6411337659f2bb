"""Measured peaks of a target: what no kernel on it can beat. Measured by `evaluator.peaks`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.files import write_whole
from edgekernelbench.targets.host import cache_folder, host_target
from edgekernelbench.targets.model import Target


class Bandwidth(BaseModel):
    """Bytes read and written per second by a kernel that touches ``working_set`` bytes a call."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    working_set: int
    bytes_per_s: float
    kernel: str


class Peaks(BaseModel):
    """The best that kernels of our own reached on a target.

    Attributes:
        flops_f32: operations a second of register-tiled f32 multiply-adds, each counting 2.
        ops_bytes: the same of dot products of u8 by s8; None where an earlier version measured.
        ops: the same of other dtypes, each operand loaded as such and added up as kernels do by
            themselves (f16 in f32).
        spread: half width of the 95 % interval of the median by kernel, relative.
        bandwidths: by working set, in ascending order; the last is memory's where the working set
            exceeds the last-level cache.
        kernels: name of each measuring kernel to what it reached, for the record.
        failures: measuring kernels that gave no time, and why.
        date: when, in UTC.
        method: how, in words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int = 1
    target: str
    cpu: str
    threads: int
    flops_f32: float
    ops_bytes: float | None = None
    ops: dict[str, float] = {}
    spread: dict[str, float] = {}
    bandwidths: tuple[Bandwidth, ...]
    kernels: dict[str, float]
    failures: tuple[str, ...] = ()
    date: str
    method: str

    @property
    def memory_bytes_per_s(self) -> float:
        """Bandwidth at the largest working set."""
        return self.bandwidths[-1].bytes_per_s

    def kernel_of(self, dtype: str) -> str:
        """The fastest of the kernels that measured a dtype's operations; empty if none did."""
        prefix = {"f32": ("product", "f32 product"), "s8": ("bytes", "s8 product")}
        names = [n for n in self.kernels if n.startswith(prefix.get(dtype, (f"{dtype} product",)))]
        return max(names, key=lambda name: self.kernels[name], default="")

    def raised_by(self, other: Peaks) -> Peaks:
        """These peaks, each raised to the other's where that is higher; unchanged when the other
        was measured on another processor or with other threads."""
        if (other.cpu, other.threads) != (self.cpu, self.threads):
            return self
        before = {b.kernel: b.bytes_per_s for b in other.bandwidths}
        bandwidths = tuple(
            b.model_copy(update={"bytes_per_s": max(b.bytes_per_s, before.get(b.kernel, 0.0))})
            for b in self.bandwidths
        )
        kernels = {n: max(r, other.kernels.get(n, 0.0)) for n, r in self.kernels.items()}
        rates = [rate for rate in (self.ops_bytes, other.ops_bytes) if rate is not None]
        ops = {n: max(r, other.ops.get(n, 0.0)) for n, r in self.ops.items()}
        update = {
            "ops": ops,
            "flops_f32": max(self.flops_f32, other.flops_f32),
            "ops_bytes": max(rates, default=None),
            "bandwidths": bandwidths,
            "kernels": kernels,
        }
        return self.model_copy(update=update)

    def joined(self, other: Peaks | None) -> Peaks:
        """These, and the roofs of the other where they are higher."""
        if other is None:
            return self
        *nearer, last = sorted((*self.bandwidths, *other.bandwidths), key=lambda b: b.working_set)
        memory = max(self.memory_bytes_per_s, other.memory_bytes_per_s)
        update = {
            "flops_f32": max(self.flops_f32, other.flops_f32),
            "bandwidths": (*nearer, last.model_copy(update={"bytes_per_s": memory})),
        }
        return self.model_copy(update=update)

    def bytes_per_s(self, working_set: int) -> float:
        """An upper bound of the bandwidth at a working set: the highest that was measured from
        the next smaller one upwards."""
        smaller = [b.working_set for b in self.bandwidths if b.working_set <= working_set]
        least = max(smaller, default=0)
        return max(b.bytes_per_s for b in self.bandwidths if b.working_set >= least)


def rated_peaks(target: Target, by_vendor: bool = False) -> Peaks | None:
    """What the target's profile says it reaches, the highest figure of each; None where it says
    nothing of f32 or of memory.

    Args:
        by_vendor: only figures from a vendor's documents count.
    """
    known = [peak for peak in target.peaks if not by_vendor or peak.source == "vendor"]
    f32 = [peak.rate for peak in known if peak.of == "f32"]
    rated = [peak for peak in known if peak.of == "bandwidth"]
    if not f32 or not rated:
        return None
    beyond_caches = 2 * max(target.cache_bytes, default=0)
    bandwidths = [
        Bandwidth(
            working_set=beyond_caches if peak.working_set is None else peak.working_set,
            bytes_per_s=peak.rate,
            kernel=f"{peak.source}, by the profile",
        )
        for peak in rated
    ]
    return Peaks(
        target=target.name,
        cpu=target.description,
        threads=target.threads,
        flops_f32=max(f32),
        bandwidths=tuple(sorted(bandwidths, key=lambda b: b.working_set)),
        kernels={},
        date="",
        method=f"figures of its profile ({', '.join(sorted({p.source for p in known}))})",
    )


def proven_peaks(target: Target) -> Peaks | None:
    """What no kernel on a device beats: the figures of its vendor or, where the device is this
    host's processor, the host's measured peaks; None where neither is known. What kernels of our
    own reached on a device is no proof of what it cannot do."""
    rated = rated_peaks(target, by_vendor=True)
    if target.device is not None and target.device.is_host_cpu:
        measured = load_peaks(host_target())
        return rated if measured is None else measured.joined(rated)
    return rated


def device_peaks(target: Target) -> Peaks | None:
    """The roofs of a device: measured on it, or by its profile; None where neither is known."""
    stored = load_peaks(target)
    rated = rated_peaks(target)
    if stored is None or stored.cpu != target.description:
        return rated
    return stored.joined(rated)


def peaks_file(target: Target, threads: int) -> Path:
    """Where the peaks of a target are kept."""
    chosen = os.environ.get("EDGEKERNELBENCH_CACHE")
    base = Path(chosen) if chosen else cache_folder()
    target = target.reference  # what a device reaches is the same by way of every compiler
    return base / "peaks" / f"{target.name}-{target.mcpu or target.backend}-{threads}.json"


def load_peaks(target: Target, threads: int | None = None) -> Peaks | None:
    """The stored peaks, or None when they were never measured or cannot be read."""
    file = peaks_file(target, threads or target.threads)
    with contextlib.suppress(OSError, ValueError):
        return Peaks.model_validate_json(file.read_bytes())
    return None


def store_peaks(target: Target, peaks: Peaks) -> None:
    """Keeps them for `load_peaks`; a reader sees the old or the new file whole."""
    file = peaks_file(target, peaks.threads)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, peaks.model_dump_json(indent=1) + "\n")
