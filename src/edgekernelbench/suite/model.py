"""`Definition`: a pattern with symbolic shapes. `Workload`: a definition bound to numbers.

Both hold plain data. What a workload *does* (draw inputs, compute the truth, build its ONNX
twin) lives in modules of its own, imported when first asked for.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.formula import Number, evaluate

if TYPE_CHECKING:
    from onnx import ModelProto

    from edgekernelbench.suite.correctness import Correctness
    from edgekernelbench.suite.patterns.registry import Pattern

Arrays = dict[str, np.ndarray]

ToleranceClass = Literal[
    "exact_move", "int_exact", "int_index", "int8_requant",
    "f32_elementwise", "f32_transcendental", "f32_reduction", "f32_softmax", "f32_recurrence",
    "f32_linalg", "f32_graph", "f32_dynamic_quant",
    "f16_elementwise", "f16_transcendental", "f16_reduction", "f16_softmax", "f16_recurrence",
    "f16_graph",
]  # fmt: skip


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorDecl(_Stored):
    """A symbolic tensor: ``dims`` are formulas, ``dtype`` is None for the workload's float."""

    name: str
    dims: tuple[str, ...]
    dtype: DType | None
    const: bool = False


class TensorSpec(_Stored):
    """A concrete tensor. ``const`` marks inputs known before deployment."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    const: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes


class Definition(_Stored):
    """A canonical computation pattern.

    Attributes:
        id: unique, snake case; also the name of its kernels.
        level: 1 one operator, 2 a chain that a compiler could fuse, 3 a small model or a block.
        formula: what it computes, in one line.
        flops_formula: operations of one call; empty where they are not known.
        derived: sizes that follow from the bindings, in the order in which they may be computed.
        accumulation: formula of the number of terms summed into one output element.
        lsb_share: share of the elements of a rounded output that may be one step off.
        input_gen: how inputs are drawn where full-range numbers would be wrong, in words.
        small: bindings at which a check of meaning is quick; they suit every workload.
        origin: the user's own suite that it belongs to; empty in the packaged one.
    """

    id: str
    level: Literal[1, 2, 3]
    family: str
    formula: str
    inputs: tuple[TensorDecl, ...]
    outputs: tuple[TensorDecl, ...]
    notes: str
    tolerance: ToleranceClass
    intensity: Literal["memory-bound", "compute-bound", "latency-bound"]
    dtype_class: str
    dtypes: tuple[str, ...]
    layout: str
    attrs: tuple[str, ...]
    derived: tuple[tuple[str, str], ...]
    flops_formula: str
    touched_formula: str
    naive_formula: str
    input_gen: str
    accumulation: str
    lsb_share: float
    small: dict[str, int | float]
    origin: str = ""

    @cached_property
    def pattern(self) -> Pattern:
        """The code of the pattern: reference, twin, input overrides. Imports its family file."""
        if self.origin:
            from edgekernelbench.suite.own.code import own_pattern

            return own_pattern(self)
        from edgekernelbench.suite.patterns.registry import find_pattern

        return find_pattern(self.family, self.id)


class Workload(_Stored):
    """A definition at the shapes, dtype and attributes of one layer of one named model.

    Attributes:
        bindings: numbers of the definition's free names, in the order of the kernel header.
        dtype: ``f32``, ``f16`` or the storage class of quantised patterns (``s8``, ``q4``, ...).
        source, provenance: whose layer this is, and how that is known.
        flops: nominal operations; a multiply-add counts 2.
        bytes_min: every input and output once; ``bytes_touched``: only rows really accessed.
        backends: ``cpu_llvm``, ``gpu_cuda``, ``gpu_opencl``, some with a needed extension.
    """

    id: str
    definition: Definition
    domain: str
    source: str
    provenance: str
    bindings: dict[str, int | float]
    dtype: str
    tolerance: ToleranceClass
    flops: int
    bytes_min: int
    bytes_touched: int
    backends: tuple[str, ...]
    agent: bool
    heldout: bool
    heldout_kind: str
    quick: bool
    notes: str

    # ------------------------------------------------------------ facts
    @property
    def pattern(self) -> str:
        return self.definition.id

    @property
    def level(self) -> int:
        return self.definition.level

    @property
    def family(self) -> str:
        return self.definition.family

    @property
    def float_dtype(self) -> DType:
        """What ``T`` stands for."""
        return DType.F16 if self.dtype.endswith("f16") else DType.F32

    @cached_property
    def sizes(self) -> Mapping[str, Number]:
        """Bindings and derived sizes."""
        names: dict[str, Number] = dict(self.bindings)
        for name, formula in self.definition.derived:
            names[name] = evaluate(formula, names)
        return names

    @cached_property
    def input_specs(self) -> tuple[TensorSpec, ...]:
        return tuple(self._spec(decl) for decl in self.definition.inputs)

    @cached_property
    def output_specs(self) -> tuple[TensorSpec, ...]:
        return tuple(self._spec(decl) for decl in self.definition.outputs)

    def _spec(self, decl: TensorDecl) -> TensorSpec:
        shape = tuple(_extent(decl.name, dim, self.sizes) for dim in decl.dims)
        return TensorSpec(
            name=decl.name, dtype=decl.dtype or self.float_dtype, shape=shape, const=decl.const
        )

    @property
    def accumulation(self) -> int:
        """Terms summed into one output element, as far as the definition says; at least 1."""
        formula = self.definition.accumulation
        return max(1, int(evaluate(formula, self.sizes))) if formula else 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of id, numbers and dtype; random streams hang on it, so it must last."""
        described = f"{self.id}/{self.dtype}/{json.dumps(self.bindings, sort_keys=True)}"
        return hashlib.sha256(described.encode()).hexdigest()

    def resized(self, **bindings: int | float) -> Workload:
        """The same pattern at other numbers, for quick checks; it belongs to no subset.

        Raises:
            ValueError: a name is not a binding of the pattern.
        """
        unknown = set(bindings) - set(self.bindings)
        if unknown:
            raise ValueError(f"{self.pattern} has no bindings {', '.join(sorted(unknown))}")
        numbers = {**self.bindings, **bindings}
        changed = ",".join(f"{name}={value}" for name, value in bindings.items())
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        fields |= {"id": f"{self.id}@{changed}", "bindings": numbers}
        fields |= {"agent": False, "heldout": False, "heldout_kind": "", "quick": False}
        return Workload.model_validate(fields | Workload.model_validate(fields).counted())

    def small(self) -> Workload:
        """The same workload at the definition's small sizes."""
        return self.resized(**self.definition.small)

    def counted(self) -> dict[str, int]:
        """Nominal operations and bytes, computed from the definition's formulas."""
        names = {**self.sizes, "ES": self.float_dtype.bytes}
        definition = self.definition
        flops = definition.flops_formula
        total = sum(spec.bytes for spec in (*self.input_specs, *self.output_specs))
        touched = definition.touched_formula
        return {
            "flops": int(evaluate(flops, names)) if flops else 0,
            "bytes_min": total,
            "bytes_touched": int(evaluate(touched, names)) if touched else total,
        }

    # ------------------------------------------------------------ what it can do
    def header(self) -> str:
        """The kernel header that every kernel of this workload begins with."""
        from edgekernelbench.suite.header import kernel_header

        return kernel_header(self)

    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays:
        """Inputs in their declared dtypes.

        Args:
            seed: non-negative; decides the non-const inputs.
            const_seed: decides the const inputs; the same as ``seed`` if left out.
        """
        from edgekernelbench.suite.draw import draw_inputs

        return draw_inputs(self, seed, seed if const_seed is None else const_seed)

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        """What the outputs should be: float64 for floats, declared dtypes for integers."""
        from edgekernelbench.suite.truth import cached_truth, compute_truth

        return cached_truth(self, inputs) if cache else compute_truth(self, inputs)

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        """Judge outputs of the declared shapes and dtypes against the truth."""
        from edgekernelbench.suite.tolerance import Facts, compare

        facts = Facts(accumulation=self.accumulation, lsb_share=self.definition.lsb_share)
        return compare(outputs, truth, self.tolerance, facts)

    def twin(self, inputs: Mapping[str, np.ndarray]) -> ModelProto | None:
        """The ONNX model of this workload with the const inputs as initializers, if it has one."""
        from edgekernelbench.suite.twin import build_twin

        return build_twin(self, inputs)

    @property
    def no_twin_reason(self) -> str | None:
        """Why there is no ONNX twin; None where there is one."""
        return self.definition.pattern.no_twin

    def canonical(self) -> str:
        """The canonical kernel of the pattern under this workload's header.

        Raises:
            FileNotFoundError: the pattern has no canonical program.
        """
        from edgekernelbench.suite.header import canonical_kernel

        return canonical_kernel(self)

    def statement(self) -> str:
        """The text of the task as an author, person or model, is shown it."""
        from edgekernelbench.suite.statement import task_statement

        return task_statement(self)


def _extent(tensor: str, dim: str, sizes: Mapping[str, Number]) -> int:
    value = evaluate(dim, sizes)
    if value != int(value):
        raise ValueError(f"{tensor}: the extent {dim} is {value:g}, not a whole number")
    return int(value)
