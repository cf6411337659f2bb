"""The rows of the tables that a model would have: its definition and its workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import Definition, TensorDecl, ToleranceClass, Workload
from edgekernelbench.suite.own.graph.classes import accumulation_of, computing, tolerance_of
from edgekernelbench.suite.own.graph.dtypes import dtype_of
from edgekernelbench.suite.own.graph.normal import Normal
from edgekernelbench.suite.own.graph.pattern import Ranges
from edgekernelbench.suite.own.graph.read import CUT
from edgekernelbench.suite.own.rows import definition_row, workload_row

if TYPE_CHECKING:
    from onnx import ModelProto

Shapes = Mapping[str, tuple[int, ...]]

_LISTED = 8


@dataclass(frozen=True)
class Draft:
    """A model on its way to a task.

    Attributes:
        file: where it is stored; ``path``: where it came from.
        shapes: of all tensors for which they are known.
        work: nominal operations.
        tolerance: the class, where it is not to follow from the operators.
    """

    path: Path
    id: str
    suite: str
    file: Path
    normal: Normal
    shapes: Shapes
    ranges: Ranges
    work: int
    tolerance: ToleranceClass | None = None

    @property
    def model(self) -> ModelProto:
        return self.normal.model

    def refused(self, message: str, help: str = CUT) -> UsageError:
        return UsageError(f"{self.path}: {message}", help)


def definition_of(draft: Draft, outputs: Shapes, lsb_share: float) -> Definition:
    """One for this model alone: every size is a number."""
    graph = draft.model.graph
    inputs = [_decl(v.name, v.type.tensor_type.elem_type, draft.shapes) for v in graph.input]
    weights = set(draft.normal.weights)
    inputs += [
        _decl(t.name, t.data_type, draft.shapes, const=True)
        for t in graph.initializer
        if t.name in weights
    ]
    made = [_decl(v.name, v.type.tensor_type.elem_type, outputs) for v in graph.output]
    made_dtypes = [decl.dtype for decl in made if decl.dtype is not None]
    tolerance = draft.tolerance or tolerance_of(graph, made_dtypes)
    dtype = _storage_class(tolerance, [d.dtype for d in inputs if d.dtype is not None])
    return definition_row(
        id=draft.id,
        level=3,
        formula=_summary(draft),
        inputs=tuple(inputs),
        outputs=tuple(made),
        tolerance=tolerance,
        dtypes=(dtype,),
        flops_formula=str(draft.work),
        input_gen="weights are near the model's own",
        accumulation=str(accumulation_of(graph, draft.shapes)),
        lsb_share=lsb_share,
        origin=draft.suite,
    )


def workload_of(draft: Draft, outputs: Shapes, lsb_share: float) -> Workload:
    return workload_row(definition_of(draft, outputs, lsb_share), draft.id, draft.path, {})


def _decl(name: str, element: int, shapes: Shapes, const: bool = False) -> TensorDecl:
    dims = tuple(str(extent) for extent in shapes.get(name, ()))
    return TensorDecl(name=name, dims=dims, dtype=dtype_of(element), const=const)


def _storage_class(tolerance: ToleranceClass, dtypes: Sequence[DType]) -> str:
    if tolerance == "int8_requant":
        return "s8"
    if tolerance.startswith("f16"):
        return "f16"
    if tolerance.startswith("int"):
        return str(next((dtype for dtype in dtypes if not dtype.is_float), "f32"))
    return "f32"


def _summary(draft: Draft) -> str:
    kinds = [node.op_type for node in computing(draft.model.graph)]
    listed = ", ".join(dict.fromkeys(kinds[:_LISTED])) + (", ..." if len(kinds) > _LISTED else "")
    count = f"{len(kinds)} operators" if len(kinds) != 1 else "one operator"
    return f"{count} ({listed})" if kinds else "elements moved"
