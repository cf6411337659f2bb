"""Which files a process may reach, by Landlock: no privilege needed, Linux 5.13 or newer.

A rule opens a file or everything below a folder; what no rule opens is closed, for this process
and all it starts, for good. Reading a file's name, size and dates is never closed.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

# One numbering on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_WANTED = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_READING = _EXECUTE | _READ | _LIST
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE
_REFER = 1 << 13
_ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""Rights to files by version; what later ones add (calls to drivers) stays open."""

_TCP = 3  # binding and connecting
_SIGNALS = 2
_SCOPES = 3  # abstract sockets and signals reach only processes that are as restricted


def version() -> int:
    """The version of Landlock that this system has; 0 where it has none."""
    return max(0, _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_WANTED))


def restrict(
    reads: Iterable[str], writes: Iterable[str], lists: Iterable[str] = (), *, tcp: bool = False
) -> None:
    """Leaves the calling process, and what it starts, the files named and no others.

    Also closes signals to others (version 6). `PR_SET_NO_NEW_PRIVS` must have been set.

    Args:
        reads: files and folders to be read, listed and executed; missing ones are passed over.
        writes: those that may be changed, too.
        lists: folders of which names may be listed, and nothing else.
        tcp: leave it TCP, which is closed otherwise (version 4).

    Raises:
        OSError: the system has no Landlock, or refuses.
    """
    known = version()
    if known == 0:
        raise OSError(38, "this system has no Landlock")
    everything = _ALL[min(known, max(_ALL))]
    words = [everything, _TCP if known >= 4 and not tcp else 0, _SCOPES if known >= 6 else 0]
    size = 8 if known < 4 else 16 if known < 6 else 24
    attributes = struct.pack("=QQQ", *words)[:size]
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    try:
        for paths, rights in ((reads, _READING), (writes, everything), (lists, _LIST)):
            for path in paths:
                _open(ruleset, path, rights & everything)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def keep_signals() -> bool:
    """Leaves the calling process, and what it starts, signals to what it starts from now on, and
    closes nothing else. `PR_SET_NO_NEW_PRIVS` must have been set.

    Returns:
        Whether that is so; before version 6 it cannot be had.
    """
    if version() < 6:
        return False
    attributes = struct.pack("=QQQ", _REFER, 0, _SIGNALS)
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        # No rule set leaves files be moved between folders unless it says so.
        _open(ruleset, "/", _REFER)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _open(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there, or not for this user, needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _ON_FILES
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    result = _libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return int(result)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
