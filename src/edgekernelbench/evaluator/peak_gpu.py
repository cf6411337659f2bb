"""Products that measure the arithmetic of a dtype: tiles in shared memory and registers on GPUs,
lanes on CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from edgekernelbench.evaluator.task import Arrays
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import TensorSpec, ToleranceClass
from edgekernelbench.suite.tolerance import Facts, compare
from edgekernelbench.targets.model import Target

_CLASSES: dict[DType, ToleranceClass] = {
    DType.F16: "f16_reduction",
    DType.F32: "f32_reduction",
    DType.F64: "f32_reduction",
}
_SIDES = {"cpu": 256, "small": 1024, "large": 2048}
_LARGE_UNITS = 32

_COMPUTE = """compute {
    acc[i: N, j: N] = sum[k: N](A[i, k] * B[k, j])
    C[i, j] = acc[i, j]
  }"""

TILES = ((64, 64, 8, 4), (128, 64, 8, 4), (128, 128, 8, 8))
"""Rows and columns of a block's tile, and of a thread's."""


class TypedProduct:
    """``C = A B`` of square matrices of one dtype; integers add up in s32. An `EvalTask`."""

    def __init__(self, dtype: DType, side: int) -> None:
        self.element, self.side = dtype, side
        self.dtype = dtype.value
        self.tolerance: ToleranceClass = _CLASSES.get(dtype, "int_exact")
        self.flops = 2 * side**3
        self.terms = side
        self.sizes: Mapping[str, int | float] = {"N": side}
        result = dtype if dtype.is_float else DType.S32
        shape = (side, side)
        self.input_specs = tuple(TensorSpec(name=n, dtype=dtype, shape=shape) for n in "AB")
        self.output_specs = (TensorSpec(name="C", dtype=result, shape=shape),)

    @property
    def id(self) -> str:
        return f"peak product {self.dtype}"

    @property
    def bytes_touched(self) -> int:
        return sum(spec.bytes for spec in (*self.input_specs, *self.output_specs))

    def header(self) -> str:
        result = self.output_specs[0].dtype.value
        inputs = f"A: {self.dtype}[N, N], B: {self.dtype}[N, N]"
        return f"kernel product[N={self.side}]({inputs}) -> (C: {result}[N, N])"

    def canonical(self) -> str:
        raise FileNotFoundError

    def twin(self, inputs: Mapping[str, np.ndarray]) -> None:
        return None

    def on_gpu(self, rows: int, columns: int, own_rows: int, own_columns: int) -> str:
        """Tiles of both operands in shared memory, results in the registers of their threads."""
        nest = (
            f"block i by {rows}, block j by {columns}, k by 16, thread i by {own_rows}, "
            f"thread j by {own_columns}, k, unroll i, unroll j"
        )
        return f"""{self.header()} {{
  {_COMPUTE}
  schedule for gpu {{
    loops acc ({nest})
    place C in acc.j0
  }}
  memory for gpu {{
    cache A, B in acc.k0
    layout A.cache [i, k] -> [k, i]
  }}
}}"""

    def on_cpu(self, rows: int, columns: int) -> str:
        """Rows of lanes in registers."""
        nest = f"parallel i by {rows}, j by {columns}, k by 4, unroll k, unroll i, vectorize j"
        return f"""{self.header()} {{
  {_COMPUTE}
  schedule for cpu {{
    loops acc ({nest})
    place C in acc.j0
    loops C (i, vectorize j)
  }}
}}"""

    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays:
        rng = np.random.default_rng(seed)
        shape, kind = (self.side, self.side), self.element.numpy
        if self.element.is_float:
            return {name: (rng.random(shape) - 0.5).astype(kind) for name in "AB"}
        return {name: rng.integers(*self.element.int_range, shape, kind, True) for name in "AB"}

    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays:
        wide = np.float64 if self.element.is_float else np.int64
        return {"C": inputs["A"].astype(wide) @ inputs["B"].astype(wide)}

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        return compare(outputs, truth, self.tolerance, Facts(accumulation=self.terms))


def gpu_products(target: Target) -> Iterator[tuple[str, TypedProduct, str]]:
    """Name, task and kernel of each product that a GPU is measured with: what it cannot run, or
    lacks the dtype for, is left out."""
    assert target.gpu is not None
    on_host = target.device is not None and target.device.is_host_cpu
    size = "cpu" if on_host else "large" if target.gpu.units >= _LARGE_UNITS else "small"
    for dtype in (DType.F32, DType.F16, DType.F64, DType.S8):
        if dtype.value in target.dtypes_missing:
            continue
        task = TypedProduct(dtype, _SIDES[size])
        for rows, columns, own_rows, own_columns in TILES:
            threads = rows // own_rows * (columns // own_columns)
            shared = 16 * (rows + columns) * dtype.bytes
            if threads <= target.gpu.max_threads and shared <= target.gpu.shared_bytes:
                text = task.on_gpu(rows, columns, own_rows, own_columns)
                yield f"{dtype.value} product {rows}x{columns}", task, text


def cpu_products(target: Target) -> Iterator[tuple[str, TypedProduct, str]]:
    """The dtypes of a CPU beside f32 and bytes, which have products of their own."""
    for dtype in (DType.F16, DType.F64):
        if dtype.value not in target.dtypes_missing:
            task = TypedProduct(dtype, _SIDES["cpu"])
            lanes = max(2, target.vector_bits // max(32, dtype.bits))
            yield f"{dtype.value} product 4x{2 * lanes}", task, task.on_cpu(4, 2 * lanes)
