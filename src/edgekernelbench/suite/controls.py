"""Negative controls: outputs that a lazy or broken kernel could produce, and that must fail.

Each control spoils one output and leaves the others right. The rules of where a control applies:

- ``zero``: everywhere.
- ``constant``: everywhere. The value is the mean (of integers the commonest number) of the same
  output under another seed: all that can be known without looking at the inputs.
- ``poison``: everywhere. What the evaluator fills outputs with: nothing was written.
- ``stale``: everywhere. The truth of other inputs under the same constants.
- ``echo``: where an input has as many elements as the output; one control for each such input.
- ``sign_flipped``: where the output's dtype is signed.
- ``shuffled``: where the output has two different values. The truth, permuted.

A pattern may exempt itself where a right kernel equals a control, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from edgekernelbench.suite.model import Arrays, TensorSpec

if TYPE_CHECKING:
    from edgekernelbench.suite.model import Workload

ControlKind = Literal["zero", "constant", "poison", "stale", "echo", "sign_flipped", "shuffled"]
CONTROL_KINDS: tuple[ControlKind, ...] = get_args(ControlKind)


@dataclass(frozen=True)
class Control:
    """Outputs of declared dtypes, wrong in ``output`` alone."""

    kind: ControlKind
    output: str
    outputs: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Sample:
    """One draw of a workload with its truth, and the truth of other inputs, same constants."""

    workload: Workload
    seed: int
    inputs: Arrays
    truth: Arrays
    stale: Arrays


def draw_sample(workload: Workload, seed: int, *, cache: bool = False) -> Sample:
    """Inputs, truth and stale truth of a seed."""
    inputs = workload.inputs(seed)
    others = workload.inputs(seed + 1, const_seed=seed)
    truth = workload.truth(inputs, cache=cache)
    return Sample(workload, seed, inputs, truth, workload.truth(others, cache=cache))


def controls(sample: Sample) -> Iterator[Control]:
    """Every control that applies, for every output."""
    right = {
        spec.name: sample.truth[spec.name].astype(spec.dtype.numpy)
        for spec in sample.workload.output_specs
    }
    exempt = sample.workload.definition.pattern.exempt
    for spec in sample.workload.output_specs:
        for kind in CONTROL_KINDS:
            if kind in exempt:
                continue
            for wrong in _spoiled(kind, sample, spec):
                yield Control(kind, spec.name, {**right, spec.name: wrong})


def poison(spec: TensorSpec, seed: int) -> np.ndarray:
    """What an output holds before a kernel writes it: NaN and huge numbers, or random bits.

    It differs from seed to seed, so that no kernel can know it.
    """
    rng = np.random.default_rng([seed, spec.size])
    if spec.dtype.is_float:
        limit = float(np.finfo(spec.dtype.numpy).max)
        values = rng.uniform(0.5, 1.0, spec.shape) * limit
        return np.where(rng.random(spec.shape) < 0.5, np.nan, values).astype(spec.dtype.numpy)
    low, high = spec.dtype.int_range
    return rng.integers(low, high, spec.shape, dtype=spec.dtype.numpy, endpoint=True)


def _spoiled(kind: ControlKind, sample: Sample, spec: TensorSpec) -> Iterator[np.ndarray]:
    """The wrong values of one output under one control; none where it does not apply."""
    truth, dtype = sample.truth[spec.name], spec.dtype.numpy
    match kind:
        case "zero":
            yield np.zeros(spec.shape, dtype)
        case "constant":
            yield np.full(spec.shape, _typical(sample.stale[spec.name]), dtype)
        case "poison":
            yield poison(spec, sample.seed)
        case "stale":
            yield sample.stale[spec.name].astype(dtype)
        case "echo":
            for given in sample.workload.input_specs:
                if given.size == spec.size:
                    yield sample.inputs[given.name].reshape(spec.shape).astype(dtype)
        case "sign_flipped":
            if spec.dtype.is_signed:
                yield _negated(truth, spec)
        case "shuffled":
            if truth.min() != truth.max():
                yield _permuted(truth, sample.seed).astype(dtype)


def _typical(values: np.ndarray) -> np.generic | float:
    if values.dtype.kind == "f":
        return float(values[np.isfinite(values)].mean())
    numbers, counts = np.unique(values, return_counts=True)
    return numbers[counts.argmax()]


def _negated(truth: np.ndarray, spec: TensorSpec) -> np.ndarray:
    if spec.dtype.is_float:
        return (-truth).astype(spec.dtype.numpy)
    low, high = spec.dtype.int_range
    return np.clip(-truth.astype(np.int64), low, high).astype(spec.dtype.numpy)


def _permuted(truth: np.ndarray, seed: int) -> np.ndarray:
    """A random permutation that is not the identity on the values."""
    rng = np.random.default_rng(seed)
    while True:
        shuffled = rng.permutation(truth.reshape(-1)).reshape(truth.shape)
        if not np.array_equal(shuffled, truth):
            return shuffled
