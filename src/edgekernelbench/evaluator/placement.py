"""Where the threads of a contestant run: one core each, the same cores for every contestant.

Left alone, the calling thread and its helper often wake up on one core and stay there for the
whole measurement, which doubles the time of some processes and not of others. TVM binds only its
helpers, ONNX Runtime none. So each gets the placement in which it is fastest.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")


def choose_cores(threads: int) -> tuple[int, ...]:
    """As many processors as threads, on distinct cores, the fastest first.

    Second hardware threads of a core come last. Empty when there are not enough: then threads
    run where the system puts them.
    """
    seen: dict[tuple[str, str], int] = {}
    ranked = []
    for cpu in sorted(os.sched_getaffinity(0)):
        core = _core(cpu)
        turn = seen[core] = seen.get(core, -1) + 1
        ranked.append((turn, -_max_frequency(cpu), cpu))
    chosen = tuple(cpu for _, _, cpu in sorted(ranked)[:threads])
    return chosen if len(chosen) == threads else ()


def _core(cpu: int) -> tuple[str, str]:
    folder = _TOPOLOGY / f"cpu{cpu}" / "topology"
    with contextlib.suppress(OSError):
        package = (folder / "physical_package_id").read_text().strip()
        return package, (folder / "core_id").read_text().strip()
    return "", str(cpu)


def _max_frequency(cpu: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((_TOPOLOGY / f"cpu{cpu}" / "cpufreq" / "cpuinfo_max_freq").read_text())
    return 0


class Spreader:
    """Binds this process's threads once its program has started them all.

    The calling thread gets the first core. Helpers get the others where they can be told: when
    there are exactly as many as there should be. A program with more threads than that (ONNX
    Runtime has idle ones) binds its helpers itself.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = tuple(cores)
        self._known = 0

    def spread(self) -> None:
        """Looks for threads that are new since the last time."""
        if not self._cores:
            return
        main = threading.get_native_id()
        helpers = sorted(int(t.name) for t in Path("/proc/self/task").iterdir())
        helpers.remove(main)
        if self._known == len(helpers) + 1:
            return
        self._known = len(helpers) + 1
        os.sched_setaffinity(main, self._cores[:1])
        if len(helpers) == len(self._cores) - 1:
            for thread, core in zip(helpers, self._cores[1:], strict=True):
                os.sched_setaffinity(thread, (core,))
