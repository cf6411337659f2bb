"""The budget goes where the time goes, and all of it does."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from edgekernelbench.optimize.shares import FLOOR, LEAST, divide, shares_of


def test_what_takes_most_gets_most_and_crumbs_get_nothing() -> None:
    counts = divide(40, {"a": 80.0, "b": 15.0, "c": 4.5, "d": 0.5})
    assert counts == {"a": 4 + 23, "b": 4 + 4, "c": 4 + 1}


def test_a_small_budget_goes_to_the_largest() -> None:
    assert divide(2, {"a": 1.0, "b": 2.0}) == {"b": 2}
    assert divide(6, {"a": 1.0, "b": 2.0, "c": 3.0}) == {"c": 4, "b": 2}


@given(
    st.integers(1, 500),
    st.dictionaries(st.text(min_size=1, max_size=4), st.floats(0.01, 1e6), min_size=1, max_size=40),
)
def test_all_of_it_is_given_and_larger_parts_get_no_less(
    budget: int, times: dict[str, float]
) -> None:
    counts, shares = divide(budget, times), shares_of(times)
    assert sum(counts.values()) == budget
    assert all(count > 0 for count in counts.values())
    served = list(counts)
    assert served == list(shares)[: len(served)]
    for larger, smaller in itertools.pairwise(served):
        assert counts[larger] >= counts[smaller]
    left_out = set(shares) - set(counts)
    if budget >= FLOOR * len(shares):
        assert all(shares[name] < LEAST for name in left_out)
