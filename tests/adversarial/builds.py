"""What a compiler's process tries once a text has taken it over, after an honest build."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgekernelbench

Build = Callable[[socket.socket, dict[str, Any], str], None]
MANIFEST = Path("manifest.json")
LIBRARY = Path("kernel.so")


def answering(**fields: Any) -> Build:
    """Changes the answer."""

    def act(line: socket.socket, reply: dict[str, Any], about: str) -> None:
        reply.update(fields)

    return act


def sending(body: bytes, length: int | None = None) -> Build:
    """Sends something of its own."""

    def act(line: socket.socket, reply: dict[str, Any], about: str) -> None:
        size = len(body) if length is None else length
        line.sendall(size.to_bytes(4, "big") + body)
        time.sleep(600)

    return act


def described(**fields: Any) -> Build:
    """Changes the manifest."""

    def act(line: socket.socket, reply: dict[str, Any], about: str) -> None:
        MANIFEST.write_text(json.dumps(json.loads(MANIFEST.read_text()) | fields))

    return act


def doing(act: Callable[[str], object]) -> Build:
    return lambda line, reply, about: (act(about), None)[1]


def pipe(_: str) -> None:
    """Reading it would never end."""
    MANIFEST.unlink()
    os.mkfifo(MANIFEST)


def link(about: str) -> None:
    MANIFEST.unlink()
    MANIFEST.symlink_to(about)


def library_link(about: str) -> None:
    LIBRARY.unlink()
    LIBRARY.symlink_to(about)


def sparse(_: str) -> None:
    os.truncate(MANIFEST, 200 << 20)


def folder(_: str) -> None:
    MANIFEST.unlink()
    MANIFEST.mkdir()


def facts(**changed: Any) -> Build:
    def act(line: socket.socket, reply: dict[str, Any], about: str) -> None:
        made = json.loads(MANIFEST.read_text())
        made["facts"] |= changed
        MANIFEST.write_text(json.dumps(made))

    return act


def change(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def many_files(_: str) -> None:
    for number in range(300):
        os.open(f"f{number}", os.O_CREAT | os.O_WRONLY)


def large_file(_: str) -> None:
    with open("large", "wb") as file:  # noqa: PTH123
        for _ in range(300):
            file.write(bytes(1 << 20))


def deep(_: str) -> None:
    """A folder that nobody can name, and none that recurses can delete."""
    for _ in range(3000):
        os.mkdir("d")  # noqa: PTH102
        os.chdir("d")
    os._exit(0)


def closed(_: str) -> None:
    Path("d/d").mkdir(parents=True)
    os.chmod("d", 0)  # noqa: PTH101
    os._exit(0)


ALL: dict[str, Build] = {
    "build_hash_path": answering(kernel_hash="../../planted"),
    "build_hash_null": answering(kernel_hash="\0"),
    "build_hash_long": answering(kernel_hash="f" * 5000),
    "build_unsupported": answering(outcome="unsupported", message="no f32 here"),
    "build_deep": doing(deep),
    "build_closed": doing(closed),
    "build_outcome": answering(outcome="marvellous"),
    "build_verdict": answering(status="correct"),
    "build_infinite_time": sending(b'{"outcome": "built", "seconds": {"compile": 1e999}}'),
    "build_negative_time": answering(seconds={"compile": -1e9}),
    "build_surrogate": sending(
        b'{"outcome": "invalid_ir", "diagnostics": [{"code": "\\ud800", "message": "\\udfff"}]}'
    ),
    "build_no_diagnostic": sending(b'{"outcome": "invalid_ir", "diagnostics": [{"severity": []}]}'),
    "build_deep_diagnostic": sending(
        b'{"outcome": "invalid_ir", "diagnostics": [{"a": ' + b"[" * 900 + b"]" * 900 + b"}]}"
    ),
    "build_large_answer": sending(b"", length=0x7FFFFFFF),
    "build_pipe": doing(pipe),
    "build_link": doing(link),
    "build_library_link": doing(library_link),
    "build_sparse": doing(sparse),
    "build_folder": doing(folder),
    "build_elsewhere": described(library="../kernel.so"),
    "build_no_memory": facts(workspace_bytes=-(1 << 60)),
    "build_other_arguments": described(arguments=[]),
    "build_records": doing(lambda path: Path(path).read_bytes()),
    "build_cache": doing(os.listdir),
    "build_package": doing(lambda _: change(edgekernelbench.__file__)),
    "build_signal": doing(lambda _: os.kill(os.getppid(), signal.SIGCONT)),
    "build_network": doing(lambda _: socket.socket(socket.AF_INET)),
    "build_descriptors": doing(many_files),
    "build_large_file": doing(large_file),
    "build_sleep": doing(lambda _: time.sleep(600)),
    "build_memory": doing(lambda _: bytearray(1 << 45)),
    "build_exit": doing(lambda _: os._exit(0)),
}
