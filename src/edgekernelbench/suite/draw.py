"""Drawing inputs: seeded, of mixed sign, of more than one scale, in their legal range.

Each tensor has a random stream of its own, derived from its seed, the workload and its name, so
that one tensor's values depend neither on the others nor on the order of drawing. Const inputs
are drawn under ``const_seed``, all others under ``seed``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.formula import Number, evaluate
from edgekernelbench.suite.model import Arrays, TensorSpec

if TYPE_CHECKING:
    from edgekernelbench.suite.model import Workload


@dataclass(frozen=True)
class Draw:
    """One draw of inputs: where input overrides get sizes, shapes and random streams."""

    workload: Workload
    seed: int
    const_seed: int

    @property
    def sizes(self) -> Mapping[str, Number]:
        """Bindings and derived sizes of the workload."""
        return self.workload.sizes

    def size(self, formula: str) -> int:
        return int(evaluate(formula, self.sizes))

    def spec(self, name: str) -> TensorSpec:
        return next(spec for spec in self.workload.input_specs if spec.name == name)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.spec(name).shape

    def rng(self, name: str) -> np.random.Generator:
        """The stream of one input: under ``const_seed`` if that input is const."""
        seed = self.const_seed if self.spec(name).const else self.seed
        digest = hashlib.sha256(f"{self.workload.digest}/{name}".encode()).digest()
        key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


Generator = Callable[[Draw, TensorSpec], np.ndarray]
"""Draws one input. The result is converted to the declared dtype."""


def draw_inputs(workload: Workload, seed: int, const_seed: int) -> Arrays:
    """All inputs of a workload in declared order, dtypes and shapes.

    Raises:
        RuntimeError: an override of the pattern yields a wrong shape or a value out of range.
    """
    draw = Draw(workload, seed, const_seed)
    pattern = workload.definition.pattern
    with pattern.guard():
        joint = pattern.joint_inputs(draw) if pattern.joint_inputs else {}
    drawn: Arrays = {}
    for spec in workload.input_specs:
        if spec.name in joint:
            values = np.asarray(joint[spec.name])
        else:
            with pattern.guard():
                values = np.asarray(pattern.draw.get(spec.name, _default)(draw, spec))
        drawn[spec.name] = _stored(values, spec, workload)
    return drawn


def _stored(values: np.ndarray, spec: TensorSpec, workload: Workload) -> np.ndarray:
    where = f"{workload.id}: input {spec.name}"
    if values.shape != spec.shape:
        raise RuntimeError(f"{where} was drawn with shape {values.shape}, not {spec.shape}")
    if spec.dtype.is_int:
        low, high = spec.dtype.int_range
        if values.dtype.kind not in "iu" or values.min() < low or values.max() > high:
            raise RuntimeError(f"{where} was drawn out of the range of {spec.dtype}")
    stored = np.asarray(values, spec.dtype.numpy, order="C")  # not ascontiguousarray: 0-d stays
    if spec.dtype.is_float and not np.isfinite(stored).all():
        raise RuntimeError(f"{where} was drawn with values that are not finite")
    return stored


def _default(draw: Draw, spec: TensorSpec) -> np.ndarray:
    if spec.dtype.is_float:
        return (weights() if spec.const else activations())(draw, spec)
    if spec.dtype.bits <= 16:
        low, high = spec.dtype.int_range
        return integers(str(low), str(high + 1))(draw, spec)
    raise RuntimeError(
        f"{draw.workload.id}: say how to draw {spec.name}; no default range is right for "
        f"{spec.dtype}"
    )


# ---------------------------------------------------------------- generators
def activations(scale: float = 1.0, spread: float = 1.5) -> Generator:
    """Normal numbers; each slice along the first axis longer than 1 has a scale of its own.

    The scales are ``scale * 2**uniform(-spread, spread)``.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        values = rng.standard_normal(spec.shape, dtype=np.float32)
        return values * (scale * _slice_scales(rng, spec.shape, spread))

    return generate


def weights(fan_in: str | None = None, gain: float = 1.0) -> Generator:
    """Normal numbers of scale ``gain / sqrt(fan_in)``, output channels of differing scales.

    Args:
        fan_in: formula of the number of terms that meet in one output; the extent of all axes
            but the first if left out. A vector of weights (a bias) has the scale ``gain / 2``.
    """

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        if fan_in is not None:
            terms = draw.size(fan_in)
        elif len(spec.shape) > 1:
            terms = math.prod(spec.shape[1:])
        else:
            terms = 4
        return activations(gain / math.sqrt(terms), spread=0.75)(draw, spec)

    return generate


def on_grid(generator: Generator, step: float) -> Generator:
    """What ``generator`` draws, rounded to multiples of a power of two, so that ties occur."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        return np.rint(generator(draw, spec) / step) * step

    return generate


def near(value: float, spread: float = 0.2) -> Generator:
    """Normal numbers around a value: gains of normalisations and the like."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        return value + spread * draw.rng(spec.name).standard_normal(spec.shape)

    return generate


def uniform(low: float, high: float) -> Generator:
    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        return draw.rng(spec.name).uniform(low, high, spec.shape)

    return generate


def integers(low: str, high: str) -> Generator:
    """Uniform integers from ``low`` up to but not including ``high``; both are formulas."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        bounds = draw.size(low), draw.size(high)
        return draw.rng(spec.name).integers(*bounds, spec.shape, dtype=np.int64)

    return generate


def _slice_scales(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> np.ndarray:
    axis = next((i for i, extent in enumerate(shape) if extent > 1), 0)
    scales = 2.0 ** rng.uniform(-spread, spread, shape[axis] if shape else 1)
    return scales.reshape([-1 if i == axis else 1 for i in range(len(shape))])
