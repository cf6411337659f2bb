"""Random images that filters and detectors find something in."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator
from edgekernelbench.suite.model import TensorSpec


def smooth(rng: np.random.Generator, H: int, W: int, radius: int = 2) -> np.ndarray:
    """Noise averaged over windows of 2 * radius + 1 pixels a side: zero mean, unit deviation."""
    side = 2 * radius + 1
    noise = rng.standard_normal((H + side - 1, W + side - 1))
    rows = np.sum([noise[r : r + H] for r in range(side)], axis=0)
    both = np.sum([rows[:, s : s + W] for s in range(side)], axis=0)
    return (both - both.mean()) / both.std()


def grey_levels(mean: float, deviation: float, radius: int = 2) -> Generator:
    """A smooth u8 image with a little noise."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        H, W = spec.shape
        levels = mean + deviation * smooth(rng, H, W, radius)
        return np.clip(np.rint(levels + 3 * rng.standard_normal(spec.shape)), 0, 255).astype(int)

    return generate


def sparse_levels(share: float) -> Generator:
    """A u8 image that is 0 but for a share of the pixels, which are uniform from 1."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        marked = rng.random(spec.shape) < share
        return np.where(marked, rng.integers(1, 256, spec.shape), 0)

    return generate


def unit_range(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Uniform from 0 to 1, both ends included and met now and then."""
    rng = draw.rng(spec.name)
    values = rng.uniform(0, 1, spec.shape)
    ends = rng.integers(0, 256, spec.shape)
    return np.where(ends < 2, ends, values)
