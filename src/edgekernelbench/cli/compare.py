"""``ekb compare``: whether one run is better than another, with tests over the tasks of both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import JsonOption, err, out, print_json, quantity, warn
from edgekernelbench.cli.tables import plain_table
from edgekernelbench.report.words import change_words
from edgekernelbench.scores.attempts import baseline_order


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The --out folder of a run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The --out folder of another.")],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it as an offline page, too.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs, paired by task: Correct@1, Fast@p and times, each with a test."""
    from edgekernelbench.report.comparison import compare_runs, comparison_page
    from edgekernelbench.report.write import write_page

    found = compare_runs(run_a, run_b)
    warn(found.problems)
    if html is not None:
        size = write_page(html, comparison_page(found))
        err.print(f"{html}: {quantity(size, 'B')}", markup=False)
    if json:
        print_json(found.result)
        return
    out.print(_table(found.result))
    for ahead, words in (("a", "better in A"), ("b", "worse in A")):
        _print_changes(words, found.changed(ahead))
    for line in (*found.unpaired, *found.result["notes"]):
        out.print(f"note: {line}", markup=False)


_SHOWN = 5


def _print_changes(words: str, changed: list[dict[str, Any]]) -> None:
    """The gravest ones, a line each."""
    out.print(f"{words}: {len(changed)} tasks", markup=False)
    for change in changed[:_SHOWN]:
        out.print(f"  {change['workload']}: {change_words(change)}", markup=False)
    if len(changed) > _SHOWN:
        out.print(f"  and {len(changed) - _SHOWN} more; --html shows all", markup=False)


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
