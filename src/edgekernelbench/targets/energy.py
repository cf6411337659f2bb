"""Where a board or a processor tells what it takes: counters of energy, or sensors of power.

Each reader looks for its files under a given root and gives a `Counter`, or says why there is none.
Rails are not added up: a board's sensors often sit one behind the other. What counts is the one
rail through which everything goes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.targets.device import CudaDevice

_SUPPLY_RAILS = ("VDD_IN", "POM_5V_IN", "VIN_SYS_5V0", "VDD_TOTAL")
"""What Jetson boards call the rail that feeds the whole module."""

_INA = ("ina219", "ina220", "ina226", "ina230", "ina231", "ina237", "ina238", "ina260")


@dataclass(frozen=True, slots=True)
class Counter:
    """A source of figures.

    Attributes:
        name: which one, for the record.
        read: joules since some moment, or watts now.
        is_power: it gives watts.
    """

    name: str
    read: Callable[[], float]
    is_power: bool = False


class Gauge:
    """Joules that a counter has seen since this was made. `sample` it often: power is taken for
    linear in between, and what wraps must not do so twice."""

    def __init__(self, counter: Counter, clock: Callable[[], float] = time.monotonic) -> None:
        self._counter, self._clock = counter, clock
        self.joules = 0.0
        self._began = self._at = clock()
        self._last = counter.read()

    def sample(self) -> None:
        """Brings `joules` and `seconds` up to date.

        Raises:
            OSError, ValueError: the counter cannot be read any more.
        """
        now, value = self._clock(), self._counter.read()
        if self._counter.is_power:
            self.joules += (value + self._last) / 2 * (now - self._at)
        else:
            self.joules += max(0.0, value - self._last)
        self._at, self._last = now, value

    @property
    def seconds(self) -> float:
        return self._at - self._began

    @property
    def watts(self) -> float:
        return self.joules / self.seconds if self.seconds > 0 else 0.0


def find_counter(device: CudaDevice | None, root: Path = Path("/")) -> tuple[Counter | None, str]:
    """The counter of what programs run on, and one line on which it is or why there is none.

    Args:
        device: an NVIDIA device; None for this host's processor.
        root: of the file system that tells.
    """
    if device is not None and (found := _nvidia(device)) is not None:
        return found, f"energy by {found.name}"
    # A Jetson's GPU is on the module that the sensors feed; a card is in no processor's package.
    for reader in (_board,) if device is not None else (_board, _rapl):
        with contextlib.suppress(OSError, ValueError):
            found = reader(root)
            if found is not None:
                found.read()
                return found, f"energy by {found.name}"
    if device is not None:
        return None, "no energy: the driver's management library tells neither energy nor power"
    return None, f"no energy: {_why_not(root)}"


def _nvidia(device: CudaDevice) -> Counter | None:
    from edgekernelbench.targets import nvml

    if nvml.read_energy(device.uuid) is not None:
        return Counter("NVML total energy", lambda: _told(nvml.read_energy(device.uuid)))
    if nvml.read_state(device.uuid).get("power_w") is not None:

        def power() -> float:
            return _told(nvml.read_state(device.uuid).get("power_w"))

        return Counter("NVML power", power, is_power=True)
    return None


def _told(value: float | None) -> float:
    if value is None:
        raise OSError("the counter does not answer any more")
    return value


def _board(root: Path) -> Counter | None:
    """Sensors of a board: INA3221 of a Jetson (either driver), or a single INA2xx."""
    for name, read in (*_hwmon_rails(root), *_iio_rails(root)):
        if name.rpartition(" ")[2] in _SUPPLY_RAILS:
            return Counter(name, read, is_power=True)
    single = [
        Counter(f"hwmon {_text(folder / 'name')}", _micro(folder / "power1_input"), is_power=True)
        for folder in _hwmon(root)
        if _text(folder / "name") in _INA and (folder / "power1_input").exists()
    ]
    return single[0] if len(single) == 1 else None


def _hwmon(root: Path) -> list[Path]:
    return sorted((root / "sys/class/hwmon").glob("hwmon*"))


def _hwmon_rails(root: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """Volts and amperes of each channel, in thousandths."""
    for folder in _hwmon(root):
        if _text(folder / "name") != "ina3221":
            continue
        for label in sorted(folder.glob("in*_label")):
            channel = label.name.removeprefix("in").removesuffix("_label")
            files = folder / f"in{channel}_input", folder / f"curr{channel}_input"
            yield f"INA3221 {_text(label)}", _product(*files)


def _iio_rails(root: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """The older driver's: milliwatts."""
    for label in sorted(root.glob("sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*")):
        channel = label.name.rpartition("_")[2]
        yield f"INA3221 {_text(label)}", _milli(label.with_name(f"in_power{channel}_input"))


def _rapl(root: Path) -> Counter | None:
    """The sum of all packages; their parts (cores, memory) are within."""
    packages = [
        folder
        for folder in sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
        if folder.name.count(":") == 1 and _text(folder / "name").startswith("package")
    ]
    if not packages:
        return None
    name = f"RAPL, {len(packages)} package{'s' if len(packages) > 1 else ''}"
    return Counter(name, _Packages(packages).joules)


class _Packages:
    """Adds up counters that each begin at 0 again after a range of their own."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._files = [folder / "energy_uj" for folder in folders]
        self._ranges = [int((folder / "max_energy_range_uj").read_text()) for folder in folders]
        self._last = [0] * len(folders)
        self._wrapped = 0

    def joules(self) -> float:
        now = [int(file.read_text()) for file in self._files]
        steps = zip(now, self._last, self._ranges, strict=True)
        self._wrapped += sum(span for value, before, span in steps if value < before)
        self._last = now
        return (sum(now) + self._wrapped) / 1e6


def _why_not(root: Path) -> str:
    if list(root.glob("sys/class/powercap/intel-rapl:*")):
        return "RAPL is there and may not be read (energy_uj is readable by root only)"
    if rails := [name for name, _ in (*_hwmon_rails(root), *_iio_rails(root))]:
        return f"none of these rails feeds the whole board: {', '.join(rails)}"
    return "this system has no counter (looked for RAPL, INA sensors)"


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text().strip()
    return ""


def _product(volts: Path, amperes: Path) -> Callable[[], float]:
    return lambda: int(volts.read_text()) * int(amperes.read_text()) / 1e6


def _milli(file: Path) -> Callable[[], float]:
    return lambda: int(file.read_text()) / 1e3


def _micro(file: Path) -> Callable[[], float]:
    return lambda: int(file.read_text()) / 1e6
