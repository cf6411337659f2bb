"""Generators of inputs that reach where careless kernels fail: shared by several families."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from edgekernelbench.ir.dtypes import DType
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
        moved = some_slices(rng, tuple(slices), share)
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


def some_slices(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> np.ndarray:
    """True for a share of the slices, and for at least one."""
    chosen = rng.random(shape) < share
    chosen.reshape(-1)[rng.integers(chosen.size)] = True
    return chosen


def faint_levels(
    draw: Draw, name: str, shape: tuple[int, ...], eps: float, share: float = 0.125
) -> np.ndarray:
    """Root mean squares for a share of the slices of an input, and at least one; else 0.

    Their squares are up to 16 times ``eps``, so that it counts, and by far. All are 0 where
    numbers so small are beyond the precision of the input's type.
    """
    rng = draw.rng(name).spawn(1)[0]  # apart from the stream of the values themselves
    levels = np.sqrt(eps) * 2.0 ** rng.uniform(0, 2, shape)
    chosen = some_slices(rng, shape, share)
    return levels * chosen if within_reach(draw.spec(name).dtype, np.sqrt(eps)) else 0 * levels


def within_reach(dtype: DType, level: float) -> bool:
    """Whether numbers of that size have all the digits of the type."""
    return bool(level > 8 * np.finfo(dtype.numpy).smallest_normal)


def with_faint_slices(
    generator: Generator, axes: tuple[int, ...], eps: float | None = None, share: float = 0.125
) -> Generator:
    """What ``generator`` draws, a share of the slices over ``axes`` turned down to where ``eps``
    counts; see `faint_levels`.

    For normalisations: beside variances near 1 nobody would miss it.

    Args:
        eps: what is added to the variance; the workload's attribute if left out.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        values = np.array(generator(draw, spec), np.float64)
        slices = tuple(1 if i in axes else extent for i, extent in enumerate(spec.shape))
        added = float(draw.sizes["eps"]) if eps is None else eps
        levels = faint_levels(draw, spec.name, slices, added, share)
        size = np.sqrt((values**2).mean(axis=axes, keepdims=True))
        return values * np.where(levels > 0, levels / size, 1)

    return generate


def batch_statistics(
    eps: float | None = None, gain: float = 1.0, spread: float = 0.2
) -> Callable[[Draw], Mapping[str, np.ndarray]]:
    """``var`` between 0.5 and 1.5, but in a share of the channels so small that ``eps`` counts.

    There ``gamma``, else around ``gain``, is as small, so that outputs stay as they are.

    Args:
        eps: what is added to ``var``; the workload's attribute if left out.
    """

    def generate(draw: Draw) -> dict[str, np.ndarray]:
        channels = draw.shape("var")
        var = draw.rng("var").uniform(0.5, 1.5, channels)
        gamma = gain + spread * draw.rng("gamma").standard_normal(channels)
        added = float(draw.sizes["eps"]) if eps is None else eps
        if not within_reach(draw.spec("var").dtype, added):
            return {"var": var, "gamma": gamma}
        level = faint_levels(draw, "var", channels, added)
        faint = level > 0
        return {
            "var": np.where(faint, level**2, var),
            "gamma": gamma * np.where(faint, np.sqrt(level**2 + added), 1),
        }

    return generate
