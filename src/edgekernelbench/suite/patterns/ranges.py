"""Generators of inputs that reach where careless kernels fail: shared by several families."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator
from edgekernelbench.suite.model import TensorSpec


def with_means(generator: Generator, axes: tuple[int, ...], spread: float = 1.0) -> Generator:
    """What ``generator`` draws, each slice over ``axes`` moved by a normal number of its own.

    For statistics: around zero, a kernel that forgets to centre would hardly be off.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        values = generator(draw, spec)
        slices = [1 if axis in axes else extent for axis, extent in enumerate(spec.shape)]
        return values + spread * draw.rng(spec.name).standard_normal(slices)

    return generate


def with_far_slices(
    generator: Generator, axis: int, limit: float = 120.0, share: float = 0.125
) -> Generator:
    """What ``generator`` draws, a share of the slices along ``axis``, and at least one, moved by
    ``limit`` up or down.

    For softmax and its kin: without subtraction of the maximum, exp overflows in such a slice or
    every term of the sum vanishes.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        values = generator(draw, spec)
        slices = [1 if i == axis else extent for i, extent in enumerate(spec.shape)]
        rng = draw.rng(spec.name)
        moved = rng.random(slices) < share
        moved.reshape(-1)[rng.integers(moved.size)] = True
        return values + np.where(moved, rng.choice([-limit, limit], slices), 0.0)

    return generate


def with_outliers(generator: Generator, limit: float = 100.0, every: int = 499) -> Generator:
    """What ``generator`` draws, one element in so many uniform between ``-limit`` and ``limit``.

    For exponentials: their range must be reduced, or the stable form chosen.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        values = np.array(generator(draw, spec), np.float64).reshape(-1)
        far = values[every // 2 :: every]
        far[:] = draw.rng(spec.name).uniform(-limit, limit, far.shape)
        return values.reshape(spec.shape)

    return generate
