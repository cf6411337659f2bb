"""ONNX models as Relax modules: import, and lowering to loop functions."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekernelbench.compilers.tvm.lift.refusal import Refused

if TYPE_CHECKING:
    import tvm
MAX_BOUND_ELEMENTS = 4096


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


def import_model(model: Any) -> Imported:
    """Imports an `onnx.ModelProto`, with its initializers as parameters.

    Raises:
        Refused: the importer lacks an operator, or fails.
    """
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    initializers = {i.name for i in model.graph.initializer}
    inputs = tuple(i.name for i in model.graph.input if i.name not in initializers)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = from_onnx(model, keep_params_in_input=True)
        module, values = relax.frontend.detach_params(module)
    except Exception as error:  # its exceptions have no common base
        raise Refused(f"not imported: {last_line(error)}") from error
    names = [var.name for var in module["main"].params][len(inputs) :]
    found = values.get("main", ())
    params = {name: value.numpy() for name, value in zip(names, found, strict=True)}
    return Imported(module, inputs, params)


def bind_fixed(imported: Imported, fixed: Collection[str]) -> Imported:
    """The same module with small parameters of known value as constants."""
    from tvm import relax

    small: dict[Any, Any] = {
        name: value
        for name, value in imported.params.items()
        if name in fixed and value.size <= MAX_BOUND_ELEMENTS
    }
    if not small:
        return imported
    module = relax.transform.BindParams("main", small)(imported.module)
    rest = {name: value for name, value in imported.params.items() if name not in small}
    return Imported(module, imported.inputs, rest)


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
