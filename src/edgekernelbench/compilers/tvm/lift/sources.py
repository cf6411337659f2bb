"""What a buffer of a loop function stands for in the program that is being built."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.words import RESERVED

MAX_TABLE_ELEMENTS = 1 << 16

_DTYPES = {
    "float16": DType.F16,
    "float32": DType.F32,
    "float64": DType.F64,
    "int8": DType.S8,
    "uint8": DType.U8,
    "int16": DType.S16,
    "uint16": DType.U16,
    "int32": DType.S32,
    "uint32": DType.U32,
    "int64": DType.S64,
    "bool": DType.BOOL,
}


def dtype_of(name: str) -> DType:
    """The dtype that TVM calls ``name``.

    Raises:
        Refused: the kernel IR has no such dtype.
    """
    if name not in _DTYPES:
        raise Refused(f"dtype {name}")
    return _DTYPES[name]


@dataclass(frozen=True, slots=True)
class Constant:
    """A value of the graph that is known; ``number`` tells constants apart."""

    array: np.ndarray
    number: int


Source = Tensor | Constant


@dataclass(slots=True)
class Builder:
    """The program so far: names, variables, tables, stages."""

    names: set[str]
    next_uid: int = 0
    tables: dict[int, core.Table] = field(default_factory=dict)
    stages: list[core.Stage] = field(default_factory=list)

    def var(self, name: str, dtype: DType = DType.S32) -> core.Var:
        self.next_uid += 1
        return core.Var(name, self.next_uid - 1, dtype)

    def fresh(self, wanted: str) -> str:
        """``wanted``, or the same with a number behind it; never a reserved word."""
        wanted = "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "_" for c in wanted)
        wanted = ".".join(f"{w}_" if w in RESERVED else w for w in wanted.split("."))
        name, k = wanted, 1
        while name in self.names:
            k += 1
            name = f"{wanted}_{k}"
        self.names.add(name)
        return name

    def table(self, constant: Constant) -> Tensor:
        """The table of a constant; small numbers only.

        Raises:
            Refused: it is too large to be part of a program's text.
        """
        if constant.number not in self.tables:
            array = constant.array
            if array.size > MAX_TABLE_ELEMENTS:
                raise Refused(f"a constant of {array.size} elements in the graph")
            dtype = dtype_of(str(array.dtype))
            tensor = Tensor(self.fresh("const"), dtype, array.shape, "table")
            self.tables[constant.number] = core.Table(tensor, tuple(array.reshape(-1).tolist()))
        return self.tables[constant.number].tensor
