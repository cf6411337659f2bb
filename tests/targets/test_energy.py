"""Counters of energy and signs of heat, on file systems made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.targets.energy import Counter, Gauge, find_counter
from edgekernelbench.targets.thermal import read_heat


def put(root: Path, path: str, value: object) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{value}\n")
    return file


def package(root: Path, number: int, microjoules: int) -> Path:
    folder = f"sys/class/powercap/intel-rapl:{number}"
    put(root, f"{folder}/name", f"package-{number}")
    put(root, f"{folder}/max_energy_range_uj", 10_000_000)
    return put(root, f"{folder}/energy_uj", microjoules)


def rail(root: Path, channel: int, label: str, millivolts: int, milliamperes: int) -> None:
    folder = "sys/class/hwmon/hwmon3"
    put(root, f"{folder}/name", "ina3221")
    put(root, f"{folder}/in{channel}_label", label)
    put(root, f"{folder}/in{channel}_input", millivolts)
    put(root, f"{folder}/curr{channel}_input", milliamperes)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rapl_adds_packages_and_survives_the_wrap_of_one(tmp_path: Path) -> None:
    first, second = package(tmp_path, 0, 9_000_000), package(tmp_path, 1, 1_000_000)
    put(tmp_path, "sys/class/powercap/intel-rapl:0:0/name", "core")
    put(tmp_path, "sys/class/powercap/intel-rapl:0:0/energy_uj", 5_000_000)
    counter, note = find_counter(None, tmp_path)
    assert counter is not None and not counter.is_power and note == "energy by RAPL, 2 packages"
    clock = Clock()
    gauge = Gauge(counter, clock)
    first.write_text("500000\n")
    second.write_text("3000000\n")
    clock.now = 2.0
    gauge.sample()
    assert gauge.joules == pytest.approx(1.5 + 2.0) and gauge.watts == pytest.approx(1.75)


def test_the_rail_that_feeds_the_board(tmp_path: Path) -> None:
    rail(tmp_path, 1, "VDD_IN", 5000, 1200)
    rail(tmp_path, 2, "VDD_CPU_GPU_CV", 5000, 400)
    counter, note = find_counter(None, tmp_path)
    assert counter is not None and counter.is_power and note == "energy by INA3221 VDD_IN"
    assert counter.read() == pytest.approx(6.0)


def test_the_older_driver_of_the_same_sensor(tmp_path: Path) -> None:
    folder = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    put(tmp_path, f"{folder}/rail_name_0", "POM_5V_IN")
    put(tmp_path, f"{folder}/in_power0_input", 3300)
    counter, _ = find_counter(None, tmp_path)
    assert counter is not None and counter.read() == pytest.approx(3.3)


def test_parts_of_a_board_are_not_added_up(tmp_path: Path) -> None:
    rail(tmp_path, 1, "VDD_CPU_GPU_CV", 5000, 400)
    counter, note = find_counter(None, tmp_path)
    assert counter is None and "VDD_CPU_GPU_CV" in note and "feeds the whole board" in note


def test_a_single_sensor_of_power(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/hwmon/hwmon0/name", "ina226")
    put(tmp_path, "sys/class/hwmon/hwmon0/power1_input", 2_500_000)
    counter, note = find_counter(None, tmp_path)
    assert counter is not None and counter.read() == 2.5 and note == "energy by hwmon ina226"


def test_that_there_is_none_is_said(tmp_path: Path) -> None:
    counter, note = find_counter(None, tmp_path)
    assert counter is None and "no counter" in note
    package(tmp_path, 0, 1).write_text("not for you")
    counter, note = find_counter(None, tmp_path)
    assert counter is None and "may not be read" in note


def test_power_is_linear_between_samples() -> None:
    clock, watts = Clock(), [10.0]
    gauge = Gauge(Counter("sensor", lambda: watts[0], is_power=True), clock)
    for clock.now, watts[0] in ((1.0, 20.0), (3.0, 20.0)):
        gauge.sample()
    assert gauge.joules == pytest.approx(15.0 + 40.0) and gauge.seconds == 3.0


def test_heat(tmp_path: Path) -> None:
    nothing = read_heat((0,), tmp_path)
    assert (nothing.frequency_mhz, nothing.temperature_c, nothing.throttles) == (None, None, None)
    for core, khz in enumerate((2_400_000, 1_500_000)):
        cpu = f"sys/devices/system/cpu/cpu{core}"
        put(tmp_path, f"{cpu}/cpufreq/scaling_cur_freq", khz)
        put(tmp_path, f"{cpu}/thermal_throttle/core_throttle_count", 3)
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", 45_000)
    put(tmp_path, "sys/class/thermal/thermal_zone1/temp", 81_500)
    put(tmp_path, "sys/devices/platform/soc/soc:firmware/get_throttled", "50006")
    heat = read_heat((0, 1), tmp_path)
    assert (heat.frequency_mhz, heat.temperature_c, heat.throttles) == (1500.0, 81.5, 6)
    assert heat.firmware == ("frequency capped", "throttled")
