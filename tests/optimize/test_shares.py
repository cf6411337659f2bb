"""The budget goes where the time goes, and all of it does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgekernelbench.optimize.shares import next_grant, shares_of


def _divided(
    budget: int, times: dict[str, float], gains: dict[str, float] | None = None
) -> dict[str, int]:
    """All grants, in order."""
    waiting, done, counts = dict(times), 0.0, dict[str, int]()
    while (granted := next_grant(budget - sum(counts.values()), waiting, done)) is not None:
        name, counts[granted[0]] = granted
        done += waiting.pop(name) / (gains or {}).get(name, 1.0)
    return counts


def test_what_takes_most_gets_most() -> None:
    assert _divided(40, {"a": 81.0, "b": 16.0, "c": 4.0, "d": 0.25}) == {
        "a": 20,
        "b": 11,
        "c": 8,
        "d": 1,
    }


def test_what_was_gained_makes_room_for_the_others() -> None:
    times = {"huge": 1000.0, "b": 40.0, "c": 9.0, "d": 8.0}
    gains = {"huge": 100.0}
    assert _divided(40, times)["b"] > _divided(40, times, gains)["b"]
    assert _divided(40, times, gains)["d"] > _divided(40, times).get("d", 0)


def test_a_small_budget_goes_to_the_largest() -> None:
    assert _divided(2, {"a": 1.0, "b": 2.0}) == {"b": 2}
    assert _divided(6, {"a": 1.0, "b": 2.0, "c": 3.0}) == {"c": 4, "b": 2}


@given(
    st.integers(1, 500),
    st.dictionaries(st.text(min_size=1, max_size=4), st.floats(0.01, 1e6), min_size=1, max_size=40),
    st.floats(1, 100),
)
def test_all_of_it_is_given_to_the_largest_first(
    budget: int, times: dict[str, float], gain: float
) -> None:
    counts = _divided(budget, times, dict.fromkeys(times, gain))
    assert sum(counts.values()) == budget
    assert all(count > 0 for count in counts.values())
    assert [times[name] for name in counts] == sorted(times.values(), reverse=True)[: len(counts)]
    assert sum(shares_of(times).values()) > 0.999
