"""Static shapes: those that the caller binds, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.own.graph.walk import graphs
from edgekernelbench.suite.own.guard import first_line

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

Shape = tuple[int, ...]

_MAX_EXTENT = 2**31 - 1


def with_static_shapes(model: ModelProto, shapes: Mapping[str, Shape], path: Path) -> ModelProto:
    """The model with inputs of fixed shapes and everything inferred from them.

    A named dimension that one input's shape fixes is fixed everywhere.

    Args:
        shapes: inputs' shapes by name; names of other models are passed over.

    Raises:
        UsageError: an input stays dynamic, or shapes contradict each other.
    """
    given = [v for v in model.graph.input if v.name not in _initializers(model)]
    sizes: dict[str, int] = {}
    for value in given:
        if value.name in shapes:
            _bind(value, shapes[value.name], sizes, path)
    for value in given:
        _fill(value, sizes)
        _check_static(value, path)
    for graph in graphs(model.graph):
        del graph.value_info[:]  # it may hold the names of dimensions
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return _inferred(model, path)


def _inferred(model: ModelProto, path: Path) -> ModelProto:
    """With the values of shape tensors followed, unless that misleads the inference."""
    from onnx import shape_inference

    fault = ""
    for follow in (True, False):
        try:
            return shape_inference.infer_shapes(
                model, check_type=True, strict_mode=True, data_prop=follow
            )
        except Exception as error:  # InferenceError has no public base
            fault = first_line(error)
    raise UsageError(
        f"{path}: shapes do not fit: {fault}",
        "give other shapes with --shape, or export the model again",
    )


def extents(value: ValueInfoProto) -> Shape | None:
    """The shape of a value; None if a part of it is not known."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value for d in dims) if all(d.HasField("dim_value") for d in dims) else None


def known_shapes(model: ModelProto) -> dict[str, Shape]:
    """All static shapes of the main graph by tensor."""
    graph = model.graph
    found = {v.name: extents(v) for v in (*graph.input, *graph.value_info, *graph.output)}
    shapes = {name: shape for name, shape in found.items() if shape is not None}
    return shapes | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _initializers(model: ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}


def _bind(value: ValueInfoProto, shape: Shape, sizes: dict[str, int], path: Path) -> None:
    told = f"--shape {value.name}={','.join(map(str, shape))}"
    if max(shape, default=1) > _MAX_EXTENT:
        raise UsageError(f"{path}: {told}: too large", f"an extent is at most {_MAX_EXTENT}")
    tensor = value.type.tensor_type
    declared = list(tensor.shape.dim) if tensor.HasField("shape") else []
    if declared and len(declared) != len(shape):
        raise UsageError(f"{path}: {told}: the input has {len(declared)} dimensions", "give all")
    if not declared:
        del tensor.shape.dim[:]
        for _ in shape:
            tensor.shape.dim.add()
    for dim, extent in zip(tensor.shape.dim, shape, strict=True):
        if dim.HasField("dim_value") and dim.dim_value > 0 and dim.dim_value != extent:
            raise UsageError(
                f"{path}: {told}: the model fixes {dim.dim_value} where that says {extent}",
                "only dynamic dimensions can be chosen",
            )
        if dim.dim_param and sizes.setdefault(dim.dim_param, extent) != extent:
            raise UsageError(
                f"{path}: {told}: dimension {dim.dim_param!r} is {sizes[dim.dim_param]} elsewhere",
                "dimensions of one name are equal",
            )
        dim.dim_value = extent


def _fill(value: ValueInfoProto, sizes: Mapping[str, int]) -> None:
    if value.type.tensor_type.HasField("shape"):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def _check_static(value: ValueInfoProto, path: Path) -> None:
    shape = extents(value)
    if shape is not None and all(extent > 0 for extent in shape):
        return
    tensor = value.type.tensor_type
    dims = tensor.shape.dim if tensor.HasField("shape") else ()
    told = ", ".join(str(d.dim_value) if d.dim_value else d.dim_param or "?" for d in dims) or "?"
    example = ",".join(str(max(d.dim_value, 1)) for d in dims) or "1"
    raise UsageError(
        f"{path}: input {value.name!r} has no static shape: [{told}]",
        f"say its shape: --shape {value.name}={example}",
    )
