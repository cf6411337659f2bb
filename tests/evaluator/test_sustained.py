"""Running on: burst and steady state, what shows throttling, energy beyond idling."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import sustained as module
from edgekernelbench.evaluator.conditions import Window
from edgekernelbench.evaluator.sustained import _State, phases, sustained, throttling
from edgekernelbench.targets.energy import Counter
from edgekernelbench.targets.thermal import Heat
from tests.evaluator.fakes import FakeTask, make_evaluator


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_SECONDS", 2.0)


COOL = Heat(None, None, None, None)


def windows(*times: float, mhz: tuple[float, ...] = ()) -> list[Window]:
    pairs = zip(times, mhz or (None,) * len(times), strict=True)
    return [
        Window(at_s=0.2 * (n + 1), median_us=us, frequency_mhz=f) for n, (us, f) in enumerate(pairs)
    ]


def signs(found: list[Window], before: Heat = COOL, after: Heat = COOL) -> tuple[str, ...]:
    burst, steady = phases(found)
    return throttling(burst, steady, _State(before), _State(after))[1]


def test_a_kernel_that_gets_slower_shows_it_by_its_times() -> None:
    assert signs(windows(*[10.0] * 20)) == ()
    slower = windows(*[10.0, 10.1, 10.2, 10.0, 10.1], *[13.0 + n / 100 for n in range(15)])
    assert [s.partition(":")[0] for s in signs(slower)] == ["times"]


def test_a_scattered_burst_proves_nothing() -> None:
    assert signs(windows(9.0, 10.0, 12.0, 14.0, 10.0, *[13.0] * 15)) == ()


def test_frequency_counters_and_firmware_show_it() -> None:
    falling = windows(*[10.0] * 20, mhz=(*[2400.0] * 5, *[1800.0] * 15))
    assert signs(falling) == ("frequency: from 2400 to 1800 MHz",)
    before, after = (Heat(None, None, n, ()) for n in (4, 6))
    assert signs(windows(10.0), before, after) == ("throttle counters: 2 events",)
    capped = Heat(None, None, None, ("frequency capped",))
    assert signs(windows(10.0), after=capped) == ("firmware: frequency capped",)


def test_sources_that_could_have_told_are_named() -> None:
    burst, steady = phases(windows(*[10.0] * 20))
    assert throttling(burst, steady, _State(COOL), _State(COOL))[0] == ("times",)
    told = Heat(1.0, 1.0, 0, ())
    found = throttling(burst, steady, _State(told), _State(told, reasons=0x40))
    assert found == (("times", "throttle counters", "firmware", "NVML"), ("NVML: reasons 0x40",))


def test_energy_beyond_idling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sensor that shows 2 W at rest and 5 W at work."""
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.3)
    at_work = False

    def watts() -> float:
        return 5.0 if at_work else 2.0

    counter = Counter("a sensor", watts, is_power=True)
    monkeypatch.setattr(module, "find_counter", lambda *_: (counter, "energy by a sensor"))
    plain = module._Run._window

    def window(*given: object) -> Window:
        nonlocal at_work
        at_work = True
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module._Run, "_window", window)
    with make_evaluator(tmp_path) as evaluator, evaluator.session(FakeTask()) as session:
        found = sustained(session, "correct", 2.0).sustained
    assert found is not None and found.energy is not None
    assert found.energy.idle_watts == pytest.approx(2.0) and 4.5 < found.energy.watts <= 5.0
    calls = sum(w.calls for w in found.windows)
    assert found.energy.joules_per_call == pytest.approx(3.0 * found.seconds / calls, rel=0.15)


def test_a_counter_that_goes_silent_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.3)
    answers = iter([1.0, 2.0, 3.0])

    def joules() -> float:
        try:
            return next(answers)
        except StopIteration:
            raise OSError("gone") from None

    monkeypatch.setattr(module, "find_counter", lambda *_: (Counter("c", joules), "energy by c"))
    with make_evaluator(tmp_path) as evaluator, evaluator.session(FakeTask()) as session:
        found = sustained(session, "correct", 2.0).sustained
    assert found is not None and found.energy is None
    assert "went silent (gone)" in found.energy_note


def test_without_a_counter_that_is_said(tmp_path: Path) -> None:
    with make_evaluator(tmp_path) as evaluator, evaluator.session(FakeTask()) as session:
        found = sustained(session, "correct", 2.0, window_s=0.05, root=tmp_path)
        late = sustained(session, "late_crash", 2.0, root=tmp_path)
        with pytest.raises(UsageError, match="too short"):
            sustained(session, "correct", 0.5)
    assert found.sustained is not None and found.sustained.energy is None
    assert "no counter" in found.sustained.energy_note
    assert found.sustained.ratio is not None and found.sustained.ratio_low is not None
    assert late.status == "crashed" and late.sustained is None
