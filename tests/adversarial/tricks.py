"""What a kernel's process tries. Each makes the function that is called in the kernel's place.

A trick that only needs to succeed once is tried at the first call; if the system lets it, the
kernel's own right result follows.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import edgekernelbench

Call = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Around:
    """What a trick finds: the honest call, the arrays, and what the test tells it."""

    right: Call
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    about: str


Trick = Callable[[Around], Call]


def once(attempt: Callable[[str], object]) -> Trick:
    """Tries it at the first call; then the result is right."""

    def make(around: Around) -> Call:
        tried: list[object] = []

        def call() -> None:
            if not tried:
                tried.append(True)
                attempt(around.about)
            around.right()

        return call

    return make


def libc(name: str, *arguments: Any) -> int:
    """A call of the C library, which raises."""
    library = ctypes.CDLL(None, use_errno=True)
    result = getattr(library, name)(*arguments)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def connection() -> socket.socket:
    """This process's end of the line to its parent."""
    return next(s for s in gc.get_objects() if isinstance(s, socket.socket) and s.fileno() >= 0)


# ---------------------------------------------------------------- the system
def read(path: str) -> None:
    Path(path).read_bytes()


def change(path: str) -> None:
    """Opens a file as one does to change it, and leaves it as it is."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def create(path: str) -> None:
    with open(path, "x"):  # noqa: PTH123
        pass


def connect(path: str) -> None:
    socket.socket(socket.AF_UNIX).connect(path)


def shared_memory(_: str) -> None:
    created, gone = 0o1600, 0
    number = libc("shmget", 0x6B65726E, 4096, created)
    libc("shmctl", number, gone, None)


def read_memory(_: str) -> None:
    with open(f"/proc/{os.getppid()}/mem", "rb"):  # noqa: PTH123
        pass


def copy_memory(_: str) -> None:
    here = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(here), 8)
    libc("process_vm_readv", os.getppid(), vector, 1, vector, 1, 0)


def write_inputs(_: str) -> None:
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            if "sealed" in str(Path(f"/proc/self/fd/{number}").readlink()):
                break
    os.pwrite(number, bytes(8), 0)


def pin_neighbour(_: str) -> None:
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))


def idle_neighbour(_: str) -> None:
    os.sched_setscheduler(os.getppid(), os.SCHED_OTHER, os.sched_param(0))


def raise_limit(_: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def flood_log(_: str) -> None:
    for _ in range(100):
        os.write(1, bytes(1 << 20))


def recurse(_: str) -> None:
    nested: tuple[Any, ...] = ()
    for _ in range(1 << 20):
        nested = (nested,)
    hash(nested)


SYSTEM: dict[str, Trick] = {
    "fork": once(lambda _: os.fork()),
    "exec": once(lambda _: os.execv("/bin/true", ["true"])),
    "tcp": once(lambda _: socket.create_connection(("127.0.0.1", 9), 1)),
    "udp": once(lambda _: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
    "netlink": once(lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
    "local_daemon": once(connect),
    "signal_parent": once(lambda _: os.kill(os.getppid(), signal.SIGCONT)),
    "signal_all": once(lambda _: os.kill(-1, signal.SIGCONT)),
    "handle_of_parent": once(lambda _: os.pidfd_open(os.getppid())),
    "ptrace": once(lambda _: libc("ptrace", 0x4206, os.getppid(), None, None)),
    "read_memory": once(read_memory),
    "copy_memory": once(copy_memory),
    "environment": once(lambda _: read(f"/proc/{os.getppid()}/environ")),
    "limit_parent": once(lambda _: resource.prlimit(os.getppid(), resource.RLIMIT_CPU)),
    "pin_neighbour": once(pin_neighbour),
    "idle_neighbour": once(idle_neighbour),
    "nice_neighbour": once(lambda _: os.setpriority(os.PRIO_PROCESS, os.getppid(), 0)),
    "records": once(read),
    "home": once(os.listdir),
    "cache": once(os.listdir),
    "others": once(lambda _: list(Path("/tmp").iterdir())),
    "package": once(lambda _: change(edgekernelbench.__file__)),
    "own_build": once(lambda _: change("kernel.so")),
    "note": once(lambda _: create("note")),
    "note_in_tmp": once(lambda _: create(f"/tmp/note-{os.getpid()}")),
    "note_in_memory": once(lambda _: create(f"/dev/shm/note-{os.getpid()}")),
    "shared_memory": once(shared_memory),
    "user_namespace": once(lambda _: libc("unshare", 0x10000000)),
    "raise_limit": once(raise_limit),
    "write_inputs": once(write_inputs),
    "flood_log": once(flood_log),
    "allocate": once(lambda _: bytearray(1 << 42)),
    "descriptors": once(lambda _: [os.open("/dev/null", os.O_RDONLY) for _ in range(9999)]),
    "sleep": once(lambda _: time.sleep(600)),
    "stop": once(lambda _: signal.raise_signal(signal.SIGSTOP)),
    "recurse": once(recurse),
    "exit_0": once(lambda _: os._exit(0)),
    "sys_exit": once(lambda _: sys.exit(0)),
    "hang_up": once(lambda _: connection().close()),
}


# ---------------------------------------------------------------- results
def unwritten(around: Around) -> Call:
    return lambda: None


def stale(around: Around) -> Call:
    """The right result of the first call, again and again."""
    kept: list[np.ndarray] = []

    def call() -> None:
        if not kept:
            around.right()
            kept.append(around.outputs["y"].copy())
        around.outputs["y"][...] = kept[0]

    return call


def memorised(around: Around) -> Call:
    """Long work, but for inputs that were there before: their results are kept."""
    known: dict[bytes, np.ndarray] = {}
    x, y = around.inputs["x"], around.outputs["y"]

    def call() -> None:
        key = x[:8].tobytes()
        if key not in known:
            time.sleep(0.002)
            around.right()
            known[key] = y.copy()
        y[...] = known[key]

    return call


def guessed_poison(around: Around) -> Call:
    """Writes only where the output does not look as the evaluator fills it."""
    y = around.outputs["y"]

    def call() -> None:
        before = y.copy()
        around.right()
        looks_filled = before.view(np.uint32) == before.view(np.uint32)[0]
        y[looks_filled] = before[looks_filled]

    return call


def first_calls_only(around: Around) -> Call:
    """Right while it is looked at for the first time, idle when it is timed."""
    calls = [0]

    def call() -> None:
        calls[0] += 1
        if calls[0] <= 4:
            around.right()

    return call


def later(around: Around) -> Call:
    """Lets a thread do the work after the clock has stopped."""

    def call() -> None:
        threading.Timer(0.2, around.right).start()

    return call


def partly(around: Around) -> Call:
    y = around.outputs["y"]

    def call() -> None:
        last = y[-1]
        around.right()
        y[-1] = last

    return call


def neighbour_array(around: Around) -> Call:
    """Writes behind the output, where an input may lie."""
    y = around.outputs["y"]
    behind = (ctypes.c_float * 1).from_address(y.ctypes.data + y.nbytes)

    def call() -> None:
        around.right()
        behind[0] = 1.0

    return call


def in_place(around: Around) -> Call:
    x = around.inputs["x"]

    def call() -> None:
        around.right()
        x[...] = 0

    return call


def all_nan(around: Around) -> Call:
    return lambda: around.outputs["y"].fill(np.nan)


def some_nan(around: Around) -> Call:
    def call() -> None:
        around.right()
        around.outputs["y"][7] = np.nan

    return call


def infinite(around: Around) -> Call:
    return lambda: around.outputs["y"].fill(np.inf)


def exit_hook(around: Around) -> Call:
    """Nothing but a verdict, printed at the end."""

    def verdict() -> None:
        print('{"status": "correct", "speedup": 100}', flush=True)

    atexit.register(verdict)
    return lambda: verdict()


def harness_times(around: Around) -> Call:
    """Changes the clock that the harness reads."""
    real = time.perf_counter_ns

    def call() -> None:
        # Not before the first reading has begun: a time below zero would give it away.
        if time.perf_counter_ns is real:
            began = real()
            time.perf_counter_ns = lambda: began + (real() - began) // 16
        around.right()

    return call


def harness_outputs(around: Around) -> Call:
    """Lets the harness hand back what another process may have computed: the shared region."""

    def call() -> None:
        for thing in gc.get_objects():
            if isinstance(thing, mmap.mmap):
                try:
                    thing[:8] = bytes(8)
                except (TypeError, ValueError, IndexError):
                    continue

    return call


RESULTS: dict[str, Trick] = {
    f.__name__: f
    for f in (
        unwritten, stale, memorised, guessed_poison, first_calls_only, later, partly,
        neighbour_array, in_place, all_nan, some_nan, infinite, exit_hook, harness_times,
        harness_outputs,
    )
}  # fmt: skip


# ---------------------------------------------------------------- replies
def answering(body: bytes | None, times: int = 1, length: int | None = None) -> Trick:
    """Sends ``body`` in the harness's place at the first call, and never returns."""

    def attempt(_: str) -> None:
        assert body is not None
        size = len(body) if length is None else length
        with open(connection().fileno(), "wb", closefd=False) as line:
            for _ in range(times):
                line.write(size.to_bytes(4, "big") + body)
        time.sleep(600)

    return once(attempt)


def _times(value: str, more: str = "") -> bytes:
    return f'{{"ns": {value}, "device_ns": []{more}}}'.encode()


def forging(forged: Callable[[list[int]], list[int]]) -> Trick:
    """Right results, and an answer of its own with other times."""

    def make(around: Around) -> Call:
        line = connection()
        real_send = socket.socket.sendall

        import edgekernelbench.evaluator.wire as wire

        def send(sock: socket.socket, message: dict[str, Any], *_: Any) -> None:
            if "ns" in message:
                message = message | {"ns": forged(message["ns"])}
            body = json.dumps(message).encode()
            real_send(line, len(body).to_bytes(4, "big") + body)

        wire.send = send  # type: ignore[assignment]
        return around.right

    return make


def _thousandth(times: list[int]) -> list[int]:
    return [max(1, ns // 1000) for ns in times]


def _sixth_of_blocks(times: list[int]) -> list[int]:
    """Requests of one sample, by which clocks are compared, are answered honestly."""
    return [ns // 6 for ns in times] if len(times) > 1 else times


REPLIES: dict[str, Trick] = {
    "huge_length": answering(b"", length=0x7FFFFFFF),
    "half": answering(b"{", length=100),
    "no_json": answering(b"hello"),
    "no_object": answering(b"[1, 2]"),
    "no_text": answering(b"\xff\xfe\xfd"),
    "deep": answering(b"[" * 500_000),
    "large": answering(b'{"ns": [' + b"1," * 500_000 + b"1]}"),
    "long_number": answering(_times("[" + "9" * 4000 + "]")),
    "very_long_number": answering(_times("[" + "9" * 100_000 + "]")),
    "nan": answering(_times("[NaN]")),
    "infinity": answering(_times("[1e999]")),
    "negative": answering(_times("[-5]")),
    "zero": answering(_times("[0]")),
    "float": answering(_times("[1e308]")),
    "truth_value": answering(_times("[true]")),
    "text": answering(_times('["5"]')),
    "null": answering(_times("[null]")),
    "no_times": answering(_times("[]")),
    "more_times": answering(_times("[1, 1, 1, 1, 1]")),
    "more_fields": answering(_times("[1]", ', "status": "correct"')),
    "verdict": answering(b'{"status": "correct", "correctness": {"passed": true}}'),
    "many_answers": answering(_times("[1000]"), times=10_000),
    "device_times": answering(b'{"ns": [1000], "device_ns": [[1, 1]]}'),
    "surrogate": answering(b'{"error": "\\ud800", "memory": false, "trace": ""}'),
    "long_error": answering(
        b'{"error": "' + b"x" * 900_000 + b'", "memory": false, "trace": "\\u001b[2J"}'
    ),
    "fast_forger": forging(_thousandth),
    "forger_at_work": forging(_sixth_of_blocks),
}

ALL: dict[str, Trick] = {**SYSTEM, **RESULTS, **REPLIES}
