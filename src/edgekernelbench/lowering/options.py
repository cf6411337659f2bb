"""What a kernel tells the toolchain of one backend, by `option` lines. Results never change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgekernelbench.targets.model import Target

DEFAULT_UNROLLED = 256
MAX_UNROLLED = 4096


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a kernel; what it does not state is as the target has it.

    Attributes:
        vector_bits: SIMD width to generate code for, None for the target's.
        parallel_order: how iterations of parallel loops are dealt out to the threads: each thread
            a ``block`` of neighbours, or every n-th one (``cyclic``), for work that grows or
            shrinks along the loop.
        unroll_limit: how many copies of a body the unrolled loops of a nest may make.
    """

    vector_bits: int | None = None
    parallel_order: Literal["block", "cyclic"] = "block"
    unroll_limit: int = DEFAULT_UNROLLED

    def applied(self, target: Target) -> Target:
        """The target as code is generated for it."""
        if self.vector_bits is None or self.vector_bits >= target.vector_bits:
            return target
        wider = [row for row in _WIDER if row[0] > self.vector_bits]
        lost = tuple(family for _, _, family in wider)
        update = {
            "vector_bits": self.vector_bits,
            "mattr": (*target.mattr, *(off for _, off, _ in wider)),
            "features": tuple(f for f in target.features if not f.startswith(lost)),
        }
        return target.model_copy(update=update)


_WIDER = ((512, "-avx512f", "avx512"), (256, "-avx", "avx"))
"""Width of registers, the CPU feature that brings them, switched off for narrower code, and how the
names of all that need it begin."""


def choices(target: Target) -> dict[str, tuple[int | str, ...] | range]:
    """The options that there are for a target, with their values."""
    if target.backend != "llvm":
        return {}
    out: dict[str, tuple[int | str, ...] | range] = {
        "parallel_order": ("block", "cyclic"),
        "unroll_limit": range(1, MAX_UNROLLED + 1),
    }
    widths = tuple(bits for bits in (128, 256, 512) if bits <= target.vector_bits)
    if target.vector_bits >= 256:  # only x86 has them: a narrower code is AVX2 or SSE
        out["vector_bits"] = widths
    return out
