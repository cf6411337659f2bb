"""ONNX element types as dtypes of the kernel language."""

from __future__ import annotations

from edgekernelbench.ir.dtypes import DType

# Numbers of onnx.TensorProto.DataType, which is not imported for the sake of speed.
_DTYPES = {
    1: DType.F32, 2: DType.U8, 3: DType.S8, 4: DType.U16, 5: DType.S16, 6: DType.S32,
    7: DType.S64, 9: DType.BOOL, 10: DType.F16, 11: DType.F64, 12: DType.U32,
}  # fmt: skip


def dtype_of(element: int) -> DType | None:
    """None where the kernel language has no such dtype (strings, bfloat16, 4-bit numbers)."""
    return _DTYPES.get(element)


def spelled(element: int) -> str:
    """The name that ONNX gives an element type."""
    from onnx import TensorProto

    return TensorProto.DataType.Name(element).lower()  # type: ignore[arg-type]
