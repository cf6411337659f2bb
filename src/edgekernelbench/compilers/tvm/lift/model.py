"""ONNX models as Relax modules: import, and lowering to loop functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekernelbench.compilers.tvm.lift.refusal import Refused

if TYPE_CHECKING:
    import tvm
    from onnx import ModelProto, TensorProto
MAX_BAKED = 4096


@dataclass(frozen=True, slots=True)
class Imported:
    """A Relax module whose function ``main`` takes the graph inputs, then the initializers.

    Attributes:
        inputs: names of graph inputs, in the order of parameters.
        params: values of initializers by ONNX name, in the order of parameters.
    """

    module: tvm.IRModule
    inputs: tuple[str, ...]
    params: dict[str, np.ndarray]


def import_model(model: ModelProto, fixed: Collection[str]) -> Imported:
    """Imports a model, with its initializers as parameters.

    Args:
        fixed: initializers that become constants where they are small.

    Raises:
        Refused: the importer lacks an operator, or fails.
    """
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    graph: Any = _with_constants(model, fixed)
    initializers = {i.name for i in graph.graph.initializer}
    inputs = tuple(i.name for i in graph.graph.input if i.name not in initializers)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = from_onnx(graph, keep_params_in_input=True)
        module, values = relax.frontend.detach_params(module)
    except Exception as error:  # its exceptions have no common base
        raise Refused(f"not imported: {last_line(error)}") from error
    names = [var.name for var in module["main"].params][len(inputs) :]
    found = values.get("main", ())
    params = {name: value.numpy() for name, value in zip(names, found, strict=True)}
    return Imported(module, inputs, params)


def _with_constants(model: ModelProto, fixed: Collection[str]) -> ModelProto:
    """The model with small fixed initializers as ``Constant`` nodes, whose values the importer
    uses where it needs a shape or an axis."""
    from onnx import ModelProto, helper

    small = [i for i in model.graph.initializer if i.name in fixed and _elements(i) <= MAX_BAKED]
    if not small:
        return model
    out = ModelProto()
    out.CopyFrom(model)
    names = {tensor.name for tensor in small}
    kept = [i for i in out.graph.initializer if i.name not in names]
    nodes = [helper.make_node("Constant", [], [i.name], value=i) for i in small]
    nodes += list(out.graph.node)
    del out.graph.initializer[:], out.graph.node[:]
    out.graph.initializer.extend(kept)
    out.graph.node.extend(nodes)
    return out


def _elements(tensor: TensorProto) -> int:
    return math.prod(tensor.dims)


def legalize(module: tvm.IRModule) -> tvm.IRModule:
    """Every operator of ``main`` a call of a loop function, as far as the compiler can.

    Raises:
        Refused: a pass of the compiler fails.
    """
    import tvm
    from tvm import relax

    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.FoldConstant(),
        relax.transform.LegalizeOps(),
        relax.transform.FoldConstant(),
        relax.transform.DeadCodeElimination(),
    ]
    try:
        return tvm.ir.transform.Sequential(passes)(module)
    except Exception as error:
        raise Refused(f"not lowered to loops: {last_line(error)}") from error


def last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else type(error).__name__
