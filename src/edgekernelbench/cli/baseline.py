"""``ekb baseline``: what there is to beat, and tuning the compiler's part of it."""

from __future__ import annotations

import time
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
    from edgekernelbench.runs.tuning import Result, Tuned
    from edgekernelbench.targets.model import Target

app = typer.Typer(help="Baselines, and schedule packs for one of them.", no_args_is_help=True)


@app.command("tune")
def tune(
    subset: Annotated[str, typer.Option(help=SUBSETS_HELP)] = "quick",
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="This one in place of a subset; repeatable."),
    ] = None,
    trials: Annotated[
        int,
        typer.Option(min=1, help="Candidates for a function; a quarter for those of little work."),
    ] = 128,
    target: TargetOption = "llvm",
    mcpu: Annotated[
        str | None,
        typer.Option(help="Make code for this CPU (x86-64-v3), measured on this host."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="That candidates run on; the target's if left out.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Measurements side by side; as many as cores allow if left out."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Time after which no batch of trials begins.")
    ] = None,
    pack: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The pack to make or extend; one of your own if left out."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Search schedules for the baseline `tvm-tuned`; run again to go on where it stopped.

    For opencl and cuda candidates are measured on the device one at a time, and searched for and
    built side by side. The machine should have nothing else to do. Exit code 1 if a task failed;
    running out of --minutes is no failure.
    """
    from edgekernelbench.baselines.packs import named_pack
    from edgekernelbench.runs.tuning import TuneConfig
    from edgekernelbench.runs.tuning import tune as tune_core
    from edgekernelbench.suite.find import find_subset, find_workload

    chosen = [find_workload(w) for w in workload] if workload else find_subset(subset)
    if not chosen:
        raise UsageError(f"subset {subset!r} is empty", "`ekb suite stats` shows what there is")
    path = named_pack(pack, target)
    machine = _machine(target, mcpu, threads)
    config = TuneConfig(tuple(chosen), machine, path, trials, jobs, minutes)
    lines = _Lines(len(chosen))
    _say(_guide())
    result = tune_core(config, lines.progress, lines.ended)
    _tell(result, path, json)
    _warn_unread(path)
    raise typer.Exit(1 if any(task.state == "failed" for task in result.tasks) else 0)


def _machine(target: str, mcpu: str | None, threads: int | None) -> Target:
    from edgekernelbench.targets.host import host_as
    from edgekernelbench.targets.registry import find_target

    if target != "llvm" and (mcpu or threads):
        raise UsageError(
            f"--mcpu and --threads are for CPUs, and the target is {target!r}", "leave them out"
        )
    machine = find_target(target) if mcpu is None else host_as(mcpu)
    return machine if threads is None else machine.model_copy(update={"threads": threads})


def _guide() -> str:
    from edgekernelbench.compilers.tvm.tuning.search import cost_model_name

    if cost_model_name() == "xgb":
        return "candidates are chosen by a cost model of XGBoost"
    how = "pip install 'edgekernelbench[tune]'"
    return f"candidates are chosen by chance: the cost model needs XGBoost ({how})"


class _Lines:
    """A line for every batch and for the end of every task."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._ended = self._trials = 0
        self._began = time.monotonic()

    def progress(self, progress: Progress) -> None:
        self._trials += progress.fresh
        best = "nothing ran yet" if progress.best_us is None else microseconds(progress.best_us)
        _say(
            f"  {self._clock()} {progress.workload} {progress.function}: {progress.trials} of "
            f"{progress.wanted} trials, best {best}, {progress.state}"
        )

    def ended(self, result: Tuned) -> None:
        self._ended += 1
        why = f": {result.message}" if result.message else ""
        _say(f"{self._clock()} {result.workload} {result.state}{why}")

    def _clock(self) -> str:
        seconds = time.monotonic() - self._began
        rate = self._trials / max(seconds, 1e-3)
        clock = f"{int(seconds // 60)}:{int(seconds % 60):02d}"
        return f"[{clock}, {self._ended}/{self._tasks} tasks, {rate:.1f} trials/s]"


def _tell(result: Result, path: Path, json: bool) -> None:
    counts = Counter(task.state for task in result.tasks)
    if json:
        rows = [asdict(task) for task in result.tasks]
        figures = {"trials": result.trials, "seconds": result.seconds, "slots": result.slots}
        print_json({"pack": str(path), "counts": dict(counts), "tasks": rows, **figures})
        return
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    pace = f"{result.trials} trials in {result.seconds:.0f} s, {result.slots} side by side"
    out.print(f"{told}   {pace}   pack: {path}", markup=False, soft_wrap=True)


def _warn_unread(path: Path) -> None:
    from edgekernelbench.baselines.packs import pack_files, user_folder

    if path.exists() and path.resolve() not in pack_files():
        _say(
            f"this pack is not among those that are read: set EDGEKERNELBENCH_PACKS="
            f"{path.absolute()}, or move it to {user_folder()}"
        )


def _say(line: str) -> None:
    err.print(line, markup=False, soft_wrap=True)


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
    machine = found.device or f"{found.cpu}, {found.threads} threads"
    out.print(f"\nschedule packs (this target: {machine})", markup=False)
    if not found.packs:
        out.print("none yet; `ekb baseline tune` makes one")
        return
    headings = ("pack", "schedules", "this device", "its kind", "transferred", "of no use")
    table = Table(*headings, box=None, pad_edge=False)
    for pack in found.packs:
        figures = (pack.schedules, pack.own, pack.kin, pack.transferred, pack.useless)
        table.add_row(pack.path, *map(str, figures))
    out.print(table)
