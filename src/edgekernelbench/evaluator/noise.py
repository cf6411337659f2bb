"""What else the machine did while something was measured, as the kernel of the system tells it.

The sources, all read by the parent, none within reach of what is measured:

- how long the contestants' threads were ready to run and had no processor (``schedstat``), and how
  often a processor was taken from them;
- what of the timed processors other processes took, and what the machine below took away (steal),
  from ``/proc/stat``;
- how many threads were ready to run while all contestants slept;
- how a fixed piece of work of the parent's own, between rounds, differs from one time to the next.

A measurement that was disturbed goes on for longer (`timing.Meter`), and its intervals are
stretched by the factor given here, since rounds that are disturbed are no independent draws.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.evaluator.conditions import Noise
from edgekernelbench.evaluator.statistics import median

WAITED, OTHERS, STOLEN, SLOW_SPINS = 0.12, 0.15, 0.09, 0.25
"""Shares above which a measurement counts as disturbed: see `model.Noise`. In 200 measurements on
an idle virtual machine the most were 0.104, 0.062 and 0.083 of the first three."""

MOST_WIDENING = 2.0

_SPIN_STEPS = 1_500  # some 50 us
_SLOW_SPIN = 1.5
_LEAST_TICKS = 20
"""Below so many ticks of the accounting clock a share of the processors is not known."""


@dataclass(frozen=True, slots=True)
class _Counters:
    """Seconds, but for ``switches``. Of contestants: ran, waited; of the timed processors: busy,
    stolen; ``own`` is what contestants ran and the parent's thread that measures them: its other
    threads, at work on other attempts, disturb like anybody else. What is not told is None."""

    at: float
    pids: frozenset[int]
    ran: float | None
    waited: float | None
    switches: int
    own: float | None
    busy: float | None
    stolen: float | None


class Watch:
    """Watches a measurement.

    Args:
        cores: processors that contestants are bound to; empty for all that may be used.
        pids: the contestants' processes now.
        proc: where the system's tables are.
    """

    def __init__(
        self,
        cores: Sequence[int],
        pids: Callable[[], Iterable[int]],
        proc: Path = Path("/proc"),
    ) -> None:
        self._cores = tuple(cores) or tuple(sorted(os.sched_getaffinity(0)))
        self._pids = pids
        self._proc = proc
        self._start: _Counters | None = None
        self._spins: list[float] = []
        self._running: list[int] = []

    def begin(self) -> None:
        """Contestants are about to be measured."""
        self._spins, self._running = [], []
        self._start = self._read()

    def between(self) -> None:
        """All contestants sleep. Takes some 0.1 ms."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            running = (self._proc / "loadavg").read_text().split()[3].partition("/")[0]
            self._running.append(max(0, int(running) - 1))  # less the one who asks
        began = time.perf_counter()
        for _ in range(_SPIN_STEPS):
            pass
        self._spins.append(time.perf_counter() - began)

    def seen(self) -> Noise:
        """What was noted since `begin`."""
        assert self._start is not None
        then, now = self._start, self._read()
        elapsed = max(now.at - then.at, 1e-9)
        whole = elapsed * len(self._cores)
        known = then.pids == now.pids and whole >= _LEAST_TICKS / os.sysconf("SC_CLK_TCK")
        busy, own = _less(now.busy, then.busy), _less(now.own, then.own)
        stolen = _less(now.stolen, then.stolen)
        ran, waited = _less(now.ran, then.ran), _less(now.waited, then.waited)
        wanted = None if ran is None or waited is None else ran + waited
        others = None if busy is None or own is None or not known else max(0.0, busy - own) / whole
        return _noise(
            seconds=elapsed,
            waited=None if waited is None or not wanted else waited / wanted,
            others=others,
            stolen=None if stolen is None or not known else stolen / whole,
            slow_spins=_slow(self._spins),
            switches=max(0, now.switches - then.switches),
            ready=median(self._running) if self._running else None,
        )

    @property
    def disturbed(self) -> bool:
        """Whether what was noted so far counts as a disturbance."""
        return self.seen().disturbed

    # ------------------------------------------------------------ tables of the system
    def _read(self) -> _Counters:
        pids = frozenset(self._pids())
        ran, waited = self._read_tasks()
        busy, stolen = self._processors()
        return _Counters(
            at=time.monotonic(),
            pids=pids,
            ran=ran,
            waited=waited,
            switches=sum(_involuntary(task) for task in self._tasks()),
            own=None if ran is None else ran + time.thread_time(),
            busy=busy,
            stolen=stolen,
        )

    def _read_tasks(self) -> tuple[float | None, float | None]:
        times = [_schedstat(task) for task in self._tasks()]
        told = [each for each in times if each is not None]
        if not told or len(told) < len(times):
            return None, None
        return sum(ran for ran, _ in told), sum(waited for _, waited in told)

    def _tasks(self) -> list[Path]:
        found: list[Path] = []
        for pid in self._pids():
            with contextlib.suppress(OSError):
                found += (self._proc / str(pid) / "task").iterdir()
        return found

    def _processors(self) -> tuple[float | None, float | None]:
        """Seconds that the timed processors worked, and that were taken from them."""
        tick = os.sysconf("SC_CLK_TCK")
        names = {f"cpu{core}" for core in self._cores}
        busy = stolen = 0.0
        found = 0
        with contextlib.suppress(OSError, ValueError):
            for line in (self._proc / "stat").read_text().splitlines():
                name, *numbers = line.split()
                if name not in names:
                    continue
                user, nice, system, _idle, _wait, irq, soft, steal, *_ = map(int, numbers)
                busy += (user + nice + system + irq + soft) / tick
                stolen += steal / tick
                found += 1
        return (busy, stolen) if found == len(names) else (None, None)


def _less(now: float | None, then: float | None) -> float | None:
    return None if now is None or then is None else max(0.0, now - then)


def _schedstat(task: Path) -> tuple[float, float] | None:
    """Seconds that a thread ran, and that it waited for a processor."""
    with contextlib.suppress(OSError, ValueError):
        ran, waited, _ = (task / "schedstat").read_text().split()
        return int(ran) / 1e9, int(waited) / 1e9
    return None


def _involuntary(task: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (task / "status").read_text().splitlines():
            if line.startswith("nonvoluntary_ctxt_switches:"):
                return int(line.split()[1])
    return 0


def _slow(spins: Sequence[float]) -> float | None:
    """Share of the spins that took much longer than is usual here. The fastest is no measure: after
    a sleep most spins begin on a slow clock and empty caches."""
    if not spins:
        return None
    usual = sorted(spins)[len(spins) // 4]
    return sum(spin > _SLOW_SPIN * usual for spin in spins) / len(spins)


def _noise(
    seconds: float,
    waited: float | None,
    others: float | None,
    stolen: float | None,
    slow_spins: float | None,
    switches: int,
    ready: float | None,
) -> Noise:
    signs = (
        (waited, WAITED, "contestants waited for a processor in {:.0%} of their time"),
        (others, OTHERS, "other processes took {:.0%} of the processors"),
        (stolen, STOLEN, "{:.0%} of the processors' time was stolen"),
        (slow_spins, SLOW_SPINS, "{:.0%} of the parent's own spins were slow"),
    )
    causes = tuple(
        text.format(share) for share, most, text in signs if share is not None and share > most
    )
    worst = max(
        (share for share, most, _ in signs if share is not None and share > most), default=0
    )
    return Noise(
        seconds=round(seconds, 6),
        waited=_short(waited),
        others=_short(others),
        stolen=_short(stolen),
        slow_spins=_short(slow_spins),
        involuntary_switches=switches,
        ready=ready,
        causes=causes,
        widening=round(min(MOST_WIDENING, 1 + worst), 4),
    )


def _short(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
