"""Slots: cores for measurements side by side."""

from __future__ import annotations

import os

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.targets import placement
from edgekernelbench.targets.placement import Core, Slot, host_cores, slots


def cores(count: int, per_core: int = 1, khz: int = 0) -> tuple[Core, ...]:
    """Numbered as Linux does it: second hardware threads come after all first ones."""
    return tuple(Core(tuple(n + count * k for k in range(per_core)), khz) for n in range(count))


def disjoint(made: tuple[Slot, ...]) -> bool:
    each = [{*slot.timed, *slot.others} for slot in made]
    return sum(map(len, each)) == len(set().union(*each))


def test_sixteen_cores_are_eight_pairs() -> None:
    made = slots(cores(16), 2)
    assert [slot.timed for slot in made] == [(n, n + 1) for n in range(0, 16, 2)]
    assert all(slot.others == slot.timed and not slot.apart for slot in made)
    assert disjoint(made)


def test_hardware_threads_of_a_core_stay_in_its_slot() -> None:
    made = slots(cores(8, per_core=2), 2)
    assert len(made) == 4 and disjoint(made)
    assert made[0] == Slot((0, 1), (0, 8, 1, 9), apart=False)


@pytest.mark.parametrize(("count", "jobs", "others"), [(16, 4, 2), (16, 1, 14), (12, 2, 4)])
def test_cores_left_over_build_while_others_are_timed(count: int, jobs: int, others: int) -> None:
    made = slots(cores(count), 2, jobs)
    assert len(made) == jobs and disjoint(made)
    for slot in made:
        assert slot.apart and len(slot.timed) == 2 and len(slot.others) == others
        assert not {*slot.timed} & {*slot.others}


def test_too_few_left_over_cores_help_to_build_between_timings() -> None:
    made = slots(cores(5), 2)
    assert made == (Slot((0, 1), (0, 1, 4), False), Slot((2, 3), (2, 3), False))
    assert slots(cores(2), 2) == (Slot((0, 1), (0, 1), False),)


def test_slow_cores_are_not_timed_beside_fast_ones() -> None:
    mixed = (*cores(4, khz=2_400_000), Core((4,), 1_800_000), Core((5,), 1_800_000))
    made = slots(mixed, 2)
    assert made == (Slot((0, 1), (0, 1, 4), False), Slot((2, 3), (2, 3, 5), False))
    assert slots(mixed, 6) == (Slot((0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5), False),)


@pytest.mark.parametrize(("threads", "jobs", "way"), [(3, None, "--threads 2"), (1, 3, "--jobs 2")])
def test_what_there_are_no_cores_for(threads: int, jobs: int | None, way: str) -> None:
    with pytest.raises(UsageError) as caught:
        slots(cores(2), threads, jobs)
    assert way in caught.value.help


def test_the_cores_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [cpu for core in host_cores() for cpu in core.cpus]
    assert len(set(found)) == len(found) and set(found) <= os.sched_getaffinity(0)
    monkeypatch.setattr(placement, "core_quota", lambda: 1)
    assert len(host_cores()) == 1
