"""Smooth inputs and bilinear samples, shared by resizing and warping."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array


def smooth(rng: np.random.Generator, shape: tuple[int, ...], axes: tuple[int, int]) -> np.ndarray:
    """Noise of standard deviation 1, blurred over two axes by up to 9 pixels.

    Sampling positions computed in float32 are off by some 1e-5 of a pixel. Between pixels of
    white noise that is an error beyond the tolerance; between those of an image it is none.
    """
    values = rng.standard_normal(shape, dtype=np.float32)
    for axis in axes * 2:
        radius = min(4, shape[axis] // 8)
        steps = range(-radius, radius + 1)
        values = np.add.reduce([np.roll(values, step, axis) for step in steps])
    return values / values.std()


def images(axes: tuple[int, int]) -> Generator:
    """Smooth float images; channels, on the remaining axis, differ in scale and offset."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        channels = [extent if axis not in axes else 1 for axis, extent in enumerate(spec.shape)]
        scale = 2 ** rng.uniform(-1.5, 1.5, channels)
        offset = rng.uniform(2, 3, channels) * rng.choice([-1, 1], channels)
        return scale * (smooth(rng, spec.shape, axes) + offset)

    return generate


def images_u8(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Smooth images of bytes, [H,W,C]."""
    values = 128 + 50 * smooth(draw.rng(spec.name), spec.shape, (0, 1))
    return np.clip(np.rint(values), 0, 255).astype(np.int64)


def bilinear(x: Array, sy: Array, sx: Array) -> Array:
    """x[..., H, W] at positions of any shape; pixels outside are zero."""
    H, W = x.shape[-2:]
    y0, x0 = np.floor(sy).astype(np.int64), np.floor(sx).astype(np.int64)
    fy, fx = sy - y0, sx - x0

    def pixel(i: Array, j: Array) -> Array:
        inside = (i >= 0) & (i < H) & (j >= 0) & (j < W)
        return np.where(inside, x[..., i.clip(0, H - 1), j.clip(0, W - 1)], 0)

    top = (1 - fx) * pixel(y0, x0) + fx * pixel(y0, x0 + 1)
    bottom = (1 - fx) * pixel(y0 + 1, x0) + fx * pixel(y0 + 1, x0 + 1)
    return (1 - fy) * top + fy * bottom
