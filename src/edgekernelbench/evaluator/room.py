"""Whether there is room on the disk to judge: without it good kernels look like bad ones.

A compiler that cannot write its output, a baseline that cannot be stored: both end like faults of
what was compiled. So room is looked for beforehand, and again when a verdict is a bad one.
"""

from __future__ import annotations

import errno
import resource
import shutil
import tempfile
from pathlib import Path

from edgekernelbench.errors import UsageError

NEEDED = 64 << 20
"""Bytes: libraries of kernels and baselines take up to a few MiB each."""

_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))


class NoRoom(UsageError):
    """Kernels and baselines cannot be stored."""


def require_room(cache: Path) -> None:
    """Refuses to go on where kernels and baselines cannot be stored.

    Raises:
        NoRoom: less than `NEEDED` bytes are left for temporary files or in the cache folder, or no
            file may be as large.
    """
    longest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if longest != resource.RLIM_INFINITY and longest < NEEDED:
        raise NoRoom(
            f"files may be {longest / 2**20:.1f} MiB long, {NEEDED >> 20} MiB are needed",
            "raise the limit (`ulimit -f unlimited`)",
        )
    for folder, variable in (
        (Path(tempfile.gettempdir()), "TMPDIR"),
        (cache, "EDGEKERNELBENCH_CACHE"),
    ):
        free = shutil.disk_usage(folder).free
        if free < NEEDED:
            raise NoRoom(
                f"{folder}: {free / 2**20:.1f} MiB are left, {NEEDED >> 20} MiB are needed",
                f"make room or set {variable} to another folder; "
                "`ekb run --resume` goes on where it stopped",
            )


def disk_refused(error: OSError) -> UsageError | None:
    """What to tell of a disk that is full or read-only; None for other errors."""
    if error.errno not in _DISK:
        return None
    return UsageError(
        f"{error.filename or tempfile.gettempdir()}: cannot be written ({error.strerror})",
        "make room; `ekb run --resume` goes on where it stopped",
    )
