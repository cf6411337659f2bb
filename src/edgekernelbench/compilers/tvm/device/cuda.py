"""Runs launch plans on an NVIDIA device. Needs its driver and NumPy, not the compiler.

Kernels come as machine code (a cubin), so nothing is compiled here. The time is the device's: see
`stream`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgekernelbench.compilers.launch import Call, LaunchPlan, calls
from edgekernelbench.compilers.tvm.device.bound import (
    POISON,
    DeviceMissing,
    DeviceTimes,
    ProgramRefused,
)
from edgekernelbench.compilers.tvm.device.stream import TimedStream
from edgekernelbench.targets.cuda_driver import (
    OUT_OF_MEMORY,
    CudaError,
    Driver,
    DriverMissing,
    driver,
)
from edgekernelbench.targets.device import CudaChoice

_NON_BLOCKING = 1
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class _Allocation:
    """Memory of the device, freed when nothing refers to it any more."""

    def __init__(self, cuda: Driver, size: int) -> None:
        self.address: int = cuda.made("cuMemAlloc_v2", ctypes.c_uint64, size)
        self._free = cuda.function("cuMemFree_v2")

    def __del__(self) -> None:
        if hasattr(self, "_free"):
            self._free(self.address)  # fails where the device has: there is nobody to tell


@dataclass(frozen=True, slots=True)
class Buffer:
    """A stretch of memory of the device."""

    address: int
    size: int
    owner: _Allocation


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch: what `cuLaunchKernel` is given, and what its pointers point to."""

    given: tuple[Any, ...]
    kept: tuple[Any, ...]


def open_device(choice: CudaChoice) -> tuple[Driver, int]:
    """The driver, with the device's primary context current in this thread, and the device's
    number in the driver's order.

    Raises:
        DeviceMissing: it is not (or no longer) there, or cannot be used.
    """
    try:
        cuda = driver()
        for ordinal, device in enumerate(cuda.devices()):
            if cuda.uuid(device) == choice.uuid:
                context = cuda.made("cuDevicePrimaryCtxRetain", ctypes.c_void_p, device)
                cuda.call("cuCtxSetCurrent", context)
                return cuda, ordinal
    except (DriverMissing, CudaError) as error:
        raise DeviceMissing(f"CUDA device '{choice.uuid}' cannot be used: {error}") from error
    raise DeviceMissing(f"CUDA device '{choice.uuid}' is not there")


class CudaProgram:
    """Kernels loaded onto a device, with a stream that takes the time: a `bound.DeviceProgram`.

    Args:
        cubin: machine code for the device's architecture.
        choice: the device.

    Raises:
        DeviceMissing: see `open_device`.
        ProgramRefused: the driver does not load the code.
    """

    def __init__(self, cubin: bytes, choice: CudaChoice) -> None:
        self._cuda, _ = open_device(choice)
        self._launch = self._cuda.function("cuLaunchKernel")
        handle = self._cuda.made("cuStreamCreate", ctypes.c_void_p, _NON_BLOCKING)
        self._stream = TimedStream(self._cuda, handle)
        self._functions: dict[str, int] = {}
        try:
            self._module = self._cuda.made("cuModuleLoadData", ctypes.c_void_p, cubin)
        except CudaError as error:
            raise ProgramRefused(str(error)) from error

    # ------------------------------------------------------------ memory
    def buffer(self, size: int) -> Buffer:
        """See `bound.DeviceProgram.buffer`."""
        size = max(1, size)
        try:
            owner = _Allocation(self._cuda, size)
        except CudaError as error:
            if error.code == OUT_OF_MEMORY:
                raise MemoryError(f"{size} bytes on the device: {error}") from error
            raise
        made = Buffer(owner.address, size, owner)
        self.fill(made, POISON, 0, size)
        self.finish()
        return made

    def part(self, buffer: Buffer, offset: int, size: int) -> Buffer:
        return Buffer(buffer.address + offset, size, buffer.owner)

    def fill(self, buffer: Buffer, byte: int, offset: int, size: int) -> None:
        place = buffer.address + offset
        self._cuda.call("cuMemsetD8Async", place, byte, size, self._stream.handle)

    def write(self, buffer: Buffer, data: np.ndarray, offset: int = 0) -> None:
        """See `bound.DeviceProgram.write`."""
        if data.nbytes:
            place, source = buffer.address + offset, data.ctypes.data
            handle = self._stream.handle
            self._cuda.call("cuMemcpyHtoDAsync_v2", place, source, data.nbytes, handle)

    def read(self, buffer: Buffer, into: np.ndarray, offset: int = 0) -> None:
        place, target = buffer.address + offset, into.ctypes.data
        self._cuda.call("cuMemcpyDtoHAsync_v2", target, place, into.nbytes, self._stream.handle)
        self.finish()

    def finish(self) -> None:
        """See `bound.DeviceProgram.finish`."""
        self._stream.finish()

    # ------------------------------------------------------------ launches
    def prepared(self, plan: LaunchPlan, buffers: Mapping[str, Buffer]) -> tuple[Prepared, ...]:
        """See `bound.DeviceProgram.prepared`."""
        made: dict[tuple, tuple[Any, tuple[Any, ...]]] = {}
        out = []
        for call in calls(plan):
            key = call.kernel, call.arguments
            if key not in made:
                made[key] = _pointers(call, buffers)
            pointers, kept = made[key]
            extents = (*call.groups, *call.group_size, call.shared_bytes)
            given = (self._function(call), *extents, self._stream.handle, pointers, None)
            out.append(Prepared(given, kept))
        return tuple(out)

    def _function(self, call: Call) -> int:
        if call.kernel not in self._functions:
            name = call.kernel.encode()
            made = self._cuda.made("cuModuleGetFunction", ctypes.c_void_p, self._module, name)
            self._functions[call.kernel] = made
        function = self._functions[call.kernel]
        if call.shared_bytes:
            self._cuda.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, call.shared_bytes)
        return function

    def run(self, launches: Sequence[Prepared]) -> None:
        """See `bound.DeviceProgram.run`."""
        self._enqueuer(launches)()
        self.finish()

    def timed(self, launches: Sequence[Prepared], count: int) -> DeviceTimes:
        """See `bound.DeviceProgram.timed`."""
        return self._stream.timed(self._enqueuer(launches), count, len(launches))

    def _enqueuer(self, launches: Sequence[Prepared]) -> Callable[[], None]:
        launch, all_given = self._launch, [each.given for each in launches]
        check = self._cuda.check

        def enqueue() -> None:
            for given in all_given:
                if code := launch(*given):
                    check("cuLaunchKernel", code)

        return enqueue


def _pointers(call: Call, buffers: Mapping[str, Buffer]) -> tuple[Any, tuple[Any, ...]]:
    """The array of pointers to a kernel's arguments, and what they point to."""
    values: list[np.ndarray] = []
    for argument in call.arguments:
        if isinstance(argument, str):
            values.append(np.array([buffers[argument].address], np.uint64))
        else:
            dtype, value = argument
            values.append(np.array([value]).astype(np.dtype(dtype)))
    pointers = (ctypes.c_void_p * max(1, len(values)))(*(v.ctypes.data for v in values))
    return pointers, (*values, buffers)
