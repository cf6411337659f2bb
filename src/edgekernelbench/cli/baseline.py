"""``ekb baseline``: what there is to beat, and tuning the compiler's part of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from edgekernelbench.cli.common import (
    SUBSETS_HELP,
    JsonOption,
    TargetOption,
    err,
    microseconds,
    out,
    print_json,
)
from edgekernelbench.errors import UsageError

if TYPE_CHECKING:
    from edgekernelbench.baselines.tuning import Progress

app = typer.Typer(help="Baselines, and schedule packs for one of them.", no_args_is_help=True)


@app.command("tune")
def tune(
    subset: Annotated[str, typer.Option(help=SUBSETS_HELP)] = "quick",
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="This one in place of a subset; repeatable."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Candidates measured for a function.")] = 128,
    target: TargetOption = "llvm",
    pack: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The pack to make or extend; one of your own if left out."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Search schedules for the baseline `tvm-tuned`; run again to go on where it stopped.

    The machine should have nothing else to do. Exit code 1 if a task failed.
    """
    from edgekernelbench.baselines.packs import named_pack
    from edgekernelbench.runs.tuning import TuneConfig, Tuned
    from edgekernelbench.runs.tuning import tune as tune_core
    from edgekernelbench.suite.find import find_subset, find_workload
    from edgekernelbench.targets.registry import find_target

    chosen = [find_workload(w) for w in workload] if workload else find_subset(subset)
    if not chosen:
        raise UsageError(f"subset {subset!r} is empty", "`ekb suite stats` shows what there is")
    path = named_pack(pack, target)
    config = TuneConfig(tuple(chosen), find_target(target), path, trials)
    number = iter(range(1, len(chosen) + 1))

    def ended(result: Tuned) -> None:
        why = f": {result.message}" if result.message else ""
        _say(f"[{next(number)}/{len(chosen)}] {result.workload} {result.state}{why}")

    results = tune_core(config, _progress, ended)
    counts = Counter(result.state for result in results)
    if json:
        rows = [asdict(result) for result in results]
        print_json({"pack": str(path), "counts": dict(counts), "tasks": rows})
    else:
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        out.print(f"{told}   pack: {path}", markup=False, soft_wrap=True)
    _warn_unread(path)
    raise typer.Exit(1 if counts["failed"] else 0)


def _warn_unread(path: Path) -> None:
    from edgekernelbench.baselines.packs import pack_files, user_folder

    if path.exists() and path.resolve() not in pack_files():
        _say(
            f"this pack is not among those that are read: set EDGEKERNELBENCH_PACKS="
            f"{path.absolute()}, or move it to {user_folder()}"
        )


def _say(line: str) -> None:
    err.print(line, markup=False, soft_wrap=True)


def _progress(progress: Progress) -> None:
    best = "nothing ran yet" if progress.best_us is None else microseconds(progress.best_us)
    _say(
        f"  {progress.workload} {progress.function}: {progress.trials} of {progress.wanted} "
        f"trials, best {best}, {progress.state}"
    )


@app.command("list")
def show(target: TargetOption = "llvm", json: JsonOption = False) -> None:
    """Show the baselines and the schedule packs, and how far these fit a target."""
    from edgekernelbench.baselines.listing import listing
    from edgekernelbench.targets.registry import find_target

    found = listing(find_target(target))
    if json:
        print_json(found.model_dump(mode="json"))
        return
    table = Table("baseline", "in best", "what it is", box=None, pad_edge=False)
    for baseline in found.baselines:
        table.add_row(baseline.name, "yes" if baseline.scored else "no", baseline.summary)
    out.print(table)
    out.print(f"\nschedule packs (this target: {found.cpu}, {found.threads} threads)", markup=False)
    if not found.packs:
        out.print("none yet; `ekb baseline tune` makes one")
        return
    headings = ("pack", "schedules", "tuned here", "transferred", "of no use")
    table = Table(*headings, box=None, pad_edge=False)
    for pack in found.packs:
        table.add_row(
            pack.path, str(pack.schedules), str(pack.own), str(pack.transferred), str(pack.useless)
        )
    out.print(table)
