"""One program compiled and run between guard bands, against the interpreter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.targets.model import Target
from tests.fuzz.engine import Finding
from tests.property.naive import Naive

Arrays = dict[str, np.ndarray]

RTOL, ATOL = 2e-4, 1.6e-3
RTOL_F16, ATOL_F16 = 2e-2, 0.16
ROUNDING = 8.0
"""How many times the rounding error that the interpreter itself shows is allowed beside them."""

_GUARD = 4096
_PATTERN = 0xA5
_ALIGN = 64
_MOST_WORK = 3e6


class Guards:
    """Arrays with guard bytes on both sides, all of them known."""

    def __init__(self) -> None:
        self._raw: list[tuple[np.ndarray, int, int]] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype | DType) -> np.ndarray:
        """Stands in for `execute.aligned_empty`."""
        dtype = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype)
        count = math.prod(shape) * dtype.itemsize
        raw = np.full(count + 2 * _GUARD + _ALIGN, _PATTERN, np.uint8)
        start = _GUARD + -(raw.ctypes.data + _GUARD) % _ALIGN
        self._raw.append((raw, start, start + count))
        return raw[start : start + count].view(dtype).reshape(shape)

    def damage(self) -> str:
        """Which guard byte was overwritten; empty if none."""
        for raw, start, end in self._raw:
            for side, band, at in (("before", raw[:start], -start), ("behind", raw[end:], 0)):
                bad = np.flatnonzero(band != _PATTERN)
                if bad.size:
                    return f"{bad.size} bytes {side} an array of {end - start}, at {at + bad[0]}"
        return ""


@contextmanager
def guarded() -> Iterator[Guards]:
    """Inside, every array that a loaded kernel is given or makes lies between guards."""
    from edgekernelbench.compilers.tvm import execute

    guards, plain = Guards(), execute.aligned_empty
    execute.aligned_empty = guards.empty
    try:
        yield guards
    finally:
        execute.aligned_empty = plain


def draw_inputs(program: core.Program, seed: int) -> Arrays:
    """Values in the ranges that `tests.property.programs` makes its programs for."""
    from tests.property.programs import _INT_RANGES

    rng = np.random.default_rng(seed)
    out = {}
    for tensor in program.inputs:
        if tensor.dtype.is_float:
            values = rng.integers(-12, 12, tensor.shape, endpoint=True) / 8
        else:
            low, high = _INT_RANGES[tensor.dtype.value]
            values = rng.integers(low, high, tensor.shape, endpoint=True)
        out[tensor.name] = np.asarray(values).astype(tensor.dtype.numpy)
    return out


def hostile_inputs(program: core.Program, seed: int) -> Arrays:
    """Integers of all sizes, extremes included; floats as `draw_inputs` has them."""
    rng = np.random.default_rng(seed)
    out = draw_inputs(program, seed)
    for tensor in program.inputs:
        if tensor.dtype.is_int:
            low, high = tensor.dtype.int_range
            pool = [v for v in (0, 1, 2, 3, -1, 5, low, high) if low <= v <= high]
            values = rng.choice(np.array(pool, tensor.dtype.numpy), tensor.shape)
            out[tensor.name] = np.asarray(values, tensor.dtype.numpy)
    return out


def work(program: core.Program) -> float:
    """Innermost evaluations of all stages, roughly."""
    total = 0.0
    for loops, stage in core.stages(program.body):
        around = math.prod(max(0, loop.hi - loop.lo) for loop in loops)
        points = around * math.prod(axis.extent for axis in stage.axes)
        total += points * _inner(stage.expr)
    return total


def _inner(expr: core.Expr) -> float:
    inside = sum(_inner(child) for child in core.children(expr)) + 1.0
    if isinstance(expr, core.Reduce):
        inside *= math.prod(max(1, axis.extent) for axis in expr.axes)
    return inside


def too_large(program: core.Program) -> bool:
    """Whether a run would take long: fuzzing wants many small ones."""
    return work(program) > _MOST_WORK


# ---------------------------------------------------------------- compile, run, compare
def build(kernel: Kernel, program: core.Program, target: Target, folder: Path) -> tuple[str, ...]:
    """Compiles into ``folder``; the codes of the errors where it is refused.

    Raises:
        Finding: the compiler failed, refused without a reason or with one of the wrong kind.
    """
    from edgekernelbench.compilers.tvm import TvmCompiler

    built = TvmCompiler().compile(kernel, program, target, folder)
    if built.artifact is not None:
        return ()
    errors = [d for d in built.diagnostics if d.severity == "error"]
    if not errors:
        raise Finding("refused without a reason")
    for error in errors:
        if error.rule.code == "E699" or error.rule.code[:2] not in ("E4", "E5", "E6"):
            raise Finding(f"internal {error.rule.code}", told(error))
        if not error.message:
            raise Finding(f"{error.rule.code} says nothing")
    return tuple(sorted({error.rule.code for error in errors}))


def told(error: Diagnostic) -> str:
    return f"{error.message} {' '.join(error.notes)}"[:1500]


def run_twice(folder: Path, program: core.Program, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """Outputs of the second call, when both calls agree and nothing else was written.

    Raises:
        Finding: guard bands or inputs were written, or the calls differ.
    """
    from edgekernelbench.compilers.tvm import execute

    with guarded() as guards:
        arrays = {name: execute.aligned_copy(array) for name, array in inputs.items()}
        given = dict(arrays)
        consts = {t.name: arrays.pop(t.name) for t in program.inputs if t.const}
        outputs = {t.name: guards.empty(t.shape, t.dtype) for t in program.outputs}
        call = execute.LoadedKernel(folder).bind(arrays, consts, outputs)
        seen = []
        for fill in (0xA5, 0x3C):
            for out in outputs.values():
                out.reshape(-1).view(np.uint8)[...] = fill
            call()
            seen.append({name: out.copy() for name, out in outputs.items()})
        if damage := guards.damage():
            raise Finding("guard band written", damage)
        for name, array in given.items():
            if array.tobytes() != inputs[name].tobytes():
                raise Finding("input written", name)
    for name, first in seen[0].items():
        if first.tobytes() != seen[1][name].tobytes() and not _same(first, seen[1][name]):
            raise Finding("calls differ", name)
    return seen[1]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def compare(program: core.Program, got: Arrays, inputs: Arrays, tracked: bool) -> None:
    """Integers and booleans bit for bit; floats within ``RTOL``, ``ATOL`` and rounding.

    The rounding of a program is what separates its interpretation in the declared dtypes from
    that in float64; a program that cancels is not held to more than it can keep.

    Args:
        tracked: whether the program was made so that rounding decides nothing. For others two
            runs on inputs changed by a millionth add to the rounding, and elements of integers
            and booleans that these runs change are not compared.

    Raises:
        Finding: an output differs.
    """
    want = interpret(program, inputs, "declared")
    others = [interpret(program, inputs, "f64")]
    if not tracked:
        others += [interpret(program, _nudged(inputs, sign), "declared") for sign in (1, -1)]
    loose = any(t.dtype is DType.F16 for t in _tensors(program))
    for tensor in program.outputs:
        mine, right = got[tensor.name], want[tensor.name]
        variants = [other[tensor.name] for other in others]
        bad = _wrong(mine, right, variants, loose)
        if bad.any():
            at = tuple(int(n) for n in np.argwhere(bad)[0]) if bad.ndim else ()
            detail = f"{tensor.name}{list(at)} is {mine[at]!r}, must be {right[at]!r}"
            raise Finding("result differs", f"{detail}; {int(bad.sum())} of {bad.size}")


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
        apart = np.abs(variant.astype(np.float64) - base)
        slack = max(slack, atol + ROUNDING * float(np.max(apart[np.isfinite(apart)], initial=0.0)))
        unsteady |= np.isfinite(variant) != np.isfinite(base)
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


def check_run(
    kernel: Kernel, program: core.Program, target: Target, inputs: Arrays, tracked: bool = True
) -> str:
    """Compiles, runs and compares. Outcome: ``agrees``, ``agrees: undefined`` or ``refused``.

    Args:
        tracked: see `compare`. A program that is not may also overflow signed integers, whose
            value the language leaves undefined: then a difference is no fault.

    Raises:
        Finding: whatever is wrong.
    """
    with TemporaryDirectory(prefix="ekb-fuzz-") as name:
        codes = build(kernel, program, target, Path(name))
        if codes:
            return f"refused {codes[0]}"
        got = run_twice(Path(name), program, inputs)
    try:
        compare(program, got, inputs, tracked)
    except Finding:
        if not tracked and overflows(program, inputs):
            return "undefined: overflow"
        raise
    return "agrees"


def _tensors(program: core.Program) -> list[core.Tensor]:
    stored = [stage.tensor for _, stage in core.stages(program.body)]
    return [*program.inputs, *program.outputs, *stored]


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
