"""Loads a kernel folder onto a device: constants, packing, and the call to be timed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.base import Argument, Manifest, Role
from edgekernelbench.compilers.tvm.device.bound import BoundCall, DeviceProgram, device_copy
from edgekernelbench.targets.device import Choice, CudaChoice
from edgekernelbench.targets.opencl import private_caches

Arrays = Mapping[str, np.ndarray]
Spans = Mapping[str, tuple[int, int]]


def open_program(code: Path, choice: Choice) -> DeviceProgram:
    """The kernels in a file (source for OpenCL, machine code for CUDA) on a device.

    Raises:
        DeviceMissing: it is not there.
        ProgramRefused: its driver does not take them.
    """
    if isinstance(choice, CudaChoice):
        from edgekernelbench.compilers.tvm.device.cuda import CudaProgram

        return CudaProgram(code.read_bytes(), choice)
    from edgekernelbench.compilers.tvm.device.opencl import OpenClProgram

    return OpenClProgram(code.read_text(), choice)


class LoadedDeviceKernel:
    """A kernel that `TvmCompiler.compile` built for a device.

    Life: construct, `bind` once per draw of the constants, use the call repeatedly.

    Raises:
        DeviceMissing, ProgramRefused: see `open_program`.
    """

    def __init__(self, folder: Path, choice: Choice) -> None:
        # Read by drivers when they are first used in this process.
        os.environ.update(private_caches(str(folder.resolve())))
        self.manifest = Manifest.model_validate_json((folder / "manifest.json").read_text())
        if "main" not in self.manifest.plans:
            raise ValueError(f"'{self.manifest.kernel}' was built for '{self.manifest.target}'")
        self._program = open_program(folder / self.manifest.library, choice)
        self._arguments = {a.name: a for a in self.manifest.arguments}
        self._tables = {
            name: device_copy(self._program, _typed(self._arguments[name], values))
            for name, values in self.manifest.tables.items()
        }

    def bind(self, host: np.ndarray, spans: Spans, consts: Arrays) -> BoundCall:
        """Packs the constants, and places inputs and outputs.

        Args:
            host: memory in which inputs and outputs lie, guards between them included.
            spans: by name, offset and size of each in bytes.
            consts: the values of all const inputs.

        Raises:
            ValueError: for an array that is not as declared.
            KeyError: for one that is missing.
            MemoryError: the device has not enough.
        """
        for argument in self._with_role("input", "output"):
            if spans[argument.name][1] != _bytes(argument):
                raise ValueError(f"'{argument.name}' must be of {_bytes(argument)} bytes")
        others = self._constants(consts)
        return BoundCall(self._program, self.manifest.plans["main"], host, spans, others)

    def run_apart(self, inputs: Arrays, consts: Arrays) -> dict[str, np.ndarray]:
        """The outputs of one call with every array in a buffer of its own, of just its size, so
        that a checker sees each access outside of it. For what is raised see `bind`."""
        buffers = self._constants(consts)
        for argument in self._with_role("input"):
            _check(argument, inputs[argument.name])
            buffers[argument.name] = device_copy(self._program, inputs[argument.name])
        outputs = tuple(self._with_role("output"))
        for argument in outputs:
            buffers[argument.name] = self._program.buffer(_bytes(argument))
        plan = self.manifest.plans["main"]
        buffers |= {s.name: self._program.buffer(s.bytes) for s in plan.workspaces}
        self._program.run(self._program.prepared(plan, buffers))
        results = {a.name: np.empty(a.shape, a.dtype.numpy) for a in outputs}
        for name, array in results.items():
            if array.size:
                self._program.read(buffers[name], array)
        return results

    def _with_role(self, *roles: Role) -> Iterator[Argument]:
        return (a for a in self.manifest.arguments if a.role in roles)

    def _constants(self, consts: Arrays) -> dict[str, Any]:
        """Buffers of tables and constants, and of what is packed of them."""
        buffers: dict[str, Any] = dict(self._tables)
        for argument in self._with_role("const"):
            array = consts[argument.name]
            _check(argument, array)
            buffers[argument.name] = device_copy(self._program, array)
        for argument in self._with_role("packed"):
            buffers[argument.name] = self._program.buffer(_bytes(argument))
        self._prepack(buffers)
        return buffers

    def _prepack(self, buffers: dict[str, Any]) -> None:
        plan = self.manifest.plans.get("prepack")
        if plan is not None:
            spaces = {s.name: self._program.buffer(s.bytes) for s in plan.workspaces}
            self._program.run(self._program.prepared(plan, {**buffers, **spaces}))


def _bytes(argument: Argument) -> int:
    return int(np.prod(argument.shape, dtype=np.int64)) * argument.dtype.bytes


def _typed(argument: Argument, values: tuple[int | float, ...]) -> np.ndarray:
    return np.array(values).astype(argument.dtype.numpy).reshape(argument.shape)


def _check(argument: Argument, array: np.ndarray) -> None:
    if array.dtype != argument.dtype.numpy or array.shape != argument.shape:
        raise ValueError(
            f"'{argument.name}' must be {argument.dtype.value}{list(argument.shape)}, "
            f"not {array.dtype}{list(array.shape)}"
        )
