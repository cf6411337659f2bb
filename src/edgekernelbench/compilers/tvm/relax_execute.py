"""Runs models that `relax_build` built, on NumPy arrays in place, with TVM's run time only.

The virtual machine allocates its results itself, so a call ends with a copy of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.execute import _usable, load_runtime
from edgekernelbench.compilers.tvm.relax_build import LIBRARY, RelaxInterface

_CPU, _POOLED = 1, 2


class LoadedRelax:
    """A model in a folder, with the names of its arguments."""

    def __init__(self, folder: Path, interface: RelaxInterface) -> None:
        load_runtime()
        import tvm_ffi

        self._interface = interface
        library = tvm_ffi.load_module(str((folder / LIBRARY).resolve()))
        self._machine = library["vm_load_executable"]()
        self._machine["vm_initialization"](_CPU, 0, _POOLED)

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        params: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
    ) -> Callable[[], None]:
        """The call that reads ``inputs`` and ``params`` where they are, and fills ``outputs``.

        Calls the model once, to see that its results are of the shapes and dtypes of ``outputs``.

        Raises:
            KeyError: an array is missing.
            ValueError: a result does not fit.
        """
        kept = [_usable(inputs[name]) for name in self._interface.inputs]
        kept += [_usable(params[name]) for name in self._interface.params]
        arguments = tuple(_view(array) for array in kept)
        function = self._machine["main"]
        targets = [outputs[name] for name in self._interface.outputs]
        results = _several(function(*arguments))
        for name, result, target in zip(self._interface.outputs, results, targets, strict=True):
            _check(name, result, target)
        places = tuple((target.ctypes.data, target.nbytes) for target in targets)
        move = ctypes.memmove

        def call() -> None:
            made = function(*arguments)
            for result, (place, size) in zip(_several(made), places, strict=True):
                move(place, result.data_ptr(), size)

        def call_single(place: int = places[0][0], size: int = places[0][1]) -> None:
            move(place, function(*arguments).data_ptr(), size)

        call.kept = call_single.kept = kept  # type: ignore[attr-defined]  # arguments point there
        return call_single if len(places) == 1 else call


def _view(array: np.ndarray) -> Any:
    import tvm_ffi

    return tvm_ffi.from_dlpack(array)


def _several(results: Any) -> tuple[Any, ...]:
    return tuple(results) if not hasattr(results, "data_ptr") else (results,)


def _check(name: str, result: Any, target: np.ndarray) -> None:
    made = np.from_dlpack(result)
    if made.shape != target.shape or made.dtype != target.dtype:
        raise ValueError(f"'{name}' came out as {made.dtype}{list(made.shape)}")
