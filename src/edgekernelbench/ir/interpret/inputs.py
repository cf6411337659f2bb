"""Checks and converts the arrays a program is run on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret import numeric
from edgekernelbench.ir.interpret.frame import InterpretError


def bind_inputs(
    program: core.Program, inputs: Mapping[str, np.ndarray], mode: numeric.Mode
) -> dict[str, np.ndarray]:
    """Inputs and tables by name, C-contiguous, in the dtypes of the mode.

    Raises:
        InterpretError: a name is missing or unknown, a shape or a dtype is not the declared one.
    """
    known = [tensor.name for tensor in program.inputs]
    for name in inputs:
        if name not in known:
            raise InterpretError(f"unknown input '{name}'; the inputs are {', '.join(known)}")
    arrays = {}
    for tensor in program.inputs:
        if tensor.name not in inputs:
            raise InterpretError(f"input '{tensor.name}' is missing")
        arrays[tensor.name] = _convert(tensor, inputs[tensor.name], mode)
    for table in program.tables:
        dtype = numeric.numpy_dtype(table.tensor.dtype, mode)
        arrays[table.tensor.name] = np.array(table.values, dtype).reshape(table.tensor.shape)
    return arrays


def _convert(tensor: core.Tensor, value: object, mode: numeric.Mode) -> np.ndarray:
    if not isinstance(value, np.ndarray | np.generic):
        raise InterpretError(f"input '{tensor.name}' is a {type(value).__name__}, not an array")
    array = np.asarray(value)
    if array.shape != tensor.shape:
        raise InterpretError(
            f"input '{tensor.name}' has shape {array.shape}, declared is {tensor.shape}"
        )
    wide = mode == "f64" and tensor.dtype.is_float and array.dtype == np.float64
    if array.dtype != tensor.dtype.numpy and not wide:
        raise InterpretError(
            f"input '{tensor.name}' has dtype {array.dtype}, declared is {tensor.dtype.value}"
        )
    return np.ascontiguousarray(array, numeric.numpy_dtype(tensor.dtype, mode)).reshape(array.shape)
