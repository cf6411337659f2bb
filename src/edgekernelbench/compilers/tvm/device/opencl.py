"""Runs launch plans on an OpenCL device. Needs pyopencl and NumPy, not the compiler.

Time is what the device's own clock says. Launches wait behind a gate until a batch of them is in
the queue: then the device goes from one to the next, and how fast Python enqueues is no part of
the result. The time of a call reaches from the start of its first kernel to the end of its last,
so the gaps between kernels, which fusing them would save, count. The sum of the kernels alone and
what the host spent are reported beside it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
from edgekernelbench.targets.device import DeviceChoice
from edgekernelbench.targets.opencl_probe import numbered

GATED_LAUNCHES = 256
"""Launches that wait in the queue at once: drivers hold about a thousand before they block."""


def open_device(choice: DeviceChoice) -> Any:
    """The device, as pyopencl knows it.

    Raises:
        DeviceMissing: it is not (or no longer) there.
    """
    import pyopencl as cl

    wanted = choice.platform, choice.name, choice.index
    for platform, device, index in numbered(cl):
        if (platform.name.strip(), device.name.strip(), index) == wanted:
            return device
    raise DeviceMissing(f"OpenCL device '{choice.name}' of '{choice.platform}' is not there")


class OpenClProgram:
    """A program built for a device, with a queue that takes the time.

    Raises:
        ProgramRefused: the driver's compiler does not take the source.
    """

    def __init__(self, source: str, choice: DeviceChoice) -> None:
        import pyopencl as cl

        self._cl = cl
        self.device = open_device(choice)
        self._context = cl.Context([self.device])
        properties = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(self._context, properties=properties)
        try:
            self._program = cl.Program(self._context, source).build()
        except cl.RuntimeError as error:
            raise ProgramRefused(str(error)) from error

    def limits(self, kernel: str) -> tuple[int, int]:
        """Work items that a group of a kernel may have, and bytes of local memory it takes."""
        info = self._cl.kernel_work_group_info
        made = self._cl.Kernel(self._program, kernel)
        return (
            made.get_work_group_info(info.WORK_GROUP_SIZE, self.device),
            made.get_work_group_info(info.LOCAL_MEM_SIZE, self.device),
        )

    # ------------------------------------------------------------ memory
    def buffer(self, size: int) -> Any:
        """Memory of the device.

        Raises:
            MemoryError: there is not enough, or not in one piece.
        """
        cl = self._cl
        try:
            made = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(1, size))
            # Drivers allocate on first use: here it is memory that runs out, later it is a crash.
            cl.enqueue_fill_buffer(self._queue, made, np.array([POISON], np.uint8), 0, max(1, size))
            self._queue.finish()
        except (cl.MemoryError, cl.LogicError, cl.RuntimeError) as error:
            raise MemoryError(f"{size} bytes on the device: {error}") from error
        return made

    def part(self, buffer: Any, offset: int, size: int) -> Any:
        """A stretch of a buffer; it begins where the device's alignment allows."""
        return buffer.get_sub_region(offset, max(1, size))

    def fill(self, buffer: Any, byte: int, offset: int, size: int) -> None:
        self._cl.enqueue_fill_buffer(self._queue, buffer, np.array([byte], np.uint8), offset, size)

    def write(self, buffer: Any, data: np.ndarray, offset: int = 0) -> None:
        """Starts copying ``data`` to the device; it must not change before `finish`."""
        self._cl.enqueue_copy(self._queue, buffer, data, dst_offset=offset, is_blocking=False)

    def read(self, buffer: Any, into: np.ndarray, offset: int = 0) -> None:
        self._cl.enqueue_copy(self._queue, into, buffer, src_offset=offset, is_blocking=True)

    def finish(self) -> None:
        """Returns when the device has done all it was told."""
        self._queue.finish()

    # ------------------------------------------------------------ launches
    def prepared(self, plan: LaunchPlan, buffers: Mapping[str, Any]) -> tuple[Prepared, ...]:
        """The launches of a call with their arguments set."""
        made: dict[tuple[str, tuple], Any] = {}
        kept = tuple(buffers.values())
        out = []
        for call in calls(plan):
            key = call.kernel, call.arguments
            if key not in made:
                made[key] = self._kernel(call, buffers)
            size = tuple(g * n for g, n in zip(call.groups, call.group_size, strict=True))
            out.append(Prepared(made[key], size, call.group_size, kept))
        return tuple(out)

    def _kernel(self, call: Call, buffers: Mapping[str, Any]) -> Any:
        kernel = self._cl.Kernel(self._program, call.kernel)
        for number, argument in enumerate(call.arguments):
            if isinstance(argument, str):
                kernel.set_arg(number, buffers[argument])
            else:
                dtype, value = argument
                kernel.set_arg(number, np.dtype(dtype).type(value))
        return kernel

    def run(self, launches: Sequence[Prepared]) -> None:
        """One call, untimed."""
        for launch in launches:
            self._enqueue(launch, None)
        self.finish()

    def timed(self, launches: Sequence[Prepared], count: int) -> DeviceTimes:
        """``count`` calls one after another.

        Raises:
            RuntimeError: the device reports an error, or times that cannot be.
        """
        batch = max(1, GATED_LAUNCHES // max(1, len(launches)))
        span = kernels = host = 0
        for start in range(0, count, batch):
            part = self._batch(launches, min(batch, count - start))
            span, kernels, host = span + part[0], kernels + part[1], host + part[2]
        return DeviceTimes(span, kernels, host)

    def _batch(self, launches: Sequence[Prepared], count: int) -> tuple[int, int, int]:
        clock = time.perf_counter_ns
        gate = self._cl.UserEvent(self._context)
        complete = self._cl.command_execution_status.COMPLETE
        events: list[list[Any]] = []
        waiting = 0
        began = clock()
        for _ in range(count):
            of_call = []
            for launch in launches:
                of_call.append(self._enqueue(launch, [gate] if waiting == 0 else None))
                waiting += 1
                if waiting == GATED_LAUNCHES:
                    gate.set_status(complete)
            events.append(of_call)
        if waiting < GATED_LAUNCHES:
            gate.set_status(complete)
        self.finish()
        host = clock() - began
        tick = self.device.profiling_timer_resolution
        spans = [span_and_kernels(of_call, tick) for of_call in events if of_call]
        return sum(s for s, _ in spans), sum(k for _, k in spans), host

    def _enqueue(self, launch: Prepared, wait_for: list[Any] | None) -> Any:
        return self._cl.enqueue_nd_range_kernel(
            self._queue, launch.kernel, launch.size, launch.group_size, wait_for=wait_for
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel with its arguments, and extents in work items."""

    kernel: Any
    size: tuple[int, ...]
    group_size: tuple[int, int, int]
    kept: tuple[Any, ...] = ()  # buffers that it is given: a kernel does not hold them


def span_and_kernels(events: Sequence[Any], tick: int) -> tuple[int, int]:
    """Nanoseconds from the first start to the last end, and of the kernels alone.

    Args:
        events: of launches that ran one after another.
        tick: resolution of the clock: by so much neighbours may seem to overlap.

    Raises:
        RuntimeError: the times cannot be.
    """
    intervals = [(e.profile.start, e.profile.end) for e in events]
    span = intervals[-1][1] - intervals[0][0]
    kernels = sum(end - start for start, end in intervals)
    backwards = any(end < start for start, end in intervals)
    if intervals[0][0] <= 0 or backwards or kernels > span + tick * len(intervals):
        raise RuntimeError("the device's profiling clock gives times that cannot be")
    return span, min(kernels, span)
