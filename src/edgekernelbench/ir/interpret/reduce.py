"""Reductions over the leading dimensions of a grid, in pieces of bounded size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret.contract import Contraction
from edgekernelbench.ir.interpret.fold import Fold
from edgekernelbench.ir.interpret.frame import Frame, GridVar, Value, lift
from edgekernelbench.ir.interpret.loads import Fn


@dataclass(frozen=True, slots=True)
class AxisPlan:
    """A reduction axis. ``lo`` and ``hi`` are None for the constant range 0..extent-1."""

    var: GridVar
    lo: Fn | None
    hi: Fn | None


@dataclass(frozen=True, slots=True)
class Reducer:
    """Evaluates one `core.Reduce`; call it with a frame.

    Attributes:
        key: finds a result that was evaluated ahead (`Frame.memo`).
        ndim: grid dimensions outside the reduction.
        outer: grid variables outside that the reduction depends on.
        groups: sets of grid variables whose extents multiply to the size of a temporary, each
            with the size allowed; the reduction axes are split to stay below.
        fold: the combiner, with the number of the component wanted; the body is a tuple then.
    """

    key: int
    op: core.ReduceOp
    axes: tuple[AxisPlan, ...]
    where: Fn | None
    body: Fn
    contraction: Contraction | None
    ndim: int
    outer: tuple[GridVar, ...]
    groups: tuple[tuple[tuple[GridVar, ...], int], ...]
    dtype: np.dtype
    empty: Any
    fold: tuple[Fold, int] | None = None

    def __call__(self, frame: Frame) -> Value:
        if frame.memo and self.key in frame.memo:
            return self._ahead(frame)
        ranges = self._ranges(frame)
        if ranges is None:
            return self.empty
        total = None
        for piece in self._pieces(frame, ranges):
            frame.tick()
            self._bind(frame, piece)
            part = self._part(frame)
            if part is not None:
                total = part if total is None else self._merged(frame, total, part)
        if total is None:
            return self.empty
        if self.fold is not None:
            return total[self.fold[1]]
        return total[1] if isinstance(total, tuple) else total

    def _merged(self, frame: Frame, total: Any, part: Any) -> Any:
        if self.fold is not None:
            return self.fold[0].combine(frame, total, part)
        merge = _merge_argument if self.op in ("argmax", "argmin") else _merge
        return merge(self.op, total, part)

    def _ahead(self, frame: Frame) -> Value:
        """The lanes of a result evaluated ahead for the whole stage."""
        value, base = frame.memo[self.key]
        picks = [slice(None)] * value.ndim
        for var in self.outer:
            first = frame.start[var.slot] - base[var.slot]
            picks[value.ndim - 1 - var.place] = slice(first, first + frame.count[var.slot])
        return value[tuple(picks)]

    # ------------------------------------------------------------ ranges and pieces
    def _ranges(self, frame: Frame) -> list[tuple[int, int]] | None:
        """The box around all lanes' ranges; None when it is empty."""
        ranges = []
        for axis in self.axes:
            if axis.lo is None or axis.hi is None:
                low, high = 0, axis.var.extent
            else:
                # A lane that does not count may have any bounds: keep within the declared box.
                low = max(int(np.min(axis.lo(frame))), 0)
                high = min(int(np.max(axis.hi(frame))), axis.var.extent)
            if low >= high:
                return None
            ranges.append((low, high))
            self._bind_axis(frame, axis, low, high)
        return ranges

    def _pieces(
        self, frame: Frame, ranges: list[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], ...]]:
        lengths = [high - low for low, high in ranges]
        place = {axis.var.slot: k for k, axis in enumerate(self.axes)}
        for group, cap in self.groups:
            size = 1
            for var in group:
                k = place.get(var.slot)
                size *= frame.count[var.slot] if k is None else lengths[k]
            for var in group:
                k = place.get(var.slot)
                while k is not None and size > cap and lengths[k] > 1:
                    size = size // lengths[k]
                    lengths[k] = (lengths[k] + 1) // 2
                    size *= lengths[k]
        cuts = [
            [(at, min(at + length, high)) for at in range(low, high, length)]
            for (low, high), length in zip(ranges, lengths, strict=True)
        ]
        return itertools.product(*cuts)

    def _bind(self, frame: Frame, piece: Sequence[tuple[int, int]]) -> None:
        for axis, (low, high) in zip(self.axes, piece, strict=True):
            self._bind_axis(frame, axis, low, high)

    @staticmethod
    def _bind_axis(frame: Frame, axis: AxisPlan, low: int, high: int) -> None:
        slot = axis.var.slot
        bound = frame.vals[slot] is not None
        if not bound or frame.start[slot] != low or frame.count[slot] != high - low:
            axis.var.bind(frame, low, high)

    def _mask(self, frame: Frame) -> Value:
        """Which lanes of the piece take part: None for all."""
        mask: Value = None
        outside = frame.guard
        for axis in self.axes:
            if axis.lo is None or axis.hi is None:
                continue
            low, high = axis.lo(frame), axis.hi(frame)
            if isinstance(low, np.ndarray) or isinstance(high, np.ndarray):
                at = frame.vals[axis.var.slot]
                inside = (at >= low) & (at < high)
                mask = inside if mask is None else mask & inside
        if self.where is not None:
            if mask is not None:
                frame.guard = (mask, True, outside)
            kept = self.where(frame)
            frame.guard = outside
            mask = kept if mask is None else mask & kept
        return mask

    # ------------------------------------------------------------ one piece
    def _part(self, frame: Frame) -> Any:
        """The reduction of the bound piece; None when no lane takes part."""
        mask = self._mask(frame)
        outside = frame.guard
        if mask is not None:
            if not mask.any():
                return None
            if mask.all():
                mask = None
            else:
                mask = lift(mask, self.ndim + len(self.axes))
                frame.guard = (mask, True, outside)
        result = self._reduce(frame, mask)
        frame.guard = outside
        return result

    def _reduce(self, frame: Frame, mask: np.ndarray | None) -> Any:
        counts = tuple(frame.count[axis.var.slot] for axis in self.axes)
        if self.contraction is not None:
            result = self.contraction.part(frame, mask, counts)
            if result is not None:
                return result if self.ndim else result[()]
        if self.fold is not None:
            items = [lift(item, self.ndim + len(counts)) for item in self.body(frame)]
            made = self.fold[0].all(frame, items, mask, counts)
            return made if self.ndim else tuple(value[()] for value in made)
        body = lift(self.body(frame), self.ndim + len(counts))
        body = np.broadcast_to(body, counts + body.shape[len(counts) :])
        if self.op in ("argmax", "argmin"):
            return self._argument(frame, body, mask, counts)
        if mask is not None:
            body = np.where(mask, body, self.empty)
        axes = tuple(range(len(counts)))
        if self.op in ("sum", "prod") and self.dtype == np.float16:
            return _each_rounded(_UFUNCS[self.op], body, len(counts))
        if self.op in ("sum", "prod"):
            return _UFUNCS[self.op].reduce(body, axis=axes, dtype=self.dtype)
        return _UFUNCS[self.op].reduce(body, axis=axes)

    def _argument(
        self, frame: Frame, body: np.ndarray, mask: np.ndarray | None, counts: tuple[int, ...]
    ) -> tuple[Value, Value, Value]:
        """Best value, its flat position, and whether any lane took part."""
        if self.op == "argmin":
            worst, best_of = _highest(body.dtype), np.fmin
        else:
            worst, best_of = _lowest(body.dtype), np.fmax
        taken = np.broadcast_to(True if mask is None else mask, np.broadcast_shapes(
            body.shape, () if mask is None else mask.shape))  # fmt: skip
        lanes = np.where(taken, body, worst)
        outer = lanes.shape[len(counts) :]
        flat, kept = lanes.reshape((-1, *outer)), taken.reshape((-1, *outer))
        best = best_of.reduce(flat, axis=0)
        hit = (flat == best) & kept
        hit = np.where(hit.any(axis=0), hit, kept)  # all NaN: the first that takes part
        at = np.unravel_index(hit.argmax(axis=0), counts)
        position: Value = 0
        for axis, where in zip(self.axes, at, strict=True):
            position = position * axis.var.extent + (where + frame.start[axis.var.slot])
        found = kept.any(axis=0)
        position = np.where(found, position, -1).astype(self.dtype)
        return best, position if self.ndim else position[()], found


_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "any": np.logical_or, "all": np.logical_and,
}  # fmt: skip


def _each_rounded(ufunc: np.ufunc, body: np.ndarray, leading: int) -> np.ndarray:
    """The reduction over the leading dimensions with every step rounded to f16.

    NumPy's own reductions of f16 keep their running value in f32.
    """
    flat = body.reshape((-1, *body.shape[leading:]))
    return ufunc.accumulate(flat, axis=0)[-1]


def _merge(op: str, total: Value, part: Value) -> Value:
    return _UFUNCS[op](total, part)


def _merge_argument(op: str, total: Any, part: Any) -> Any:
    value, at, found = part
    old, old_at, old_found = total
    better = value < old if op == "argmin" else value > old
    better = better | (np.isnan(old) & ~np.isnan(value)) | ((value == old) & (at < old_at))
    take = found & (~old_found | better)
    return (
        np.where(take, value, old),
        np.where(take, at, old_at).astype(old_at.dtype)[()],
        found | old_found,
    )


def _lowest(dtype: np.dtype) -> Any:
    return _extreme(dtype, lowest=True)


def _highest(dtype: np.dtype) -> Any:
    return _extreme(dtype, lowest=False)


def _extreme(dtype: np.dtype, lowest: bool) -> Any:
    if dtype.kind == "f":
        return dtype.type(-np.inf if lowest else np.inf)
    if dtype.kind == "b":
        return np.bool_(not lowest)
    info = np.iinfo(dtype)
    return dtype.type(info.min if lowest else info.max)
