"""Paired tests agree with published numbers and with simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from edgekernelbench.scores import paired


def test_mcnemar_is_the_sign_test_of_the_discordant_tasks() -> None:
    # 10 of 12 discordant tasks: 2 * (66 + 12 + 1) / 4096 of all tosses of a coin are as uneven.
    assert paired.mcnemar(10, 2) == pytest.approx(2 * 79 / 4096)
    assert paired.mcnemar(2, 10) == paired.mcnemar(10, 2)
    assert paired.mcnemar(0, 0) == 1.0


def test_power_is_what_simulation_finds() -> None:
    rng = np.random.default_rng(1)
    difference, discordant, n = 0.15, 0.3, 120
    chances = ((discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant)
    tables = rng.multinomial(n, chances, size=3000)
    found = np.mean([paired.mcnemar(a, b) <= paired.ALPHA for a, b, _ in tables])
    assert paired.mcnemar_power(difference, discordant, n) == pytest.approx(found, abs=0.025)
    assert paired.mcnemar_power(0.0, discordant, n) <= paired.ALPHA, "an exact test holds its level"


def test_the_detectable_difference_has_the_power_and_a_smaller_one_has_not() -> None:
    least = paired.mcnemar_detectable(20, 10, 100)
    assert least is not None
    assert paired.mcnemar_power(least, 0.3, 100) >= paired.POWER
    assert paired.mcnemar_power(least - 0.01, 0.3, 100) < paired.POWER


def test_more_tasks_detect_less_and_five_detect_nothing() -> None:
    found = [paired.mcnemar_detectable(n // 10, n // 10, n) for n in (20, 100, 650)]
    assert all(one is not None for one in found)
    assert sorted(found, reverse=True) == found  # type: ignore[type-var]
    assert paired.mcnemar_detectable(1, 0, 5) is None
    assert paired.mcnemar_detectable(0, 0, 0) is None


def test_the_interval_of_a_difference_keeps_its_coverage() -> None:
    rng = np.random.default_rng(2)
    tables = rng.multinomial(40, (0.2, 0.1, 0.7), size=2000)
    held = [low <= 0.1 <= high for low, high in (
        paired.mcnemar_interval(a, b, 40) for a, b, _ in tables
    )]  # fmt: skip
    assert np.mean(held) >= 0.93
    low, high = paired.mcnemar_interval(0, 0, 40)
    assert low < 0 < high, "no discordant task is no proof of equality"


def test_sign_flips_are_all_tried_where_they_are_few() -> None:
    values = np.array([0.5, -0.25, 1.0, 0.75])
    sums = [abs(np.dot(s, values)) for s in itertools.product((1, -1), repeat=4)]
    assert paired.sign_flip(values) == np.mean([s >= 2.0 for s in sums])
    assert paired.sign_flip(np.append(values, 0.0)) == paired.sign_flip(values)
    assert paired.sign_flip(np.zeros(3)) == 1.0


def test_sign_flips_of_many_tasks_agree_with_the_normal_limit() -> None:
    values = np.random.default_rng(3).normal(0.15, 1.0, 200)
    expected = 2 * stats.norm.sf(abs(values.sum()) / np.sqrt((values**2).sum()))
    assert paired.sign_flip(values) == pytest.approx(expected, abs=0.01)
    assert paired.sign_flip(values) == paired.sign_flip(values), "the draws are fixed"


@pytest.mark.parametrize("n", [12, 40])
def test_sign_flips_reject_equals_in_one_case_of_twenty(n: int) -> None:
    rng = np.random.default_rng(4)
    rejected = [
        paired.sign_flip(rng.standard_t(3, n)) <= paired.ALPHA
        for _ in range(300 if n == 12 else 60)
    ]
    assert np.mean(rejected) <= 0.1


def test_a_mean_that_is_detectable_is_detected_four_times_in_five() -> None:
    rng = np.random.default_rng(5)
    least = paired.mean_detectable(rng.normal(0, 1, 30))
    assert least is not None and 0.3 < least < 0.8
    true = (stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)) / np.sqrt(30)
    found = [stats.ttest_1samp(rng.normal(true, 1, 30), 0).pvalue <= 0.05 for _ in range(1000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)
    assert paired.mean_detectable(np.zeros(5)) is None
    assert paired.mean_detectable(np.ones(1)) is None
