"""``ekb verify``: whether a run's records are true, by judging a sample of them again."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from edgekernelbench.cli.common import JsonOption, err, out, print_json

if TYPE_CHECKING:
    from edgekernelbench.runs.submission import Submission
    from edgekernelbench.runs.verify import Again, Verification

_COLOURS = {"verified": "green", "refuted": "red", "open": "yellow"}
_SHOWN = 10


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The --out folder of one run.")],
    sample: Annotated[int, typer.Option(min=1, help="Attempts that are judged again.")] = 20,
    seed: Annotated[
        int | None,
        typer.Option(help="Draws the sample; if left out, nobody knows it beforehand."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Store the verdict in DIR, for `ekb leaderboard`.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check a run's records: that they fit together, and that a sample is judged alike again.

    Exit code 0 if they are verified, 1 if not.
    """
    from edgekernelbench.runs.seal import keep as store
    from edgekernelbench.runs.submission import read_submission

    submission = read_submission(folder)
    drawn = secrets.randbelow(1 << 31) if seed is None else seed
    found = _verified(submission, sample, drawn)
    if json:
        print_json(found.model_dump(mode="json", exclude={"signature"}))
    else:
        _print(found)
    if keep:
        err.print(f"kept: {store(folder, found)}", markup=False, soft_wrap=True)
    if found.verdict != "verified":
        raise typer.Exit(1)


def _verified(submission: Submission, sample: int, seed: int) -> Verification:
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.evaluator.environment import observe
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.runs.verify import Place, verify
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    target = find_target(submission.records[0].task.target)
    with Evaluator(target) as evaluator:
        threads = evaluator.target.threads
        place = Place(observe(threads).cpu, target.description, threads)
        return verify(
            submission,
            lambda r: evaluator.evaluate(r.kernel or "", as_task(find_workload(r.task.workload))),
            place,
            sample,
            seed,
            _progress,
        )


def _progress(number: int, total: int, again: Again) -> None:
    word = {True: "agrees", False: "DIFFERS", None: "no verdict here"}[again.agrees]
    err.print(f"[{number}/{total}] {again.attempt}: {word}", markup=False, soft_wrap=True)


def _print(found: Verification) -> None:
    from edgekernelbench.runs.verify import least_found

    for finding in found.findings[:_SHOWN]:
        where = f"{finding.attempt}: " if finding.attempt else ""
        out.print(f"[red]not as written[/]  {escape(where + finding.message)}", soft_wrap=True)
    if len(found.findings) > _SHOWN:
        out.print(f"and {len(found.findings) - _SHOWN} more; --json has all")
    for one in found.again:
        for reason in one.reasons:
            colour, word = ("yellow", "open") if one.agrees is None else ("red", "differs")
            out.print(f"[{colour}]{word}[/]  {escape(f'{one.attempt}: {reason}')}", soft_wrap=True)
    for note in found.notes:
        out.print(f"note: {note}", markup=False, soft_wrap=True)
    size = len(found.again)
    out.print(
        f"{found.attempts} records, {len(found.findings)} findings in them; {found.agreed} of "
        f"{size} judged again agree (of {found.judged}, seed {found.seed})",
        soft_wrap=True,
    )
    if found.times:
        out.print(f"statuses only: {found.times}", markup=False, soft_wrap=True)
    else:
        out.print(f"speed-ups must agree within a factor of {found.tolerance:g} and both intervals")
    least = least_found(found.judged, size)
    if size and least <= found.judged:
        out.print(
            f"a sample of {size} holds a changed one with a chance of 95 % if {least} or more of "
            f"the {found.judged} are changed",
            soft_wrap=True,
        )
    out.print(f"[bold {_COLOURS[found.verdict]}]{found.verdict}[/]")
