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


def layer_with_ties(
    draw: Draw,
    names: tuple[str, str, str],
    terms: str,
    spread: float = 40.0,
    axis: int = 0,
) -> dict[str, np.ndarray]:
    """Weights, biases and scales of a layer of which every third channel ends in ties.

    Sums of full-range numbers hardly ever lie half-way between two steps, and a kernel could round
    halves as it likes. Such a channel has one weight that is not zero, which the scale undoes,
    and a bias of half a step over: all its outputs lie half-way, exactly so in float32.

    Args:
        names: of weights, biases and scales.
        terms, spread: see `requant_scales`.
        axis: of the channels in the weights.
    """
    weights, bias, scale = (draw.spec(name) for name in names)
    steps = requant_scales(terms, spread)(draw, scale)
    biases = BIAS(draw, bias)
    rows = np.moveaxis(integers("-128", "128")(draw, weights), axis, 0)
    flat = rows.reshape(len(rows), -1)

    rng = draw.rng(weights.name).spawn(1)[0]
    tied = rng.permutation(len(rows)) % 3 == 0
    count = int(tied.sum())
    flat[tied] = 0
    flat[tied, rng.integers(flat.shape[1], size=count)] = 64 * rng.choice([-1, 1], count)
    biases[tied] = 64 * rng.integers(-32, 32, count) + 32
    steps[tied] = 1 / 64
    restored = np.moveaxis(flat.reshape(rows.shape), 0, axis)
    return {weights.name: restored, bias.name: biases, scale.name: steps}


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
