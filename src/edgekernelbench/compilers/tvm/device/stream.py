"""The time of work in a CUDA stream, by the device's clock.

Calls wait behind a gate until a batch of them is in the queue: then the device goes from one to
the next, and how fast the host enqueues is no part of the result. Two events, one before the first
call and one behind the last, give the time: calls follow each other as they do when a program runs
on, and the cost of starting kernels on the device counts.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from edgekernelbench.compilers.tvm.device.bound import DeviceTimes
from edgekernelbench.targets.cuda_driver import Driver

GATED_LAUNCHES = 512
"""Launches that wait at once: the queue of a stream holds about a thousand before it blocks."""

_GATE_SECONDS = 1.0
"""A gate opens by then: more launches than expected would block the queue, and wait for ever."""

_SEMAPHORE_BYTES = 64  # at least a sem_t, on every platform of Linux


class Gate:
    """Holds a stream back. The stream waits in a function of the host that takes a semaphore."""

    def __init__(self, cuda: Driver, stream: int) -> None:
        self._cuda, self._stream = cuda, stream
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._semaphore = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
        self._wait = ctypes.cast(self._libc.sem_wait, ctypes.c_void_p)
        self._guard: threading.Timer | None = None

    def close(self) -> None:
        """What is enqueued from now on waits. The stream must be empty."""
        self._libc.sem_init(self._semaphore, 0, 0)
        address = ctypes.addressof(self._semaphore)
        self._cuda.call("cuLaunchHostFunc", self._stream, self._wait, address)
        self._guard = threading.Timer(_GATE_SECONDS, self._post)
        self._guard.daemon = True
        self._guard.start()

    def open(self) -> None:
        """Lets it go on, if it has not by itself."""
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None
            self._post()

    def _post(self) -> None:
        self._libc.sem_post(self._semaphore)


class TimedStream:
    """A stream of the current context. ``handle`` is the driver's; it is not destroyed here."""

    def __init__(self, cuda: Driver, handle: int) -> None:
        self._cuda, self.handle = cuda, handle
        self._gate = Gate(cuda, handle)
        self._events = tuple(cuda.made("cuEventCreate", ctypes.c_void_p, 0) for _ in range(2))

    def finish(self) -> None:
        """Returns when the device has done all that is in the stream.

        Raises:
            CudaError: something of it failed.
        """
        self._cuda.call("cuStreamSynchronize", self.handle)

    def timed(self, enqueue: Callable[[], object], count: int, launches: int) -> DeviceTimes:
        """``count`` calls one after another.

        Args:
            enqueue: puts one call into the stream.
            count: how often.
            launches: kernels of a call, about. With more than `GATED_LAUNCHES` there is no gate:
                enqueuing goes on while the first ones run.

        Raises:
            CudaError: a kernel failed.
        """
        batch = max(1, GATED_LAUNCHES // max(1, launches))
        span = host = 0
        for start in range(0, count, batch):
            part = self._batch(enqueue, min(batch, count - start), launches <= GATED_LAUNCHES)
            span, host = span + part[0], host + part[1]
        return DeviceTimes(span, None, host)

    def _batch(self, enqueue: Callable[[], object], count: int, gated: bool) -> tuple[int, int]:
        clock = time.perf_counter_ns
        start, end = self._events
        began = clock()
        try:
            if gated:
                self._gate.close()
            self._cuda.call("cuEventRecord", start, self.handle)
            for _ in range(count):
                enqueue()
            self._cuda.call("cuEventRecord", end, self.handle)
        finally:
            self._gate.open()
        self.finish()
        host = clock() - began
        took = self._cuda.made("cuEventElapsedTime", ctypes.c_float, start, end)
        return min(round(took * 1e6), host), host
