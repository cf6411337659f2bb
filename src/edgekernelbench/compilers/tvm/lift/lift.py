"""`lift`: an ONNX model as one core program with flat stages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.dtypes import DType

if TYPE_CHECKING:
    import numpy as np
    from onnx import ModelProto

    from edgekernelbench.compilers.tvm.lift.model import Imported


class Port(Protocol):
    """An array of a task's interface; `baselines.base.Port` is one."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def role(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LiftResult:
    """A verified program, or the reason why there is none, in one line."""

    program: Program | None
    reason: str = ""


def lift(model: ModelProto, ports: Sequence[Port], fixed: Collection[str] = ()) -> LiftResult:
    """The program that the compiler's import of ``model`` computes.

    Its inputs are the ports that the model uses, under their names, then the initializers that
    are not in ``fixed``, as const inputs under their names in the model. Its outputs are the output
    ports. Where the compiler trusts data to be a legal index, the program clamps.

    Args:
        ports: names, dtypes and shapes of the task's arrays; the model's graph inputs and outputs
            are named like them.
        fixed: initializers whose values never change; small ones become part of the program.
    """
    from edgekernelbench.compilers.tvm.lift import model as models
    from edgekernelbench.compilers.tvm.lift.tidy import tidied

    try:
        imported = models.import_model(model, fixed)
        program = _program(imported, ports, str(model.graph.name) or "model")
        return LiftResult(tidied(program))
    except Refused as reason:
        return LiftResult(None, str(reason))
    except RecursionError:
        return LiftResult(None, "an expression is nested too deeply")


def _program(imported: Imported, ports: Sequence[Port], name: str) -> Program:
    from edgekernelbench.compilers.tvm.lift.graph import GraphLifter
    from edgekernelbench.compilers.tvm.lift.model import legalize
    from edgekernelbench.compilers.tvm.lift.sources import Builder

    by_name = {port.name: port for port in ports}
    unknown = [n for n in imported.inputs if n not in by_name]
    if unknown:
        raise Refused(f"the model's input {unknown[0]} is no port")
    inputs = tuple(Tensor(n, by_name[n].dtype, by_name[n].shape, "input") for n in imported.inputs)
    consts = tuple(_const(n, array) for n, array in imported.params.items())
    outputs = tuple(
        Tensor(port.name, port.dtype, port.shape, "output")
        for port in ports
        if port.role == "output"
    )
    builder = Builder({t.name for t in (*inputs, *consts, *outputs)})
    GraphLifter(legalize(imported.module), builder).run((*inputs, *consts), outputs)
    tables = tuple(builder.tables.values())
    body = tuple(builder.stages)
    return Program(name, (), (*inputs, *consts), outputs, tables, body, builder.next_uid)


def _const(name: str, array: np.ndarray) -> Tensor:
    from edgekernelbench.compilers.tvm.lift.sources import dtype_of

    return Tensor(name, dtype_of(str(array.dtype)), array.shape, "input", const=True)
