"""Reductions by a combiner: elements are brought together in pairs, whole arrays at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgekernelbench.ir.interpret.frame import Frame, Value
from edgekernelbench.ir.interpret.loads import Fn

Tuple = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A compiled combiner.

    Attributes:
        left, right: slots of the components of the two partial results.
        lets: slot and value, in order.
        init: the components of an empty reduction.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    lets: tuple[tuple[int, Fn], ...]
    results: tuple[Fn, ...]
    init: Tuple

    def combine(self, frame: Frame, a: Tuple, b: Tuple) -> Tuple:
        """One step, for all lanes of the arrays."""
        outside, frame.guard = frame.guard, None  # no lane of it is left out
        for slot, value in zip((*self.left, *self.right), (*a, *b), strict=True):
            frame.vals[slot] = value
        for slot, fn in self.lets:
            frame.vals[slot] = fn(frame)
        out = tuple(fn(frame) for fn in self.results)
        frame.guard = outside
        return out

    def all(
        self,
        frame: Frame,
        items: Sequence[np.ndarray],
        mask: np.ndarray | None,
        counts: tuple[int, ...],
    ) -> Tuple:
        """The elements of a piece brought together; the reduced dimensions are dropped.

        Args:
            items: the components of the elements. All arrays have equally many dimensions, of
                which those reduced lead (with extent 1 where nothing varies along them).
        """
        shapes = [item.shape for item in items] + ([] if mask is None else [mask.shape])
        rest = np.broadcast_shapes(*(shape[len(counts) :] for shape in shapes))
        arrays = []
        for item, start in zip(items, self.init, strict=True):
            kept = item if mask is None else np.where(mask, item, start)
            arrays.append(np.broadcast_to(kept, counts + rest).reshape((-1, *rest)))
        while arrays[0].shape[0] > 1:
            arrays = self._halved(frame, arrays, rest)
        return tuple(array[0] for array in arrays)

    def _halved(
        self, frame: Frame, arrays: list[np.ndarray], rest: tuple[int, ...]
    ) -> list[np.ndarray]:
        half, odd = divmod(arrays[0].shape[0], 2)
        left = tuple(array[0 : 2 * half : 2] for array in arrays)
        right = tuple(array[1 : 2 * half : 2] for array in arrays)
        frame.tick()
        out = []
        for made, old in zip(self.combine(frame, left, right), arrays, strict=True):
            whole = np.broadcast_to(made, (half, *rest))
            out.append(np.concatenate((whole, old[-1:])) if odd else whole)
        return out
