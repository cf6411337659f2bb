"""Files that a report leaves behind."""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.files import write_whole


def write_page(path: Path, text: str) -> int:
    """Writes a text whole or not at all; returns its bytes. See `write_bytes`."""
    return write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, data: bytes) -> int:
    """Writes a file whole or not at all; returns its size.

    Raises:
        UsageError: it cannot be written there.
    """
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror})", "choose another -o"
        ) from error
    return len(data)
