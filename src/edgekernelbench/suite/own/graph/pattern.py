"""The pattern of a stored model: its reference, its twin, and how its inputs are drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.registry import Array, Pattern

if TYPE_CHECKING:
    from onnx import ModelProto

    from edgekernelbench.suite.own.graph.double import Reference

Ranges = Mapping[str, tuple[int | float, int | float]]

SPREAD = 0.1
"""A redrawn weight is the model's own times 1 plus or minus up to this."""
_ZEROS = 0.05
"""Scale of the redraw of a tensor that is all zeros."""


def graph_pattern(
    id: str, file: Path, weights: Collection[str], ranges: Ranges, operators: str
) -> Pattern:
    """The pattern of a model in stored form; the file is read when first used."""
    model = StoredModel(file, frozenset(weights))
    draw: dict[str, Generator] = dict.fromkeys(model.weights, model.redrawn)
    draw |= {name: _between(*bounds) for name, bounds in ranges.items()}
    return Pattern(
        id,
        model.reference,
        draw=draw,
        twin_model=model.twin,
        text=operators,
    )


class StoredModel:
    """A model whose tensors carry the names of the header."""

    def __init__(self, file: Path, weights: frozenset[str]) -> None:
        self.weights = weights
        self._file = file

    @cached_property
    def proto(self) -> ModelProto:
        import onnx

        return onnx.load_from_string(self._file.read_bytes())

    @cached_property
    def originals(self) -> Mapping[str, np.ndarray]:
        """The weights as they came."""
        from onnx import numpy_helper

        return {
            tensor.name: numpy_helper.to_array(tensor)
            for tensor in self.proto.graph.initializer
            if tensor.name in self.weights
        }

    @cached_property
    def _evaluator(self) -> Reference:
        from edgekernelbench.suite.own.graph.double import Reference

        return Reference(self.proto, self.weights)

    def reference(self, **arrays: Array) -> Array | tuple[Array, ...]:
        """The outputs in declared order; floats in float64."""
        return tuple(self._evaluator(arrays).values())

    def twin(self, inputs: Mapping[str, np.ndarray]) -> ModelProto:
        """The model with these weights."""
        from onnx import ModelProto, numpy_helper

        model = ModelProto()
        model.CopyFrom(self.proto)
        for tensor in model.graph.initializer:
            if tensor.name in self.weights:
                values = np.ascontiguousarray(inputs[tensor.name])
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        return model

    def redrawn(self, draw: Draw, spec: TensorSpec) -> np.ndarray:
        """Other weights of the same kind: floats of nearly the same sizes and of the same signs,
        integers in another order."""
        original, rng = self.originals[spec.name], draw.rng(spec.name)
        if not spec.dtype.is_float:
            return rng.permutation(original.reshape(-1)).reshape(original.shape)
        if not original.any():
            return _ZEROS * rng.standard_normal(original.shape)
        return original * (1.0 + rng.uniform(-SPREAD, SPREAD, original.shape))


def _between(low: int | float, high: int | float) -> Generator:
    """Uniform numbers; both bounds are included for integers."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        rng = draw.rng(spec.name)
        if spec.dtype.is_float:
            return rng.uniform(low, high, spec.shape)
        return rng.integers(int(low), int(high), spec.shape, dtype=np.int64, endpoint=True)

    return generate
