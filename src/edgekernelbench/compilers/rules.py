"""Rules of the back ends that a kernel can break, or that say we did."""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

UNROLLED_CODE = Rule("E601", "the unrolled and vectorised code of a kernel has a bounded size")
WIDE_VECTOR = Rule("E602", "one vectorised loop spans at most 256 elements")
UNSUPPORTED_TARGET = Rule("E603", "the compiler builds for the backend of the target")
INTERNAL = Rule("E699", "internal compiler error: the kernel is legal, the compiler failed")
REJECTED = Rule("E605", "the system's C compiler accepts the source of a legal kernel")
