"""How often a kernel is called faster than itself, over simulated machines of every ill temper."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from edgekernelbench.evaluator import statistics
from edgekernelbench.evaluator.statistics import Estimate
from tests.evaluator.simulated import Noise, aa

TRIALS = 200

MACHINES = {
    "calm": Noise(),
    "processes differ by 2 %": Noise(luck=0.02),
    "processes differ by 10 %": Noise(luck=0.1),
    "every other process is slow": Noise(luck=0.01, slow=0.5),
    "every fourth process is slow": Noise(luck=0.01, slow=0.25),
    "drift": Noise(luck=0.02, drift=0.3),
    "spikes": Noise(luck=0.02, spikes=0.1),
    "rough": Noise(sample=0.1, luck=0.02),
    "loaded half of the time": Noise(luck=0.02, load=0.5),
    "loaded in long stretches": Noise(luck=0.02, load=0.5, stretch_s=0.05),
}


def trials(noise: Noise, ratio: float = 1.0, count: int = TRIALS) -> list[Estimate]:
    return [aa(noise, seed, ratio=ratio) for seed in range(count)]


def false_claims(found: Sequence[Estimate], above: float = 1.0) -> float:
    return sum(each.low > above for each in found) / len(found)


@pytest.mark.parametrize("name", MACHINES)
def test_a_kernel_is_hardly_ever_faster_than_itself(name: str) -> None:
    found = trials(MACHINES[name])
    assert false_claims(found) <= 0.03
    assert false_claims(found, 1.05) <= 0.01


def test_processes_of_two_speeds_need_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them the very same measurements claim too much."""
    monkeypatch.setattr(statistics, "_pairs", lambda *_: None)
    monkeypatch.setattr(statistics, "STRETCH", 1.0)
    found = trials(MACHINES["every other process is slow"])
    assert false_claims(found) > 0.03 and false_claims(found, 1.05) > 0.01


@pytest.mark.parametrize("name", ["calm", "processes differ by 2 %", "spikes"])
def test_a_real_gain_is_seen(name: str) -> None:
    found = trials(MACHINES[name], ratio=1.2, count=50)
    assert sum(each.low > 1.0 for each in found) >= 48
    assert sum(each.low <= 1.2 <= each.high for each in found) >= 48
