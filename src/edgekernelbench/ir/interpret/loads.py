"""Reads of tensors: strided views where the indices are affine, gathers elsewhere.

Out-of-range reads are an error in lanes that count, and read a border element in lanes that do
not (the untaken branch of a `Select`, elements a ``where`` skips).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgekernelbench.ir.interpret.frame import Frame, InterpretError, Value, any_active

Fn = Callable[[Frame], Value]


@dataclass(frozen=True, slots=True)
class Term:
    """``coefficient * variable`` of an affine index; place None for a scalar variable."""

    slot: int
    coefficient: int
    place: int | None


@dataclass(frozen=True, slots=True)
class Dim:
    """How one dimension is indexed: ``const + terms``, or by the value of ``index``.

    ``origin`` is the slot of an ``each`` index in whose private storage this dimension lies:
    the origin of that storage is taken off.
    """

    const: int
    terms: tuple[Term, ...]
    index: Fn | None = None
    origin: int | None = None

    def base(self, frame: Frame) -> int:
        return self.const if self.origin is None else self.const - frame.origin[self.origin]

    def bounds(self, frame: Frame) -> tuple[int, int]:
        """Lowest and highest index over the lanes, both reached (affine dimensions only)."""
        low = high = self.base(frame)
        for term in self.terms:
            first = term.coefficient * frame.start[term.slot]
            last = first + term.coefficient * (frame.count[term.slot] - 1)
            low += min(first, last)
            high += max(first, last)
        return low, high

    def value(self, frame: Frame) -> Value:
        """The index of every lane, as intp."""
        if self.index is not None:
            return self.index(frame).astype(np.intp)
        total: Value = np.intp(self.base(frame))
        for term in self.terms:
            values = frame.vals[term.slot]
            total = total + values.astype(np.intp) * term.coefficient
        return total


def make_load(
    name: str,
    store: int,
    shape: tuple[int, ...],
    dims: Sequence[Dim],
    ndim: int,
    convert: Callable[[Value], Value] | None,
) -> Fn:
    """The closure that reads ``name``.

    Args:
        store: number of the tensor's storage; ``shape`` is that of the storage.
        ndim: dimensions of the grid at this place.
        convert: the widening of a load, None for none.
    """
    reader = _Reader(name, store, shape, tuple(dims), ndim)
    if all(dim.index is None for dim in dims):
        vector = any(term.place is not None for dim in dims for term in dim.terms)
        read = reader.view if vector else reader.scalar
    else:
        read = reader.gather
    if convert is None:
        return read
    return lambda frame: convert(read(frame))


class _Reader:
    __slots__ = ("dims", "name", "ndim", "shape", "steps", "store")

    def __init__(
        self, name: str, store: int, shape: tuple[int, ...], dims: tuple[Dim, ...], ndim: int
    ) -> None:
        self.name = name
        self.store = store
        self.shape = shape
        self.dims = dims
        self.ndim = ndim
        self.steps = _element_steps(shape)

    def scalar(self, frame: Frame) -> Value:
        """One element: no index varies over the grid."""
        offset = 0
        for axis, dim in enumerate(self.dims):
            at = dim.base(frame)
            for term in dim.terms:
                at += term.coefficient * frame.start[term.slot]
            if not 0 <= at < self.shape[axis]:
                at = self._clamped(frame, axis, np.intp(at))
            offset += at * self.steps[axis]
        return frame.flat[self.store][offset]

    def view(self, frame: Frame) -> Value:
        """All lanes at once as a strided view of the storage."""
        ranges = [dim.bounds(frame) for dim in self.dims]
        array = frame.store[self.store]
        inside = all(
            low >= 0 and high < extent
            for (low, high), extent in zip(ranges, self.shape, strict=True)
        )
        if inside:
            return self._window(frame, array, [0] * len(ranges))
        return self._border(frame, array, ranges)

    def _window(self, frame: Frame, array: np.ndarray, shift: list[int]) -> np.ndarray:
        """The view of ``array``, in which index ``shift[d]`` of the tensor lies at 0."""
        offset = 0
        shape = [1] * self.ndim
        strides = [0] * self.ndim
        for dim, low, stride in zip(self.dims, shift, array.strides, strict=True):
            at = dim.base(frame) - low
            for term in dim.terms:
                at += term.coefficient * frame.start[term.slot]
                if term.place is not None:
                    where = self.ndim - 1 - term.place
                    shape[where] = frame.count[term.slot]
                    strides[where] += term.coefficient * stride
            offset += at * stride
        return np.ndarray(shape, array.dtype, array, offset, strides)

    def _border(self, frame: Frame, array: np.ndarray, ranges: list[tuple[int, int]]) -> np.ndarray:
        """A view of a copy whose border is replicated; lanes outside must not count."""
        size = lanes = 1
        for axis, (low, high) in enumerate(ranges):
            size *= high - low + 1
            if low < 0 or high >= self.shape[axis]:
                self._clamped(frame, axis, self.dims[axis].value(frame))
        for term in {term for dim in self.dims for term in dim.terms}:
            lanes *= frame.count[term.slot]
        if size > 4 * lanes + 4096:
            return self.gather(frame)
        for axis, (low, high) in enumerate(ranges):
            if low >= 0 and high < self.shape[axis]:
                array = array[(slice(None),) * axis + (slice(low, high + 1),)]
            else:
                picks = np.clip(np.arange(low, high + 1), 0, self.shape[axis] - 1)
                array = array.take(picks, axis=axis)
        return self._window(frame, np.ascontiguousarray(array), [low for low, _ in ranges])

    def gather(self, frame: Frame) -> Value:
        """Any indices."""
        offset: Value = 0
        for axis, dim in enumerate(self.dims):
            at = dim.value(frame)
            if at.min() < 0 or at.max() >= self.shape[axis]:
                at = self._clamped(frame, axis, at)
            offset = offset + at * self.steps[axis]
        return frame.flat[self.store].take(offset)

    def _clamped(self, frame: Frame, axis: int, at: Value) -> Value:
        last = self.shape[axis] - 1
        outside = (at < 0) | (at > last)
        if any_active(frame.guard, outside):
            worst = int(at.min()) if at.min() < 0 else int(at.max())
            raise InterpretError(
                f"stage '{frame.stage}' reads '{self.name}' out of range: index {worst} of "
                f"dimension {axis}, whose extent is {last + 1}"
            )
        return np.clip(at, 0, last)


def _element_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return tuple(steps)
