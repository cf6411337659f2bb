"""Files that are written whole or not at all."""

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
