"""Rescaling of integer accumulators and draws of quantisation parameters, shared by families."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator, integers
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array

ZERO_POINT = integers("-10", "11")
BIAS = integers("-4096", "4097")

S8_DEVIATION = 256 / np.sqrt(12)
"""Standard deviation of full-range s8."""


def requant(acc: Array, scale: Array, zero_point: Array) -> Array:
    """To s8: scale by channel, round half to even, shift, saturate."""
    return np.clip(np.rint(acc * scale) + zero_point, -128, 127).astype(np.int64)


def requant_scales(terms: str, spread: float = 40.0) -> Generator:
    """Scales that bring sums of ``terms`` products of full-range s8 to that standard deviation."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        deviation = S8_DEVIATION**2 * np.sqrt(draw.size(terms))
        return spread / deviation * 2 ** draw.rng(spec.name).uniform(-1, 1, spec.shape)

    return generate


def scales(level: float, fan_in: str = "1", spread: float = 1.0) -> Generator:
    """Positive scales around ``level / sqrt(fan_in)``, up to ``2**spread`` times off."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        middle = level / np.sqrt(draw.size(fan_in))
        return middle * 2 ** draw.rng(spec.name).uniform(-spread, spread, spec.shape)

    return generate


def normal_s8(deviation: float) -> Generator:
    """Normal s8 numbers, for outputs that would saturate under full-range ones."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        values = np.rint(deviation * draw.rng(spec.name).standard_normal(spec.shape))
        return np.clip(values, -128, 127).astype(np.int64)

    return generate
