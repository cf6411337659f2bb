"""Whether outputs are what the interpreter says, and what programs leave undefined."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret import interpret
from tests.fuzz.draws import Arrays
from tests.fuzz.engine import Finding
from tests.property.naive import Naive

RTOL, ATOL = 2e-4, 1.6e-3
RTOL_F16, ATOL_F16 = 2e-2, 0.16
ROUNDING = 8.0
"""How many times the rounding error that the interpreter itself shows is allowed beside them."""


class Truth:
    """The outputs of a program on some inputs, and how far each may be off.

    The rounding of a program is what separates its interpretation in the declared dtypes from
    that in float64; a program that cancels is not held to more than it can keep.

    Args:
        tracked: whether the program was made so that rounding decides nothing. For others two
            runs on inputs changed by a millionth add to the rounding, and elements of integers
            and booleans that these runs change are not compared.
    """

    def __init__(self, program: core.Program, inputs: Arrays, tracked: bool) -> None:
        self._program = program
        self._want = interpret(program, inputs, "declared")
        self._others = [interpret(program, inputs, "f64")]
        if not tracked:
            nudged = (_nudged(inputs, sign) for sign in (1, -1))
            self._others += [interpret(program, changed, "declared") for changed in nudged]
        self._loose = any(t.dtype is DType.F16 for t in _tensors(program))

    def compare(self, got: Arrays) -> None:
        """Integers and booleans bit for bit; floats within ``RTOL``, ``ATOL`` and rounding.

        Raises:
            Finding: an output differs.
        """
        for tensor in self._program.outputs:
            mine, right = got[tensor.name], self._want[tensor.name]
            variants = [other[tensor.name] for other in self._others]
            bad = _wrong(mine, right, variants, self._loose)
            if bad.any():
                at = tuple(int(n) for n in np.argwhere(bad)[0]) if bad.ndim else ()
                detail = f"{tensor.name}{list(at)} is {mine[at]!r}, must be {right[at]!r}"
                raise Finding("result differs", f"{detail}; {int(bad.sum())} of {bad.size}")


def _tensors(program: core.Program) -> list[core.Tensor]:
    stored = [stage.tensor for _, stage in core.stages(program.body)]
    return [*program.inputs, *program.outputs, *stored]


def _wrong(
    mine: np.ndarray, right: np.ndarray, variants: list[np.ndarray], loose: bool
) -> np.ndarray:
    """Elements of an output that are not as they must be."""
    if right.dtype.kind != "f":
        steady = [variant == right for variant in variants[1:]]
        return np.logical_and.reduce([mine != right, *steady])
    rtol, atol = (RTOL_F16, ATOL_F16) if loose else (RTOL, ATOL)
    base = right.astype(np.float64)
    slack, unsteady = atol, np.zeros(right.shape, np.bool_)
    for variant in variants:
        other = variant.astype(np.float64)
        unsteady |= np.isfinite(other) != np.isfinite(base)
        both = np.isfinite(other) & np.isfinite(base)
        apart = np.abs(other - base, where=both, out=np.zeros(base.shape))
        slack = max(slack, atol + ROUNDING * float(np.max(apart, initial=0.0)))
    near = np.isclose(mine.astype(np.float64), base, rtol=rtol, atol=slack, equal_nan=True)
    return ~(near | unsteady)


def _nudged(inputs: Arrays, sign: int) -> Arrays:
    """Floats changed by a millionth of their size or so, each by another amount."""
    rng = np.random.default_rng(abs(sign))
    out = {}
    for name, array in inputs.items():
        if array.dtype.kind == "f":
            step = 1e-3 if array.dtype == np.float16 else 1e-6
            array = (array * (1 + sign * step * rng.uniform(0.5, 1, array.shape))).astype(
                array.dtype
            )
        out[name] = array
    return out


# ---------------------------------------------------------------- undefined values
class _Watch(Naive):
    """The literal interpreter, noticing signed arithmetic that leaves its dtype."""

    overflowed = False
    quiet = False

    def typed(self, value: Any, dtype: DType) -> Any:
        if not self.quiet and dtype.is_int and dtype.is_signed:
            low, high = dtype.int_range
            self.overflowed |= not low <= value <= high
        return super().typed(value, dtype)

    def cast(self, x: Any, source: DType, target: DType) -> Any:
        before, self.quiet = self.quiet, True  # a cast wraps by its definition
        out = super().cast(x, source, target)
        self.quiet = before
        return out


def overflows(program: core.Program, inputs: Arrays) -> bool:
    """Whether a signed integer overflows on the way (a shift to the left among them)."""
    watch = _Watch(program, inputs, declared=True)
    with np.errstate(all="ignore"):
        try:
            watch.run()
        except (OverflowError, ZeroDivisionError, ValueError):  # the literal one is no float unit
            return watch.overflowed
    return watch.overflowed
