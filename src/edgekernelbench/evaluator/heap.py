"""Memory that Python and the C library keep for later, handed back to the system."""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable


def trim_heap() -> None:
    """Frees what only cycles hold, and returns freed pages of this process to the system.

    Python by itself looks for old cycles when their number has grown by a quarter, however large
    they are: hundreds of MiB gather. The pages need glibc, which else keeps what a task's inputs
    and truth took, in pieces that the next task's do not fit."""
    gc.collect()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
