"""Runs compiled kernels in this process, on NumPy arrays in place.

Only TVM's run-time library is loaded, not its compiler: 30 ms and 12 MB more than NumPy. One bound
call costs about 0.15 us in Python and in the argument checks of the generated code, and each
parallel loop 2 to 4 us more to start on two cores (measured on a server CPU of 2022).

Threads: set ``TVM_NUM_THREADS`` before the first call of a kernel that has a parallel loop. That
call starts TVM's thread pool; forking after it gives a child whose parallel kernels hang.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.base import Argument, Manifest
from edgekernelbench.ir.dtypes import DType

ALIGNMENT = 64


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype | DType) -> np.ndarray:
    """An uninitialised C-contiguous array whose data begins at a multiple of 64 bytes.

    Generated code loads whole vectors and crashes on less.
    """
    dtype = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(count + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count].view(dtype).reshape(shape)


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """A copy of ``array`` as `aligned_empty` makes them."""
    out = aligned_empty(array.shape, array.dtype)
    out[...] = array
    return out


@functools.lru_cache(maxsize=1)
def load_runtime() -> None:
    """Makes TVM's run-time library available without importing the `tvm` package."""
    if "tvm" in sys.modules:
        return
    spec = importlib.util.find_spec("tvm")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("package 'apache-tvm' is not installed")
    import tvm_ffi  # noqa: F401  (its library must be there before the run time's)

    library = Path(spec.submodule_search_locations[0]) / "lib" / "libtvm_runtime.so"
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def tensor(array: np.ndarray) -> Any:
    """A view of the array as the run time's tensor; bool is passed as bytes, () as one element.

    Raises:
        ValueError: if the array is not C-contiguous or not aligned to 64 bytes.
    """
    import tvm_ffi

    if not array.flags.c_contiguous or (array.size and array.ctypes.data % ALIGNMENT):
        raise ValueError("kernels need C-contiguous arrays aligned to 64 bytes (aligned_empty)")
    plain = array.view(np.uint8) if array.dtype == np.bool_ else array
    return tvm_ffi.from_dlpack(plain.reshape(array.shape or (1,)))


class LoadedKernel:
    """A compiled kernel of a folder that `TvmCompiler.compile` filled.

    Life: construct, `bind` once per draw of the constants, call what it returned repeatedly.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest = Manifest.model_validate_json((folder / "manifest.json").read_text())
        load_runtime()
        import tvm_ffi

        self._module = tvm_ffi.load_module(str((folder / self.manifest.library).resolve()))
        self._arguments = {a.name: a for a in self.manifest.arguments}
        self._tables = {
            name: self._array(name, np.array(values))
            for name, values in self.manifest.tables.items()
        }
        self._constants: dict[str, np.ndarray] = {}

    def _array(self, name: str, values: np.ndarray) -> np.ndarray:
        argument = self._arguments[name]
        out = aligned_empty(argument.shape, argument.dtype)
        out[...] = values.reshape(argument.shape)
        return out

    def set_constants(self, constants: Mapping[str, np.ndarray]) -> None:
        """Takes the values of all const inputs and packs what the kernel wants packed.

        The arrays must not change afterwards.
        """
        wanted = {a.name: a for a in self.manifest.arguments if a.role == "const"}
        for name, argument in wanted.items():
            _check(argument, constants[name])
        self._constants = {name: _usable(constants[name]) for name in wanted}
        packed = [a for a in self.manifest.arguments if a.role == "packed"]
        self._constants |= {a.name: aligned_empty(a.shape, a.dtype) for a in packed}
        if self.manifest.prepack_args:
            arrays = {**self._constants, **self._tables}
            self._module["prepack"](*(tensor(arrays[n]) for n in self.manifest.prepack_args))

    def prepared(self) -> dict[str, np.ndarray]:
        """What the main function reads beside inputs and outputs: after `set_constants`, the
        constants, the packed ones and the tables by name."""
        arrays = {**self._constants, **self._tables}
        return {name: arrays[name] for name in self.manifest.main_args if name in arrays}

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
    ) -> Callable[[], None]:
        """Packs the constants and returns the call that reads ``inputs`` and fills ``outputs``.

        The arrays of inputs and outputs are used where they are: C-contiguous, aligned to 64
        bytes, of the declared dtypes and shapes, and kept alive by the caller.

        Raises:
            ValueError: for an array that is not as declared.
            KeyError: for an array that is missing.
        """
        self.set_constants(consts)
        arrays = {**inputs, **outputs, **self._constants, **self._tables}
        for name in self.manifest.main_args:
            _check(self._arguments[name], arrays[name])
        arguments = tuple(tensor(arrays[name]) for name in self.manifest.main_args)
        return functools.partial(self._module["main"], *arguments)


def _usable(array: np.ndarray) -> np.ndarray:
    """The array itself when kernels can read it in place, else a copy."""
    in_place = array.flags.c_contiguous and array.flags.writeable
    return array if in_place and array.ctypes.data % ALIGNMENT == 0 else aligned_copy(array)


def _check(argument: Argument, array: np.ndarray) -> None:
    if array.dtype != argument.dtype.numpy or array.shape != argument.shape:
        raise ValueError(
            f"'{argument.name}' must be {argument.dtype.value}{list(argument.shape)}, "
            f"not {array.dtype}{list(array.shape)}"
        )
