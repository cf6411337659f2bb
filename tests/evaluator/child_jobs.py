"""Jobs that tests run in workers; imported there by name."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
import time
from typing import Any

from edgekernelbench.evaluator import wire

tempfile.gettempdir()  # as imports of the server do, long before there is a worker


def echo(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Answers each message with itself, what the job was, and what came with it."""
    while True:
        message, received = wire.receive_with_fds(connection)
        texts = [os.pread(fd, 100, 0).decode() for fd in (*fds, *received)]
        wire.send(connection, {"echo": message, "payload": payload, "texts": texts})


def spin(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """As `echo`, and a thread beside it never rests."""
    threading.Thread(target=_spin, daemon=True).start()
    echo(connection, payload, fds)


def _spin() -> None:
    while True:
        sum(range(1_000))


def misbehave(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Does what the payload says, then waits to be asked."""
    what = payload["what"]
    if what == "exit":
        print("last words", flush=True)
        os._exit(3)
    if what == "segfault":
        signal.raise_signal(signal.SIGSEGV)
    if what == "sleep":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if what == "garbage":
        connection.sendall(b"\x00\x00\x00\x05hello")
    if what == "huge":
        connection.sendall(b"\x7f\xff\xff\xff")
    if what == "half":
        connection.sendall(b"\x00\x00\x01\x00{")
    if what == "nan":
        connection.sendall(b'\x00\x00\x00\x09{"a":NaN}')
    if what == "deep":
        body = b"[" * 500_000
        connection.sendall(len(body).to_bytes(4, "big") + body)
    if what == "raise":
        raise RuntimeError("broken job")
    if what == "orphan":
        _leave_orphan(payload["path"])
    if what == "memory":
        wire.send(connection, {"got": len(bytearray(payload["bytes"]))})
    if what == "temporary":
        with tempfile.TemporaryDirectory() as folder:
            wire.send(connection, {"folder": folder, "home": os.environ["HOME"]})
    if what == "report":
        wire.send(connection, _attempts())
    time.sleep(600)


def _leave_orphan(path: str) -> None:
    """A grandchild in a session of its own that outlives the worker, holding the connection."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(path, "w") as file:  # noqa: PTH123
                file.write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not os.path.exists(path) or not os.path.getsize(path):  # noqa: PTH110, PTH202
        time.sleep(0.005)
    os._exit(0)


def _attempts() -> dict[str, Any]:
    tries = {
        "fork": os.fork,
        "kill_parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
        "network": lambda: socket.socket(socket.AF_INET),
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "open_many": lambda: [os.open("/dev/null", os.O_RDONLY) for _ in range(1000)],
    }
    out: dict[str, Any] = {"environment": sorted(os.environ)}
    for name, attempt in tries.items():
        try:
            attempt()
            out[name] = "allowed"
        except OSError as error:
            out[name] = error.strerror
    return out
