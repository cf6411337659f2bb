"""What a search needs of the place where its candidates are built and timed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgekernelbench.compilers.tvm.tuning.forked import Outcome

Interface = tuple[tuple[str, tuple[int, ...]], ...]
"""Dtype and shape of each argument."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How a search goes about a batch.

    Attributes:
        rules: TVM's name of the schedule rules.
        population: candidates that the evolution works with.
        generations: how often it changes them.
        draws: of that many random candidates each, until half of them are fit to be tried.
    """

    rules: str
    population: int
    generations: int
    draws: int


class Bench(Protocol):
    """Builds and runs modules with one function ``main``, whatever they run on."""

    @property
    def target(self) -> Any:
        """TVM's target of the candidates."""
        ...

    @property
    def threads(self) -> int:
        """That a search may use while nothing of it is timed."""
        ...

    @property
    def effort(self) -> Effort: ...

    def measure(self, modules: Sequence[Any], best_us: float | None) -> list[Outcome]:
        """Microseconds of one call of each scheduled module, or why there are none.

        Args:
            best_us: of those measured before; what is far slower is measured only roughly.
        """
        ...

    def in_turn(self, modules: Sequence[Any], folder: Path) -> list[float] | None:
        """The same for all of them, timed in turn in one process; None where one fails.

        Args:
            folder: for what is built.
        """
        ...

    def unscheduled(self, module: Any, file: Path) -> Outcome:
        """Keeps (`numpy.savez`) all arguments after a call of the module as it is."""
        ...

    def scheduled(self, module: Any, file: Path) -> Outcome:
        """The same for a scheduled one, given the same arguments."""
        ...


def interface_of(module: Any) -> Interface:
    """Of the function ``main``."""
    buffers = module["main"].params
    return tuple((str(b.dtype), tuple(int(n) for n in b.shape)) for b in buffers)


def drawn(interface: Interface) -> list[np.ndarray]:
    """Arguments for a call: ordinary numbers, the same for the same interface."""
    rng = np.random.default_rng(0)
    return [_filled(dtype, shape, rng) for dtype, shape in interface]


def _filled(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Wide integers may be indices, so they are small enough for any axis."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values: Any = rng.random(shape, dtype=np.float32) * 2 - 1
    elif kind.kind == "b" or kind.itemsize > 1:
        values = rng.integers(0, 2, shape)
    else:
        bounds = np.iinfo(kind)
        values = rng.integers(bounds.min, bounds.max + 1, max(1, math.prod(shape))).reshape(shape)
    return np.asarray(values).astype(kind)
