"""What one input may take of time and memory, and how much of it it took. Linux only."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HANG_S = 2.0
"""CPU seconds up to the end of verification."""
MEMORY_BYTES = 512 << 20
"""Bytes up to the end of verification, on top of what the process has before."""


@dataclass(slots=True)
class Use:
    """CPU seconds, and MiB of memory on top of what there was."""

    seconds: float = 0.0
    added_mb: float = 0.0


def address_space() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def limit_memory(added: int) -> None:
    """Bounds the address space of this process to what it has now and ``added`` bytes."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + added, hard))


@contextlib.contextmanager
def limited(seconds: float = HANG_S, added: int = MEMORY_BYTES) -> Iterator[Use]:
    """What runs inside ends the process after CPU ``seconds``, and runs out of memory beyond
    ``added`` bytes of address space. The timer and the limit around are set again afterwards.

    The measured memory is resident, at most what the address space grew by.
    """
    use = Use()
    soft = resource.getrlimit(resource.RLIMIT_AS)
    before, began = _reset_peak(), time.process_time()
    outer = signal.setitimer(signal.ITIMER_PROF, seconds)[0]
    limit_memory(added)
    try:
        yield use
    finally:
        resource.setrlimit(resource.RLIMIT_AS, soft)
        use.seconds = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, max(outer - use.seconds, 1e-3) if outer else 0.0)
        use.added_mb = (_peak_bytes() - before) / (1 << 20)


def _peak_bytes() -> int:
    """Largest resident size of this process since it began or `_reset_peak` was called."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) << 10


def _reset_peak() -> int:
    """Forgets the peak; the peak from here on.

    Where the system forbids it the figure is too small, not the limit: that is on address space.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes()
