"""Length-capped JSON messages between the parent and its children, over a Unix socket.

A message is a 4-byte length and that many bytes of UTF-8 JSON: an object, without NaN or infinity;
a parent also refuses text that no file could hold.
What arrives is data, checked by the reader; nothing is ever unpickled. File descriptors travel
only downwards, from the parent to a child.
"""

from __future__ import annotations

import array
import json
import math
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Literal

REPLY_CAP = 1 << 20
"""Bytes that a parent accepts from a child in one message."""

REQUEST_CAP = 64 << 20
"""Bytes that a child accepts from its parent (kernel texts and manifests travel down)."""

_LENGTH = struct.Struct("!I")
_MAX_FDS = 32

Problem = Literal["closed", "timeout", "too_large", "malformed"]


class WireError(Exception):
    """The other side is gone, slow, or does not keep to the form."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem: Problem = problem
        self.detail = detail


def send(
    sock: socket.socket,
    message: dict[str, Any],
    fds: Sequence[int] = (),
    deadline: float | None = None,
) -> None:
    """Sends one message.

    Args:
        sock: the socket.
        message: a JSON object.
        fds: descriptors that the other side receives copies of.
        deadline: `time.monotonic` when to give up; None waits for ever.

    Raises:
        WireError: ``closed`` when the other side is gone, ``timeout`` when it does not read.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    try:
        _set_timeout(sock, deadline)
        # The descriptors ride on the length, so that a reader gets them with its first bytes.
        socket.send_fds(sock, [_LENGTH.pack(len(body))], list(fds))
        sock.sendall(body)
    except TimeoutError as error:
        raise WireError("timeout", "the other side does not read") from error
    except OSError as error:
        raise WireError("closed", f"send failed: {error}") from error


def receive(
    sock: socket.socket, cap: int = REPLY_CAP, deadline: float | None = None
) -> dict[str, Any]:
    """Reads one message; descriptors that come along are dropped by the system.

    Args:
        sock: the socket.
        cap: largest accepted length in bytes.
        deadline: `time.monotonic` when to give up; None waits for ever.

    Raises:
        WireError: ``closed``, ``timeout``, ``too_large`` or ``malformed``.
    """
    length = _LENGTH.unpack(_read(sock, _LENGTH.size, deadline))[0]
    message = _decode(sock, length, cap, deadline)
    try:
        json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise WireError("malformed", "text with halves of surrogate pairs") from error
    return message


def receive_with_fds(
    sock: socket.socket, cap: int = REQUEST_CAP
) -> tuple[dict[str, Any], list[int]]:
    """Reads one message and its descriptors, blocking; for children reading their parent.

    Raises:
        WireError: ``closed``, ``too_large`` or ``malformed``.
    """
    try:
        head, fds, _, _ = socket.recv_fds(sock, _LENGTH.size, _MAX_FDS)
    except OSError as error:
        raise WireError("closed", f"read failed: {error}") from error
    if not head:
        raise WireError("closed", "the other side closed the connection")
    if len(head) < _LENGTH.size:
        head += _read(sock, _LENGTH.size - len(head), None)
    return _decode(sock, _LENGTH.unpack(head)[0], cap, None), list(array.array("i", fds))


def _decode(sock: socket.socket, length: int, cap: int, deadline: float | None) -> dict[str, Any]:
    if length > cap:
        raise WireError("too_large", f"a message of {length} bytes; {cap} are allowed")
    try:
        body = _read(sock, length, deadline)
        message = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise WireError("malformed", f"not a JSON message: {error}") from error
    if not isinstance(message, dict):
        raise WireError("malformed", "not a JSON object")
    return message


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is beyond all JSON numbers")
    return number


def _set_timeout(sock: socket.socket, deadline: float | None) -> None:
    # A timeout of zero would mean "non-blocking"; a microsecond means "now or never".
    sock.settimeout(None if deadline is None else max(1e-6, deadline - time.monotonic()))


def _read(sock: socket.socket, count: int, deadline: float | None) -> bytes:
    parts: list[bytes] = []
    while count > 0:
        try:
            _set_timeout(sock, deadline)
            part = sock.recv(min(count, 1 << 20))
        except TimeoutError as error:
            raise WireError("timeout", "no reply in time") from error
        except OSError as error:
            raise WireError("closed", f"read failed: {error}") from error
        if not part:
            raise WireError("closed", "the other side closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
