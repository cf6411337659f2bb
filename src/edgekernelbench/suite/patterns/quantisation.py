"""Rescaling of integer accumulators, shared by the quantised references."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array


def requant(acc: Array, scale: Array, zero_point: Array) -> Array:
    """To s8: scale by channel, round half to even, shift, saturate."""
    return np.clip(np.rint(acc * scale) + zero_point, -128, 127).astype(np.int64)


def requant_scales(terms: str, spread: float = 40.0) -> Generator:
    """Scales that bring sums of ``terms`` products of full-range s8 to that standard deviation."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        uniform_s8 = 256 / np.sqrt(12)
        deviation = uniform_s8**2 * np.sqrt(draw.size(terms))
        return spread / deviation * 2 ** draw.rng(spec.name).uniform(-1, 1, spec.shape)

    return generate
