"""What differs between code generators in the translation of scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgekernelbench.compilers.tvm import scalars
from edgekernelbench.compilers.tvm.intrinsics import call_intrinsic
from edgekernelbench.compilers.tvm.powers import power
from edgekernelbench.compilers.tvm.scalars import Bind, TExpr
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType


@dataclass(frozen=True, slots=True)
class Dialect:
    """Functions of one code generator.

    Attributes:
        call: an intrinsic of the kernel IR; see `intrinsics.call_intrinsic`.
        power: ``base ** exponent``; see `powers.power`.
        fence: the same value, which no fused operation may take apart.
    """

    call: Callable[[str, Sequence[TExpr], DType, DType, Bind], TExpr]
    power: Callable[[TExpr, TExpr, core.Expr, DType, Bind], TExpr]
    fence: Callable[[TExpr], TExpr]


LLVM = Dialect(call_intrinsic, power, scalars.fence)
