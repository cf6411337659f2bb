"""``ekb baseline``: what there is to beat, and tuning the compiler's part of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

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
    from edgekernelbench.baselines.packs import SUFFIX, pack_files, user_folder
    from edgekernelbench.runs.tuning import TuneConfig, Tuned
    from edgekernelbench.runs.tuning import tune as tune_core
    from edgekernelbench.suite.find import find_subset, find_workload
    from edgekernelbench.targets.registry import find_target

    chosen = [find_workload(w) for w in workload] if workload else find_subset(subset)
    if not chosen:
        raise UsageError(f"subset {subset!r} is empty", "`ekb suite stats` shows what there is")
    path = pack or user_folder() / f"{target}{SUFFIX}"
    if path.suffix != SUFFIX:
        raise UsageError(f"{path}: no name for a pack", f"name it *{SUFFIX}")
    number = iter(range(1, len(chosen) + 1))

    def ended(result: Tuned) -> None:
        why = f": {result.message}" if result.message else ""
        err.print(
            f"[{next(number)}/{len(chosen)}] {result.workload} {result.state}{why}",
            markup=False,
            soft_wrap=True,
        )

    config = TuneConfig(tuple(chosen), find_target(target), path, trials)
    results = tune_core(config, _progress, ended)
    counts = Counter(result.state for result in results)
    if json:
        rows = [{"workload": r.workload, "state": r.state, "message": r.message} for r in results]
        print_json({"pack": str(path), "counts": dict(counts), "tasks": rows})
    else:
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        out.print(f"{told}   pack: {path}", markup=False, soft_wrap=True)
    if path.resolve() not in pack_files():
        err.print(
            f"the pack is not among those that are read: set EDGEKERNELBENCH_PACKS={path}, "
            f"or move it to {user_folder()}",
            markup=False,
            soft_wrap=True,
        )
    raise typer.Exit(1 if counts["failed"] else 0)


def _progress(progress: object) -> None:
    from edgekernelbench.baselines.tuning import Progress

    assert isinstance(progress, Progress)
    best = "nothing ran yet" if progress.best_us is None else microseconds(progress.best_us)
    err.print(
        f"  {progress.workload} {progress.function}: {progress.trials} of {progress.wanted} "
        f"trials, best {best}, {progress.state}",
        markup=False,
        soft_wrap=True,
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
    table = Table("pack", "schedules", "tuned here", "transferred", "of no use", box=None)
    for pack in found.packs:
        table.add_row(
            pack.path, str(pack.schedules), str(pack.own), str(pack.transferred), str(pack.useless)
        )
    out.print(table)
