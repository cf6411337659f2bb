"""Where threads run: one core each for what is timed, and slots of cores for work side by side.

Left alone, the calling thread and its helper often wake up on one core and stay there for the
whole measurement, which doubles the time of some processes and not of others. TVM binds only its
helpers, ONNX Runtime none. So each gets the placement in which it is fastest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.host import core_quota

_TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Core:
    """A physical core: its logical processors that may be used, and its greatest frequency in kHz
    (0 where the system does not tell)."""

    cpus: tuple[int, ...]
    khz: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """Cores that one search has to itself.

    Attributes:
        timed: one processor for each thread of what is timed, on distinct cores.
        others: processors for everything else. Where it shares no core with ``timed``, it may go
            on while something is timed.
    """

    timed: tuple[int, ...]
    others: tuple[int, ...]
    apart: bool


def host_cores() -> tuple[Core, ...]:
    """The cores that this process may use, the fastest first, no more than the container's quota
    pays for."""
    found: dict[tuple[str, str], list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        found.setdefault(_core(cpu), []).append(cpu)
    cores = [Core(tuple(cpus), _max_frequency(cpus[0])) for cpus in found.values()]
    ranked = sorted(cores, key=lambda core: (-core.khz, core.cpus))
    return tuple(ranked[: core_quota() or len(ranked)])


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


_AS_FAST = 0.9
"""Of the fastest core's frequency: what a core must reach for its times to be comparable."""


def slots(cores: Sequence[Core], threads: int, count: int | None = None) -> tuple[Slot, ...]:
    """Disjoint slots for measurements side by side.

    Several slots are made of cores about as fast as the fastest. Cores that are left over are
    dealt out to the slots for building; a slot that gets at least as many of them as it times on
    builds there alone, and measures meanwhile. Otherwise it builds on all of its cores, and then
    measures.

    Args:
        cores: the fastest first, as `host_cores` gives them.
        threads: of what is timed.
        count: slots wanted; None takes as many as there can be.

    Raises:
        UsageError: there are not enough cores, or not of one speed.
    """
    fast = [core for core in cores if core.khz >= _AS_FAST * cores[0].khz]
    if threads > len(cores):
        raise UsageError(
            f"{threads} threads cannot have a core each: {len(cores)} cores may be used",
            f"give --threads {len(cores)} or less",
        )
    most = max(1, len(fast) // threads)
    wanted = most if count is None else count
    if wanted > most:
        raise UsageError(
            f"{wanted} measurements side by side need {wanted * threads} cores of one speed, "
            f"and there are {len(fast)}",
            f"give --jobs {most} or less, or fewer --threads",
        )
    taken = cores[:threads] if wanted == 1 else fast[: wanted * threads]
    spare = [core for core in cores if core not in taken]
    parts = [taken[n * threads : (n + 1) * threads] for n in range(wanted)]
    return tuple(_slot(part, spare[n::wanted]) for n, part in enumerate(parts))


def _slot(timed: Sequence[Core], spare: Sequence[Core]) -> Slot:
    apart = len(spare) >= len(timed)
    others = spare if apart else (*timed, *spare)
    return Slot(tuple(core.cpus[0] for core in timed), _cpus(others), apart)


def _cpus(cores: Iterable[Core]) -> tuple[int, ...]:
    return tuple(cpu for core in cores for cpu in core.cpus)


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
    """Binds a process's threads once its program has started them all.

    Its main thread gets the first core. Helpers get the others where they can be told: when
    there are exactly as many as there should be. A program with more threads than that (ONNX
    Runtime has idle ones) binds its helpers itself.

    Args:
        cores: none leaves all threads where they are.
        pid: the process; this one if left out.
    """

    def __init__(self, cores: Sequence[int], pid: int | None = None) -> None:
        self._cores = tuple(cores)
        self._pid = os.getpid() if pid is None else pid
        self._known = 0

    def spread(self) -> None:
        """Looks for threads that are new since the last time. A process that has ended is left."""
        if not self._cores:
            return
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            tasks = Path(f"/proc/{self._pid}/task").iterdir()
            self._bind(sorted(int(task.name) for task in tasks))

    def _bind(self, threads: list[int]) -> None:
        if self._known == len(threads):
            return
        self._known = len(threads)
        threads.remove(self._pid)
        os.sched_setaffinity(self._pid, self._cores[:1])
        if len(threads) == len(self._cores) - 1:
            for thread, core in zip(threads, self._cores[1:], strict=True):
                os.sched_setaffinity(thread, (core,))
