"""The dtypes a kernel may name, and what happens to them when they are read."""

from __future__ import annotations

from enum import StrEnum

import numpy as np


class DType(StrEnum):
    """A storage dtype of the kernel IR. The value is its spelling in the text."""

    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    S8 = "s8"
    U8 = "u8"
    S16 = "s16"
    U16 = "u16"
    S32 = "s32"
    U32 = "u32"
    S64 = "s64"
    BOOL = "bool"

    @property
    def is_float(self) -> bool:
        return self in (DType.F16, DType.F32, DType.F64)

    @property
    def is_int(self) -> bool:
        return not self.is_float and self is not DType.BOOL

    @property
    def is_signed(self) -> bool:
        return self.is_float or self in (DType.S8, DType.S16, DType.S32, DType.S64)

    @property
    def bits(self) -> int:
        """Bits that carry the value (a bool counts 1; it is stored in one byte)."""
        return 1 if self is DType.BOOL else int(self.value[1:])

    @property
    def bytes(self) -> int:
        """Bytes one stored element takes."""
        return max(1, self.bits // 8)

    @property
    def numpy(self) -> np.dtype:
        return _NUMPY[self]

    @property
    def widened(self) -> DType:
        """The dtype a load yields: f16 becomes f32, integers below 32 bits become s32."""
        return _WIDENED.get(self, self)

    @property
    def promoted(self) -> DType:
        """The dtype that arithmetic on a value has: bools and integers below 32 bits become s32.

        Unlike a load, arithmetic does not widen f16: a value that was cast to f16 stays one.
        """
        if self is DType.F16:
            return self
        return DType.S32 if self is DType.BOOL else self.widened

    @property
    def int_range(self) -> tuple[int, int]:
        """Lowest and highest value of an integer or bool dtype.

        Raises:
            ValueError: for a float dtype, which has no such range.
        """
        if self.is_float:
            raise ValueError(f"{self.value} is not an integer dtype")
        if self is DType.BOOL:
            return 0, 1
        if self.is_signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


_WIDENED = {
    DType.F16: DType.F32,
    DType.S8: DType.S32,
    DType.U8: DType.S32,
    DType.S16: DType.S32,
    DType.U16: DType.S32,
}

_NUMPY = {
    DType.F16: np.dtype(np.float16),
    DType.F32: np.dtype(np.float32),
    DType.F64: np.dtype(np.float64),
    DType.S8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.S16: np.dtype(np.int16),
    DType.U16: np.dtype(np.uint16),
    DType.S32: np.dtype(np.int32),
    DType.U32: np.dtype(np.uint32),
    DType.S64: np.dtype(np.int64),
    DType.BOOL: np.dtype(np.bool_),
}
