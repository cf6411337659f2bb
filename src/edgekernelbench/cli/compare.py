"""``ekb compare``: whether one run is better than another, with tests over the tasks of both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import JsonOption, err, out, print_json
from edgekernelbench.cli.tables import plain_table
from edgekernelbench.scores.attempts import baseline_order


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The --out folder of a run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The --out folder of another.")],
    json: JsonOption = False,
) -> None:
    """Compare two runs, paired by task: Correct@1, Fast@p and times, each with a test."""
    from edgekernelbench.records.read import find_records
    from edgekernelbench.scores.compare import compare as compute

    loaded = [find_records(folder) for folder in (run_a, run_b)]
    for problem in (problem for one in loaded for problem in one.problems):
        err.print(f"[yellow]warning:[/] {escape(problem)}", soft_wrap=True)
    result = compute(loaded[0].records, loaded[1].records)
    if json:
        print_json(result)
        return
    out.print(_table(result))
    for line in (*_unpaired(result["not_paired"]), *result["notes"]):
        out.print(f"note: {line}", markup=False)


def _table(result: dict[str, Any]) -> Table:
    sides = " - ".join(f"{name.upper()} {_name(result[name])}" for name in ("a", "b"))
    table = plain_table(
        f"{sides}: {result['n']} tasks",
        f"[low, high]: 95 % interval. p: {result['correct_at']['1']['test']} (shares), "
        f"{result['time']['test']} (times).\n"
        "detectable: a smaller true difference than this is missed more often than once in five.\n"
        "time: B over A where both are correct, held against the baselines of either run.",
    )
    for column in ("", "A", "B", "A - B", "ahead", "p", "detectable"):
        table.add_column(column, justify="left" if column in ("", "A - B") else "right")
    table.add_row("Correct@1", *_share_cells(result["correct_at"]["1"]))
    for baseline in baseline_order(result["fast_at"]):
        cell = result["fast_at"][baseline]["1.0"]
        table.add_row(escape(f"Fast@1.0 {baseline}"), *_share_cells(cell))
    table.add_row("time B / A", "", "", *_time_cells(result["time"]))
    return table


def _name(side: dict[str, Any]) -> str:
    model = f" {side['model']}" if side["model"] else ""
    return escape(f"{side['run']} ({side['agent']}{model})")


def _share_cells(cell: dict[str, Any]) -> tuple[str, ...]:
    if not cell["n"]:
        return ("-",) * 6
    low = "" if cell["low"] is None else f" [{100 * cell['low']:+.1f}, {100 * cell['high']:+.1f}]"
    detectable = cell["detectable"]
    return (
        f"{100 * cell['a']:.1f} %",
        f"{100 * cell['b']:.1f} %",
        f"{100 * cell['difference']:+.1f}{low}",
        f"{cell['a_ahead']} : {cell['b_ahead']}",
        _chance(cell["p_value"]),
        "none" if detectable is None else f"{100 * detectable:.1f}",
    )


def _time_cells(time: dict[str, Any]) -> tuple[str, ...]:
    if not time["n"]:
        return ("-",) * 4
    low = "" if time["low"] is None else f" [{time['low']:.3f}, {time['high']:.3f}]"
    return (
        f"{time['ratio']:.3f}x{low}",
        f"{time['a_faster']} : {time['b_faster']}",
        _chance(time["p_value"]),
        "unknown" if time["detectable"] is None else f"{time['detectable']:.3f}x",
    )


def _chance(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _unpaired(unpaired: dict[str, list[str]]) -> list[str]:
    words = {
        "only_in_a": "only in A",
        "only_in_b": "only in B",
        "outside_denominator": "without a verdict on the kernel in A or B",
    }
    return [
        f"not paired: {len(tasks)} tasks {words[why]} ({', '.join(tasks[:3])}"
        + (", ...)" if len(tasks) > 3 else ")")
        for why, tasks in unpaired.items()
        if tasks
    ]
