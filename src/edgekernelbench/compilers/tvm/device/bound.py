"""A launch plan bound to arrays on a device, whatever drives it.

Whoever drives a kind of device provides a `DeviceProgram`: OpenCL's is in `opencl`, CUDA's in
`cuda`. This part needs neither a driver nor the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from edgekernelbench.compilers.launch import LaunchPlan

POISON = 0xFF
"""What fresh memory of a device holds: NaN, or -1."""

_GUARD = 4096
_GUARD_BYTE = 0xA5


class DeviceMissing(RuntimeError):
    """The device that a target names cannot be had."""


class ProgramRefused(Exception):
    """The driver does not take a program; the text is its log."""


class StrayWrite(Exception):
    """A kernel wrote where nothing of its own is."""


class DeviceTimes(NamedTuple):
    """Nanoseconds of several calls together.

    Attributes:
        span_ns: by the device's clock, from the first start to the last end.
        kernels_ns: by the device's clock, the kernels alone; None where it does not tell them
            apart.
        host_ns: by the host's clock, from the first launch until the queue is empty.
    """

    span_ns: int
    kernels_ns: int | None
    host_ns: int


class DeviceProgram(Protocol):
    """Kernels loaded onto a device, its memory, and a queue that takes the time. Buffers and
    launches are the driver's own."""

    def buffer(self, size: int) -> Any:
        """Memory of the device that holds `POISON`.

        Raises:
            MemoryError: there is not enough, or not in one piece.
        """
        ...

    def part(self, buffer: Any, offset: int, size: int) -> Any:
        """A stretch of a buffer; it begins where the device's alignment allows."""
        ...

    def fill(self, buffer: Any, byte: int, offset: int, size: int) -> None: ...

    def write(self, buffer: Any, data: np.ndarray, offset: int = 0) -> None:
        """Starts copying ``data`` to the device; it must not change before `finish`."""
        ...

    def read(self, buffer: Any, into: np.ndarray, offset: int = 0) -> None: ...

    def finish(self) -> None:
        """Returns when the device has done all it was told."""
        ...

    def prepared(self, plan: LaunchPlan, buffers: Mapping[str, Any]) -> Sequence[Any]:
        """The launches of a call with their arguments set."""
        ...

    def run(self, launches: Sequence[Any]) -> None:
        """One call, untimed."""
        ...

    def timed(self, launches: Sequence[Any], count: int) -> DeviceTimes:
        """``count`` calls one after another."""
        ...


class BoundCall:
    """A plan bound to arrays on the device.

    Inputs and outputs lie in one piece of its memory, as they do in ``host``: what is between
    them is copied there once, so whatever a kernel writes outside of its arrays is still seen
    when the piece comes back.

    Args:
        program: built for the device.
        plan: what to run.
        host: bytes of inputs, outputs and the guards around them.
        spans: where in it each of them lies: offset and size in bytes.
        others: further buffers (constants, packed ones) by name.
    """

    def __init__(
        self,
        program: DeviceProgram,
        plan: LaunchPlan,
        host: np.ndarray,
        spans: Mapping[str, tuple[int, int]],
        others: Mapping[str, Any],
    ) -> None:
        self._program = program
        self._host = host
        self._spans = tuple(spans.values())
        self._flushed: Any = None
        self._arena = program.buffer(host.size)
        program.write(self._arena, host)
        program.finish()
        views = {name: program.part(self._arena, o, n) for name, (o, n) in spans.items()}
        self._spaces = {space.name: _Guarded(program, space.bytes) for space in plan.workspaces}
        inner = {name: space.view for name, space in self._spaces.items()}
        self._launches = program.prepared(plan, {**views, **others, **inner})
        # Drivers finish compiling when a kernel first runs with its sizes.
        program.run(self._launches)

    @property
    def launches(self) -> int:
        return len(self._launches)

    def upload(self) -> None:
        """Copies every array, but not what lies between, to the device."""
        for offset, size in self._spans:
            self._program.write(self._arena, self._host[offset : offset + size], offset)
        self._program.finish()

    def flush(self, size: int) -> None:
        """Writes that much other memory, so that little of the arrays is left in caches."""
        if self._flushed is None or self._flushed.size < size:
            self._flushed = self._program.buffer(size)
        self._program.fill(self._flushed, 1, 0, size)
        self._program.finish()

    def untimed(self, count: int) -> None:
        for _ in range(count):
            self._program.run(self._launches)

    def timed(self, count: int) -> DeviceTimes:
        """See `DeviceProgram.timed`."""
        return self._program.timed(self._launches, count)

    def download(self, into: np.ndarray) -> None:
        """Copies the whole piece, guards included, back.

        Raises:
            StrayWrite: something was written around a workspace.
        """
        self._program.read(self._arena, into)
        for name, space in self._spaces.items():
            if space.damaged():
                raise StrayWrite(f"wrote outside of its workspace '{name.partition('#')[0]}'")


class _Guarded:
    """A workspace with guard bytes on both sides; its contents are poison."""

    def __init__(self, program: DeviceProgram, size: int) -> None:
        self._program, self._size = program, size
        self._whole = program.buffer(size + 2 * _GUARD)
        for offset in self._guards():
            program.fill(self._whole, _GUARD_BYTE, offset, _GUARD)
        program.finish()
        self.view = program.part(self._whole, _GUARD, size)

    def _guards(self) -> Iterable[int]:
        return (0, self._size + _GUARD)

    def damaged(self) -> bool:
        read = np.empty(_GUARD, np.uint8)
        for offset in self._guards():
            self._program.read(self._whole, read, offset)
            if (read != _GUARD_BYTE).any():
                return True
        return False


def device_copy(program: DeviceProgram, array: np.ndarray) -> Any:
    """A buffer with the values of an array."""
    data = np.ascontiguousarray(array)
    made = program.buffer(data.nbytes)
    program.write(made, data)
    program.finish()
    return made
