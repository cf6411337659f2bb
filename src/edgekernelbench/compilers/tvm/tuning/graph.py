"""ONNX models as a graph of fused loop functions, the unit of tuning."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekernelbench.compilers.tvm.lift.model import import_model, last_line, legalize
from edgekernelbench.compilers.tvm.lift.reductions import sums_in_f16
from edgekernelbench.compilers.tvm.lift.refusal import Refused

if TYPE_CHECKING:
    import tvm
    from onnx import ModelProto

RNode = Any  # tvm's classes share no useful static type
_KEPT = ("layout_free_buffers", "tirx.noalias")


@dataclass(frozen=True, slots=True)
class Graph:
    """A Relax module whose ``main`` calls fused loop functions that have no schedule yet.

    Attributes:
        inputs, params, outputs: names of what ``main`` takes (in order) and returns.
        params: initializers of the model, all of them arguments.
    """

    module: tvm.IRModule
    inputs: tuple[str, ...]
    params: dict[str, np.ndarray]
    outputs: tuple[str, ...]


def fused(model: ModelProto, fixed: Collection[str], target: Any) -> Graph:
    """Imports a model and fuses its operators as the compiler does by default.

    Args:
        fixed: initializers that may become part of the program.
        target: a TVM target; some operators are lowered for it.

    Raises:
        Refused: the importer lacks an operator, or the lowering adds up in f16, too coarsely to
            be of use.
    """
    imported = import_model(model, fixed)
    if sums_in_f16(legalize(imported.module)):
        raise Refused("the compiler's own lowering sums in f16")
    module = fuse(imported.module, target)
    outputs = tuple(output.name for output in model.graph.output)
    return Graph(module, imported.inputs, imported.params, outputs)


def fuse(module: tvm.IRModule, target: Any) -> tvm.IRModule:
    """A Relax module with its operators lowered and fused by the compiler's own rules.

    Raises:
        Refused: a pass of the compiler fails.
    """
    import tvm
    from tvm import relax

    t = relax.transform
    passes = [
        t.DecomposeOpsForInference(),
        t.CanonicalizeBindings(),
        t.LegalizeOps(),
        t.AnnotateTIROpPattern(),
        t.FoldConstant(),
        t.FuseOps(),
        t.FuseTIR(),
        t.AttachAttrLayoutFreeBuffers(),
    ]
    try:
        with target:
            return tvm.ir.transform.Sequential(passes)(module)
    except Exception as error:  # its exceptions have no common base
        raise Refused(f"not fused: {last_line(error)}") from error


def functions(module: tvm.IRModule) -> dict[str, RNode]:
    """The loop functions of a module, by name and in a fixed order."""
    parts: Any = module
    found = {str(v.name_hint): f for v, f in parts.functions.items()}
    return {n: found[n] for n in sorted(found) if type(found[n]).__name__ == "PrimFunc"}


def standalone(function: RNode) -> tvm.IRModule:
    """A loop function alone, called ``main``, with the attributes that schedules depend on.

    What else the fusion noted on it is dropped, so that one function has one key wherever it
    comes from.
    """
    import tvm

    plain = function
    for name in list((function.attrs or {}).keys()):
        if name not in _KEPT:
            plain = plain.without_attr(name)
    return tvm.IRModule({"main": plain.with_attr("global_symbol", "main")})


def key(function: RNode) -> str:
    """Hash (16 hex digits) of a function's structure: the same in every process, whatever names
    its variables have."""
    import tvm_ffi

    hashed = tvm_ffi.structural_hash(standalone(function)["main"], map_free_vars=True)
    return f"{hashed % (1 << 64):016x}"


_OPERATIONS_PER_BYTE = 4.0
"""What a CPU core computes while a byte comes from memory, roughly; it only ranks functions."""


def effort(function: RNode) -> float:
    """Roughly what a well scheduled function costs, in operations: its own, and its arguments'
    way from and to memory."""
    from tvm.s_tir.analysis import estimate_tir_flops

    try:
        operations = float(estimate_tir_flops(standalone(function)))
    except Exception:  # of no common base; it counts no loops that depend on data
        operations = 0.0
    moved = sum(_bytes(buffer) for buffer in function.params)
    return operations + _OPERATIONS_PER_BYTE * moved


def _bytes(buffer: RNode) -> int:
    return math.prod(int(n) for n in buffer.shape) * np.dtype(str(buffer.dtype)).itemsize
