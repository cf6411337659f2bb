"""Temporary folders that do not outlive their process, even one that was killed.

All of a process's folders lie in one, beside a file that it keeps locked. The system frees the
lock when the process ends, however it ends; whoever next needs a folder removes what nobody holds.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "edgekernelbench-"
_SUFFIX = ".lock"


@dataclass(frozen=True, slots=True)
class _Root:
    folder: Path
    lock: Path
    pid: int
    descriptor: int


_root: _Root | None = None
_guard = threading.Lock()


def scratch_folder(kind: str) -> Path:
    """A new empty folder for this process alone; remove it when it is no longer needed.

    Args:
        kind: the beginning of its name.

    Raises:
        OSError: none can be made.
    """
    global _root
    with _guard:
        if _root is None or _root.pid != os.getpid() or not _root.folder.is_dir():
            place = Path(tempfile.gettempdir())
            sweep(place)
            _root = _new_root(place)
            atexit.register(_remove, _root)
        return Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=_root.folder))


def remove_folder(folder: Path) -> None:
    """Deletes a folder whatever a child left in it: folders nested deeper than paths, stacks and
    descriptors reach, or closed to their owner. What cannot be deleted stays; links are not
    followed. Nobody may be at work in it any more.
    """
    if folder.is_symlink():
        return
    prefix, number, changed = secrets.token_hex(8), 0, True
    while changed:
        changed = False
        for entry in _opened(folder):
            if not entry.is_dir(follow_symlinks=False):
                changed |= _done(os.unlink, entry.path)
                continue
            for inner in _opened(entry.path):
                if inner.is_dir(follow_symlinks=False):  # up, so that no path gets longer
                    number += 1
                    _done(os.chmod, inner.path, 0o700)
                    changed |= _done(os.rename, inner.path, folder / f"{prefix}-{number}")
                else:
                    _done(os.unlink, inner.path)
            changed |= _done(os.rmdir, entry.path)
    _done(os.rmdir, folder)


def _opened(folder: Path | str) -> list[os.DirEntry[str]]:
    _done(os.chmod, folder, 0o700)
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _done(act: Callable[..., None], *what: object) -> bool:
    try:
        act(*what)
    except OSError:
        return False
    return True


def sweep(place: Path) -> int:
    """Removes this user's folders whose process has ended; returns how many there were."""
    removed = 0
    for lock in place.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            removed += _removed_if_left(lock)
    return removed


def _new_root(place: Path) -> _Root:
    while True:
        lock = place / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(lock, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink > 0:
                folder = lock.with_suffix("")
                folder.mkdir(0o700)
                return _Root(folder, lock, os.getpid(), descriptor)
        except BlockingIOError:
            pass  # another process sweeps this very moment, and took the file for a leftover
        os.close(descriptor)


def _removed_if_left(lock: Path) -> bool:
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False  # its process lives
        remove_folder(lock.with_suffix(""))
        lock.unlink()
        return True
    finally:
        os.close(descriptor)


def _remove(root: _Root) -> None:
    """At the end of the process; a fork of it leaves what is not its own."""
    if root.pid == os.getpid():
        remove_folder(root.folder)
        root.lock.unlink(missing_ok=True)
