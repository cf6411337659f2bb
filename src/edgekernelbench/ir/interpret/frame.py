"""What an expression sees while it is evaluated: variables, storage, and which lanes count."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np

# A NumPy scalar, or an array with one dimension per grid variable (leading ones may be absent).
Value = Any

# Lanes in which the code runs: innermost mask, whether it must hold or must not, enclosing ones.
Guard = tuple[np.ndarray, bool, "Guard"] | None


class InterpretError(ValueError):
    """A program or its inputs cannot be interpreted. The message is one line for the author."""


class Frame:
    """Mutable state of one run.

    A *slot* numbers a variable, a *store* numbers a tensor. A grid variable (axis, reduction
    axis, vectorised ``each`` index) currently covers ``count`` values from ``start`` on; a scalar
    one (``seq`` index) has count 1.

    Attributes:
        vals: value of each slot: an arange along its own dimension, a scalar, or a let's value.
        start: first value of each grid variable, the value of a scalar one.
        count: number of values of each grid variable.
        origin: value of a vectorised ``each`` index that its private storage starts at.
        store: the array behind each tensor, C-contiguous; None while it is not needed.
        flat: the same arrays with one dimension.
        memo: results of reductions evaluated ahead of a stage, with the stage's start values.
        stage: name of the stage being computed, for messages.
        deadline: when the run must have ended, by `time.monotonic`; infinite for no limit.
    """

    __slots__ = (
        "count",
        "deadline",
        "flat",
        "guard",
        "memo",
        "origin",
        "stage",
        "start",
        "store",
        "vals",
    )

    def __init__(self, slots: int, stores: int) -> None:
        self.vals: list[Value] = [None] * slots
        self.start = [0] * slots
        self.count = [1] * slots
        self.origin = [0] * slots
        self.store: list[Any] = [None] * stores
        self.flat: list[Any] = [None] * stores
        self.guard: Guard = None
        self.memo: dict[int, Value] = {}
        self.stage = ""
        self.deadline = float("inf")

    def tick(self) -> None:
        """Called once per iteration and per piece: ends a run that takes too long."""
        if monotonic() > self.deadline:
            raise InterpretError(f"the time limit ran out{self._place()}")

    def _place(self) -> str:
        return f", in stage '{self.stage}'" if self.stage else ""

    def keep(self, store: int, array: np.ndarray | None) -> None:
        """Makes ``array`` (C-contiguous) the storage of a tensor; None gives it back."""
        self.store[store] = array
        self.flat[store] = None if array is None else array.reshape(-1)


def any_active(guard: Guard, lanes: Value) -> bool:
    """Whether any of ``lanes`` (a bool array or scalar) is one the code really runs in."""
    while True:
        if not np.any(lanes):
            return False
        if guard is None:
            return True
        mask, positive, guard = guard
        lanes = lanes & (mask if positive else ~mask)


def lift(value: Value, ndim: int) -> np.ndarray:
    """``value`` as an array with ``ndim`` dimensions: missing leading ones become extent 1."""
    array = np.asarray(value)
    missing = ndim - array.ndim
    return array.reshape((1,) * missing + array.shape) if missing else array


class GridVar:
    """A variable that spans a dimension of the grid, ``place`` counted from the right."""

    __slots__ = ("_base", "dtype", "extent", "place", "slot")

    def __init__(self, slot: int, place: int, extent: int, dtype: np.dtype) -> None:
        self.slot = slot
        self.place = place
        self.extent = extent
        self.dtype = dtype
        self._base: np.ndarray | None = None

    def bind(self, frame: Frame, lo: int, hi: int) -> None:
        """Lets the variable cover lo..hi-1."""
        if lo < 0 or hi > self.extent:
            values = np.arange(lo, hi, dtype=self.dtype).reshape((-1,) + (1,) * self.place)
        else:
            if self._base is None:
                whole = np.arange(self.extent, dtype=self.dtype)
                self._base = whole.reshape((-1,) + (1,) * self.place)
            values = self._base[lo:hi]
        frame.vals[self.slot] = values
        frame.start[self.slot] = lo
        frame.count[self.slot] = hi - lo
