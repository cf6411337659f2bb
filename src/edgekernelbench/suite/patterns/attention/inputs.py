"""Queries and keys, drawn so that some rows of scores lie where a bare ``exp`` fails.

Keys share their last component, nearly; in a few queries that component is large, which lifts or
lowers all scores of the query alike. They overflow or vanish under ``exp`` unless the maximum is
taken off first. An offset costs scores some digits, so that right kernels stay within the
tolerance only because the component is the last, which a sum in order meets once, and because
such a query prefers no key by much, and because averages of values do not vanish.
"""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, Generator, activations, weights
from edgekernelbench.suite.model import TensorSpec


def score_offset(draw: Draw) -> float:
    """Beyond the range of ``exp`` in the workload's float; small enough to keep differences."""
    return 14.0 if draw.workload.float_dtype is DType.F16 else 96.0


BEYOND_EXP = 112.0
"""An offset at which ``exp`` overflows in float32 or vanishes, without a denormal left."""


def lifted(generator: Generator, every: int = 8) -> Generator:
    """Rows of scores over the last axis; one row in ``every`` is lifted or lowered as a whole.

    So far that ``exp`` fails in float32 even where scores are float16, as their sums are float32.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rows = np.sign(row_offsets(draw, spec.name, spec.shape[:-1], every))
        return generator(draw, spec) + BEYOND_EXP * rows[..., None]

    return generate


def keys(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Keys [..., D] whose last component is nearly 1."""
    drawn = activations(1.0, spread=0.4)(draw, spec)
    drawn[..., -1] = 1 + 0.25 * drawn[..., -1] / score_offset(draw)
    return drawn


def positions(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Keys of positions [..., D] with next to no last component, to which queries add bias."""
    drawn = weights("4")(draw, spec)
    drawn[..., -1] *= 0.25 / score_offset(draw)
    return drawn


def queries(scale: float = 1.0, shared: float = 1.0) -> Generator:
    """Queries [..., D], one in eight with a last component that decides its scores' offset.

    Args:
        scale: of the queries.
        shared: last component of the keys.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        drawn = activations(scale, spread=0.4)(draw, spec)
        rows = row_offsets(draw, spec.name, spec.shape[:-1], 8)
        drawn[rows != 0] /= 4
        drawn[..., -1] += rows / (draw.sizes["scale"] * shared)
        return drawn

    return generate


def values(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Values [..., K, D] around a mean of each component, which stays when rows average them."""
    rng = draw.rng(spec.name).spawn(1)[0]
    shape = (*spec.shape[:-2], 1, spec.shape[-1])
    means = rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.5, shape)
    return activations(1.0, spread=0.4)(draw, spec) + means


def row_offsets(draw: Draw, name: str, shape: tuple[int, ...], every: int) -> np.ndarray:
    """Offsets of either sign for one row in ``every``, at least one; zero for the others."""
    rng = draw.rng(name).spawn(1)[0]  # apart from the stream of the values themselves
    chosen = rng.permutation(int(np.prod(shape))).reshape(shape) % every == 0
    return chosen * rng.choice([-1.0, 1.0], shape) * score_offset(draw)
