"""The canonical program of a model: lifted through the compiler's import, as kernel text."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import TensorSpec, Workload

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True)
class _Port:
    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class Written:
    """Kernel text, or the reason why there is none."""

    text: str
    reason: str = ""


def write_program(workload: Workload, model: ModelProto) -> Written:
    """The program under the workload's header; whether it is right is not yet known."""
    from edgekernelbench.compilers.tvm.lift import lift
    from edgekernelbench.ir.printer import print_kernel
    from edgekernelbench.ir.restate import restate
    from edgekernelbench.suite.header import replace_header

    weights = {spec.name for spec in workload.input_specs if spec.const}
    ports = [_port(spec, "input") for spec in workload.input_specs if not spec.const]
    ports += [_port(spec, "output") for spec in workload.output_specs]
    baked = _with_constants(model, weights)
    with redirect_stdout(sys.stderr):  # the importer prints its complaints
        lifted = lift(baked, ports)
    if lifted.program is None:
        return Written("", lifted.reason)
    try:
        text = print_kernel(restate(_with_interface(lifted.program, workload)).kernel)
        return Written(replace_header(text, workload))
    except ValueError as error:
        return Written("", str(error))


def _port(spec: TensorSpec, role: Literal["input", "output"]) -> _Port:
    return _Port(spec.name, spec.dtype, spec.shape, role)


def _with_constants(model: ModelProto, weights: Collection[str]) -> ModelProto:
    """The model with everything fixed in ``Constant`` nodes, whatever its size: what stays an
    initializer would become an input of the program."""
    from onnx import ModelProto, helper

    copy = ModelProto()
    copy.CopyFrom(model)
    fixed = [tensor for tensor in copy.graph.initializer if tensor.name not in weights]
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in fixed]
    kept = [tensor for tensor in model.graph.initializer if tensor.name in weights]
    nodes += list(model.graph.node)
    del copy.graph.initializer[:], copy.graph.node[:]
    copy.graph.initializer.extend(kept)
    copy.graph.node.extend(nodes)
    return copy


def _with_interface(program: Program, workload: Workload) -> Program:
    """Inputs in the header's order, those that the program does not read included."""
    found = {tensor.name: tensor for tensor in program.inputs}
    inputs = tuple(
        found.get(spec.name) or Tensor(spec.name, spec.dtype, spec.shape, "input", spec.const)
        for spec in workload.input_specs
    )
    return replace(program, inputs=inputs)
