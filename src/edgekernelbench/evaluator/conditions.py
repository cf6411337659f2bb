"""Under what conditions a time came about: noise while it was measured, and what heat does to it.

Times are microseconds per call (``*_us``) or seconds of wall time, energies joules.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Noise(_Stored):
    """What disturbed a measurement. Shares are of 1; None where the system does not tell.

    Attributes:
        seconds: how long was watched.
        waited: share of the time in which the contestants' threads wanted a processor that they
            had none.
        others: of the timed processors' time, what processes that are not measured took.
        stolen: of the same, what a machine below this one took away.
        slow_spins: of fixed pieces of work of the parent's, those far slower than the fastest.
        involuntary_switches: times that a processor was taken from a contestant's thread.
        ready: threads that wanted to run while all contestants slept, the median.
        causes: what counts as a disturbance, in words; empty on a quiet machine.
        widening: by which factor the intervals of logarithms were stretched for it.
    """

    seconds: float
    waited: float | None = None
    others: float | None = None
    stolen: float | None = None
    slow_spins: float | None = None
    involuntary_switches: int = 0
    ready: float | None = None
    causes: tuple[str, ...] = ()
    widening: float = 1.0

    @property
    def disturbed(self) -> bool:
        return bool(self.causes)

    @property
    def remark(self) -> str:
        """One line for whoever reads the verdict; empty on a quiet machine."""
        if not self.causes:
            return ""
        return f"noisy machine: {'; '.join(self.causes)}; intervals {self.widening:.2f} times wider"


class Window(_Stored):
    """A stretch of calls without pause, and the state at its end where the system tells.

    Attributes:
        at_s: when it ended, from the start.
        median_us: of its samples.
        calls: of the kernel, in all.
        watts: on average, idle power included.
    """

    at_s: float
    median_us: float
    calls: int = 0
    frequency_mhz: float | None = None
    temperature_c: float | None = None
    watts: float | None = None


class Energy(_Stored):
    """What running takes beyond doing nothing.

    Attributes:
        counter: which one told; it sees more than the kernel (the package, the board).
        idle_watts: before the run, with everything loaded and nothing called.
        watts: during the run, idle power included.
        joules_per_call: of the difference, spread over all calls; the harness's own share (copies
            between samples) is in it. None where the run took no more than idling.
    """

    counter: str
    idle_watts: float
    watts: float
    joules_per_call: float | None


class Sustained(_Stored):
    """What became of a kernel's time while it was called without pause.

    Attributes:
        burst_us: median over the windows of the first second.
        steady_us: median over the windows of the last quarter.
        ratio: steady over burst, with an interval from the windows of both; None for fewer than
            four of each.
        checked_samples: outputs that were compared on the way, all right.
        throttled: what shows that the processor was held back; empty where nothing does.
        throttle_sources: what could have shown it. The times always can.
        energy: None where there is no counter.
        energy_note: which counter, or why none.
    """

    burst_us: float
    steady_us: float
    seconds: float
    checked_samples: int
    windows: tuple[Window, ...]
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    throttled: tuple[str, ...] = ()
    throttle_sources: tuple[str, ...] = ()
    energy: Energy | None = None
    energy_note: str = ""
