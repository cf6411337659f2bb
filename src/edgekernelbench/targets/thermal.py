"""Whether a processor is held back: frequency, temperature and counters of throttling, as far as
the system tells. Every function takes the root of the file system."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_CPU = "sys/devices/system/cpu"
_PI = "sys/devices/platform/soc/soc:firmware/get_throttled"
_PI_BITS = {0: "under-voltage", 1: "frequency capped", 2: "throttled", 3: "soft temperature limit"}


@dataclass(frozen=True, slots=True)
class Heat:
    """The state at a moment; None where the system does not tell.

    Attributes:
        frequency_mhz: the least of the asked cores'.
        temperature_c: the hottest zone's.
        throttles: events counted so far, on all cores.
        firmware: what a Raspberry Pi's firmware says holds it back now.
    """

    frequency_mhz: float | None
    temperature_c: float | None
    throttles: int | None
    firmware: tuple[str, ...] | None


def read_heat(cores: Sequence[int] = (0,), root: Path = Path("/")) -> Heat:
    """Reads everything that is there."""
    cpu = root / _CPU
    khz = _numbers([cpu / f"cpu{core}/cpufreq/scaling_cur_freq" for core in cores])
    zones = _numbers(sorted((root / "sys/class/thermal").glob("thermal_zone*/temp")))
    counts = _numbers(sorted(cpu.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")))
    return Heat(
        frequency_mhz=min(khz) / 1e3 if khz else None,
        temperature_c=max(zones) / 1e3 if zones else None,
        throttles=sum(counts) if counts else None,
        firmware=_firmware(root / _PI),
    )


def _numbers(files: Sequence[Path]) -> list[int]:
    found = []
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(file.read_text()))
    return found


def _firmware(file: Path) -> tuple[str, ...] | None:
    with contextlib.suppress(OSError, ValueError):
        bits = int(file.read_text(), 16)
        return tuple(name for bit, name in _PI_BITS.items() if bits >> bit & 1)
    return None
