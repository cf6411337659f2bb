"""Files that are written whole or not at all, and files that grow by whole lines."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: Path, data: str | bytes, lasting: bool = False) -> None:
    """Puts a file in place of an older one; a reader sees either of them whole. What is no text for
    a file is replaced.

    Args:
        lasting: it is on the disk when this returns, so that a power failure does not lose it.

    Raises:
        OSError: and the older file is as it was.
    """
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    # A name that nobody can guess, for a file that is not there: a link laid out in a folder that
    # others write to leads nowhere.
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with scratch.open("xb") as file:
            file.write(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise


def append_line(path: Path, line: bytes) -> None:
    """Adds a line and waits until it is on the disk; takes back what was written of one that does
    not fit, where the disk still lets it.

    Raises:
        OSError: and what was there before is as it was.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            line = b"\n" + line  # after a line that was cut off and could not be taken back
        try:
            written = 0
            while written < len(line):
                written += os.write(fd, line[written:])
            os.fsync(fd)
        except BaseException:
            with contextlib.suppress(OSError):  # a cut line is set aside by `mend_lines`
                os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)


def mend_lines(path: Path, aside: Path) -> None:
    """Moves a last line without an end, which a killed process left, to the file ``aside``."""
    data = path.read_bytes()
    if not data or data.endswith(b"\n"):
        return
    cut = data.rfind(b"\n") + 1
    with aside.open("ab") as file:
        file.write(data[cut:] + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.truncate(path, cut)
