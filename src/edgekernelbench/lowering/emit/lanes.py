"""How many SIMD lanes a loop of a given length uses."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.targets.model import Target

MAX_LANES = 64

ODD_LANES = 32
"""Up to here a vector may have any multiple of the register's lanes. Wider ones that are no power
of two leave the registers in LLVM (48 f32 lanes: 40 times slower than 32 and 16, measured)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """``count`` vectors of ``width`` lanes, the first at ``start``."""

    start: int
    count: int
    width: int


def native_lanes(target: Target) -> int:
    """Lanes of a 32-bit element in one register, at least 4."""
    return max(4, target.vector_bits // 32)


def map_lanes(target: Target) -> int:
    """Lanes for elementwise loops: 16, or one register where that is wider."""
    return max(16, native_lanes(target))


def partial_lanes(target: Target, accumulators: int) -> int:
    """Partial sums of a SIMD reduction: enough to hide latency, few enough for registers."""
    registers = 4 if accumulators <= 1 else 2 if accumulators <= 3 else 1
    return min(MAX_LANES, max(16, native_lanes(target) * registers))


def chunks(extent: int, lanes: int, whole: bool) -> list[Chunk]:
    """Divides a loop into vectors: full ones, then ever narrower ones for the rest.

    Args:
        lanes: of a full vector, a power of two.
        whole: as wide as possible, up to 64 lanes (accumulators in registers): one vector of a
            multiple of ``lanes`` first.
    """
    out: list[Chunk] = []
    start, width = 0, lanes
    if whole and lanes < extent <= MAX_LANES:
        first = extent // lanes * lanes
        if first > ODD_LANES and first & (first - 1):
            first = 1 << (first.bit_length() - 1)
        out.append(Chunk(0, 1, first))
        start = first
    while start < extent:
        count = (extent - start) // width
        if count:
            out.append(Chunk(start, count, width))
            start += count * width
        width //= 2
    return out
