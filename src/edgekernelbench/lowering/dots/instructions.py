"""The dot-product instructions of CPUs, as a table.

Every row is exact: what saturates on the way (``vpmaddubsw``, ``vpdpbusds``) is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.targets.model import Target

Form = Literal["bytes", "pairs", "words"]
"""What an instruction takes: four bytes a lane; two halves of them, widened to s16 (twice); or
one of them, widened to the s32 of the lane (four times)."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row.

    Attributes:
        name: as assembly texts have it.
        llvm: LLVM's intrinsic: accumulator and two vectors of bytes for ``bytes``, two vectors of
            s16 for ``pairs``, none for ``words``.
        lanes: s32 lanes of its result; 0 for any number.
        operands: kinds of the two bytes in the intrinsic's order; None for any.
        needs: the CPU features that it takes, all of them.
    """

    name: str
    form: Form
    llvm: str
    lanes: int
    operands: tuple[DType, DType] | None
    needs: tuple[str, ...]

    def takes(self, a: DType, b: DType) -> bool:
        """Whether one operand may be of kind ``a`` and the other of kind ``b``."""
        return self.operands is None or self.operands in ((a, b), (b, a))


_U8_S8, _S8_S8, _U8_U8 = (DType.U8, DType.S8), (DType.S8, DType.S8), (DType.U8, DType.U8)
_VNNI, _NEON = "llvm.x86.avx512.vpdpbusd", "llvm.aarch64.neon"

TABLE: tuple[Instruction, ...] = (
    # x86, VNNI: u8 by s8
    Instruction("vpdpbusd", "bytes", f"{_VNNI}.512", 16, _U8_S8, ("avx512vnni",)),
    Instruction("vpdpbusd", "bytes", f"{_VNNI}.256", 8, _U8_S8, ("avx512vnni", "avx512vl")),
    Instruction("vpdpbusd", "bytes", f"{_VNNI}.128", 4, _U8_S8, ("avx512vnni", "avx512vl")),
    Instruction("vpdpbusd", "bytes", f"{_VNNI}.256", 8, _U8_S8, ("avxvnni",)),
    Instruction("vpdpbusd", "bytes", f"{_VNNI}.128", 4, _U8_S8, ("avxvnni",)),
    # x86, later: like by like
    Instruction("vpdpbssd", "bytes", "llvm.x86.avx2.vpdpbssd.256", 8, _S8_S8, ("avxvnniint8",)),
    Instruction("vpdpbssd", "bytes", "llvm.x86.avx2.vpdpbssd.128", 4, _S8_S8, ("avxvnniint8",)),
    Instruction("vpdpbuud", "bytes", "llvm.x86.avx2.vpdpbuud.256", 8, _U8_U8, ("avxvnniint8",)),
    Instruction("vpdpbuud", "bytes", "llvm.x86.avx2.vpdpbuud.128", 4, _U8_U8, ("avxvnniint8",)),
    # x86, before: both widened to s16
    Instruction("vpmaddwd", "pairs", "llvm.x86.avx512.pmaddw.d.512", 16, None, ("avx512bw",)),
    Instruction("vpmaddwd", "pairs", "llvm.x86.avx2.pmadd.wd", 8, None, ("avx2",)),
    Instruction("pmaddwd", "pairs", "llvm.x86.sse2.pmadd.wd", 4, None, ("sse2",)),
    # AArch64
    Instruction("sdot", "bytes", f"{_NEON}.sdot", 4, _S8_S8, ("dotprod",)),
    Instruction("udot", "bytes", f"{_NEON}.udot", 4, _U8_U8, ("dotprod",)),
    Instruction("usdot", "bytes", f"{_NEON}.usdot", 4, _U8_S8, ("i8mm",)),
)

WORDS = Instruction("shifts and multiply-adds", "words", "", 0, None, ())
"""What every CPU can do."""


def available(target: Target) -> list[Instruction]:
    """The rows that a target has, the widest first."""
    features, widest = set(target.features), target.vector_bits // 32
    rows = [r for r in TABLE if features.issuperset(r.needs) and r.lanes <= widest]
    unique = {(row.llvm, row.lanes): row for row in reversed(rows)}
    return sorted(unique.values(), key=lambda row: -row.lanes)


def rows_for(target: Target, a: DType, b: DType) -> list[Instruction]:
    """The rows for a product of two kinds of bytes, of the best form that there is."""
    fit = [row for row in available(target) if row.takes(a, b)]
    for form in ("bytes", "pairs"):
        if rows := [row for row in fit if row.form == form]:
            return rows
    return []


def wants_bias(target: Target, moving: DType, still: DType) -> bool:
    """Whether the target multiplies bytes of these kinds best once ``still`` is of the other."""
    if any(row.form == "bytes" for row in rows_for(target, moving, still)):
        return False
    other = DType.U8 if still is DType.S8 else DType.S8
    return any(row.form == "bytes" for row in rows_for(target, moving, other))
