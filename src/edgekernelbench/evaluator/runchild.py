"""What runs in a contestant's process: load a program, feed it, time it, hand its outputs back.

It knows neither truth nor tolerance nor which samples will be looked at. Commands arrive as
messages, inputs as sealed memory, outputs leave through memory of the parent's.

``bind``: map constants and input sets, prepare the program; ``swap``: map another set in the place
of one; ``run``: a list of samples. A sample
copies an input set into place, overwrites the outputs with a pattern, calls without and then with
the clock running, and may copy the whole arena out. Where the program runs on a device, the arena
has a double there, and the time is the device's.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.baselines.base import DeviceRunner, Runner
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.regions import Arena, Layout, fill, read_only, writable

RunnerFactory = Callable[[Path, dict[str, Any]], Runner | DeviceRunner]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bind(_Message):
    """Descriptors that come along: outputs, constants, the input sets, then the twin if any."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    arena: Layout
    consts: Layout
    sets: Layout
    n_sets: int
    twin_bytes: int | None
    pattern: int
    on_device: bool = False


class Sample(_Message):
    """One sample: which input set, what the outputs hold before, calls before and within the
    reading of the clock, whether the arena is copied out afterwards, and how many bytes of other
    memory are written first, to empty the caches."""

    set: int
    poison: int
    lead: int
    calls: int
    keep: bool = False
    flush_bytes: int = 0


class RunRequest(_Message):
    samples: tuple[Sample, ...]


class _Bound:
    """Arrays of a program, with its inputs.

    Attributes:
        device_ns: of each sample so far, where a device takes the time: its kernels alone (None
            where it does not tell them apart), and what passed on the host meanwhile.
    """

    def __init__(self, runner: Any, bind: Bind, fds: list[int]) -> None:
        out_fd, const_fd, *set_fds = fds
        self._copy_out = writable(out_fd, bind.arena.size)
        self.arena = Arena(bind.arena, bind.pattern)
        self.inputs = {name: self.arena.arrays[name] for name in bind.inputs}
        self.outputs = {name: self.arena.arrays[name] for name in bind.outputs}
        self._set_layout = bind.sets
        self._sets = [self._mapped(fd) for fd in set_fds[: bind.n_sets]]
        consts = Arena(bind.consts, 0)
        consts.bytes[...] = read_only(const_fd, bind.consts.size)
        twin = None
        if bind.twin_bytes is not None:
            twin = read_only(set_fds[bind.n_sets], bind.twin_bytes).tobytes()
        self._consts = consts  # the program may keep pointers into it
        self.device_ns: list[tuple[int | None, int]] = []
        self.load(0)
        started = time.perf_counter_ns()
        self._bind(runner, bind.arena, consts.arrays, twin)
        self.bind_ns = time.perf_counter_ns() - started

    def _bind(
        self, runner: Any, arena: Layout, consts: dict[str, np.ndarray], twin: bytes | None
    ) -> None:
        raise NotImplementedError

    def _measure(self, plan: Sample) -> int:
        """Nanoseconds of the counted calls, after the others."""
        raise NotImplementedError

    def _hand_back(self, copy: np.ndarray) -> None:
        raise NotImplementedError

    def _mapped(self, fd: int) -> dict[str, np.ndarray]:
        return self._set_layout.views(read_only(fd, self._set_layout.size))

    def swap(self, number: int, fd: int) -> None:
        self._sets[number] = self._mapped(fd)
        os.close(fd)

    def load(self, number: int) -> None:
        for name, array in self.inputs.items():
            np.copyto(array, self._sets[number][name])

    def sample(self, plan: Sample) -> int:
        """Nanoseconds that ``plan.calls`` calls took together."""
        self.load(plan.set)
        for array in self.outputs.values():
            fill(array, plan.poison)
        took = self._measure(plan)
        if plan.keep:
            self._hand_back(self._copy_out)
        return took


class _OnHost(_Bound):
    """A program in this process, on the arena itself."""

    def _bind(
        self, runner: Runner, arena: Layout, consts: dict[str, np.ndarray], twin: bytes | None
    ) -> None:
        self._other: np.ndarray | None = None
        self.call = runner.bind(self.inputs, consts, self.outputs, twin)

    def _measure(self, plan: Sample) -> int:
        if plan.flush_bytes:
            self._flush(plan.flush_bytes)
        call = self.call
        for _ in range(plan.lead):
            call()
        repeat = range(plan.calls)
        clock = time.perf_counter_ns
        began = clock()
        for _ in repeat:
            call()
        return clock() - began

    def _hand_back(self, copy: np.ndarray) -> None:
        copy[...] = self.arena.bytes

    def _flush(self, size: int) -> None:
        if self._other is None or self._other.size < size:
            self._other = np.zeros(size, np.uint8)
        self._other += 1


class _OnDevice(_Bound):
    """A program on a device, on a double of the arena there."""

    def _bind(
        self,
        runner: DeviceRunner,
        arena: Layout,
        consts: dict[str, np.ndarray],
        twin: bytes | None,
    ) -> None:
        spans = {slot.name: (slot.offset, slot.bytes) for slot in arena.slots}
        self._call = runner.bind(self.arena.bytes, spans, consts, twin)

    def _measure(self, plan: Sample) -> int:
        call = self._call
        call.upload()
        if plan.flush_bytes:
            call.flush(plan.flush_bytes)
        call.untimed(plan.lead)
        took = call.timed(plan.calls)
        self.device_ns.append((took.kernels_ns, took.host_ns))
        return took.span_ns

    def _hand_back(self, copy: np.ndarray) -> None:
        self._call.download(copy)


def serve(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """The worker's entry. ``payload``: ``factory`` (``module:function``) and the ``options``
    that it wants to know."""
    gc.disable()
    module, _, function = payload["factory"].partition(":")
    factory: RunnerFactory = getattr(importlib.import_module(module), function)
    runner: Runner | DeviceRunner | None = None
    bound: _Bound | None = None
    reply: dict[str, Any]
    while True:
        message, received = wire.receive_with_fds(connection)
        try:
            match message.pop("op"):
                case "bind":
                    loading = time.perf_counter_ns()
                    runner = runner or factory(Path.cwd(), payload["options"])
                    load_ns = time.perf_counter_ns() - loading
                    wanted = Bind.model_validate(message)
                    made = _OnDevice if wanted.on_device else _OnHost
                    bound = made(runner, wanted, received)
                    reply: dict[str, Any] = {"bind_ns": bound.bind_ns, "load_ns": load_ns}
                case "swap":
                    assert bound is not None
                    bound.swap(message["set"], received[0])
                    reply = {"swapped": message["set"]}
                case "run":
                    assert bound is not None
                    request = RunRequest.model_validate(message)
                    bound.device_ns.clear()
                    reply = {"ns": [bound.sample(plan) for plan in request.samples]}
                    reply["device_ns"] = bound.device_ns
                case other:
                    raise ValueError(f"unknown operation {other!r}")
        except Exception as error:
            # A program's exception ends its part, not the process: the parent decides.
            reply = {
                "error": f"{type(error).__name__}: {error}"[:2000],
                "memory": _is_memory(error),
                "trace": traceback.format_exc(limit=-4)[-2000:],
            }
        wire.send(connection, reply)


def _is_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "bad_alloc" in str(error)
