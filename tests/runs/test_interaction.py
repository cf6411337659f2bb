"""The whole beside its stages, measured; and what is said when that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.runs.interaction import Interaction, UnitTime, _with_sum
from edgekernelbench.suite import load_suite

WORKLOAD = "residual_add_layer_norm__01"


def timed(*times: float | None) -> Interaction:
    units = tuple(
        UnitTime(stages=(f"s{k}",), median_us=t, low_us=t and t - 1, high_us=t and t + 1)
        for k, t in enumerate(times)
    )
    return _with_sum(
        Interaction(
            workload="w", kernel="k", whole_us=10, whole_low_us=9, whole_high_us=11,
            overhead_us=2, units=units,
        )
    )  # fmt: skip


def test_the_sum_pays_for_one_empty_call() -> None:
    result = timed(8, 7, 9)
    assert result.sum_us == 24 - 2 * 2
    assert result.gain == 2.0
    assert result.spread == (17 / 11, 23 / 9)


@pytest.mark.parametrize(
    ("spread", "verdict"),
    [
        ((1.2, 3.0), "decisions across stages gain"),
        ((0.2, 0.9), "decisions across stages lose"),
        ((0.06, 24.77), "undecided, 1 lies within the interval"),
        ((1.0, 2.0), "undecided, 1 lies within the interval"),
        (None, ""),
    ],
)
def test_a_verdict_only_where_the_interval_allows_one(
    spread: tuple[float, float] | None, verdict: str
) -> None:
    assert timed(8, 7).model_copy(update={"gain": 1.33, "spread": spread}).verdict == verdict


def test_no_sum_without_every_part() -> None:
    result = timed(8, None)
    assert result.sum_us is None and result.gain is None


def test_stages_of_a_task_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "k.ekir"
    file.write_text(load_suite().workloads[WORKLOAD].canonical())
    options = ["--interaction", "--workload", WORKLOAD, "--evaluations", "1", "--json"]
    result = CliRunner().invoke(app, ["explain", str(file), *options])
    assert result.exit_code == 0, result.output
    found = Interaction.model_validate_json(result.output)
    assert len(found.units) >= 2
    assert all(unit.median_us for unit in found.units), found.units
    assert found.gain is not None and found.spread is not None
    assert found.spread[0] <= found.gain <= found.spread[1]


@pytest.mark.parametrize("options", [["--interaction"], ["--workload", WORKLOAD]])
def test_both_options_are_needed(tmp_path: Path, options: list[str]) -> None:
    file = tmp_path / "k.ekir"
    file.write_text("")
    result = CliRunner().invoke(app, ["explain", str(file), *options])
    assert isinstance(result.exception, UsageError)
    assert "--interaction" in str(result.exception.help)


def test_a_kernel_without_a_time_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "k.ekir"
    file.write_text("kernel k[N=4](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }")
    options = ["--interaction", "--workload", WORKLOAD]
    result = CliRunner().invoke(app, ["explain", str(file), *options])
    assert isinstance(result.exception, UsageError)
    assert "invalid_ir" in str(result.exception)
