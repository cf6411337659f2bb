"""``ekb suite check``: whether workloads are fit to be a benchmark."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from edgekernelbench.cli.common import SUBSETS_HELP, JsonOption, err, out, print_json
from edgekernelbench.errors import UsageError
from edgekernelbench.suite import Workload
from edgekernelbench.suite.find import find_subset

if TYPE_CHECKING:
    from edgekernelbench.suite.check import Outcome

SMALL_HELP = (
    "Only the rows of the tables, and reference, twin and canonical program against each other at "
    "small sizes; no controls, nothing compiled. Seconds a pattern."
)
SHOWN = 3
"""Reasons told of rules that were not applied."""


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Workloads, patterns, families, own suites."),
    ] = None,
    subset: Annotated[str, typer.Option(help=SUBSETS_HELP)] = "all",
    sample: Annotated[
        int | None, typer.Option(min=1, help="Only that many, always the same ones.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws that controls must fail under.")] = 5,
    small: Annotated[bool, typer.Option("--small", help=SMALL_HELP)] = False,
    compiled: Annotated[bool, typer.Option(help="Also compile and run at full size.")] = True,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    outcomes: Annotated[
        Path | None, typer.Option("--out", help="Write each workload's outcome as a JSON line.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check references, inputs, controls and tolerances, workload by workload.

    Exit code 1 if any rule is broken.
    """
    from edgekernelbench.suite.check import Effort
    from edgekernelbench.suite.check.classes import classes
    from edgekernelbench.suite.check.pool import check_all

    chosen = _sampled(_chosen(names or [], subset), sample)
    effort = Effort(seeds=seeds, compiled=compiled, small_only=small)
    applied: Counter[str] = Counter()
    broken: list[dict[str, str]] = []
    skipped: Counter[tuple[str, str]] = Counter()
    kept: list[Outcome] = []
    with (
        _lines(outcomes) as file,
        _terminable(),
        closing(check_all(chosen, effort, jobs)) as done,
    ):
        for outcome in track(done, "checking", len(chosen), console=err, transient=True):
            kept.append(outcome)
            applied.update(outcome.applied)
            skipped.update(outcome.skipped.items())
            if file is not None:
                file.write(outcome.model_dump_json() + "\n")
                file.flush()
            for finding in outcome.findings:
                broken.append(_told(outcome.workload, finding.rule, finding.message))
    used = classes(kept, {w.id: w for w in (*find_subset("all"), *chosen)})
    for use in used:
        applied["class"] += use.whole
        if use.too_wide:
            worst = f"no executor needs more than {max(use.errors):.2g} of the allowed error"
            broken.append(_told(use.tolerance, "class", worst))
    by_class = {use.tolerance: [use.errors[0], use.errors[-1]] for use in used}
    if json:
        counts = {"applied": dict(applied), "skipped": _by_rule(skipped)}
        counts |= {"class_errors": by_class}
        print_json({"workloads": len(chosen), **counts, "findings": broken})
    else:
        _print(len(chosen), applied, skipped, broken, tried_only=small)
        unfit = sum(not outcome.clean for outcome in kept)
        wide = sum(use.too_wide for use in used)
        classes_too = f", {wide} of {len(used)} tolerance classes too wide" if wide else ""
        out.print(f"{unfit} of {len(chosen)} workloads broken{classes_too}")
    raise typer.Exit(1 if broken else 0)


def _told(subject: str, rule: str, message: str) -> dict[str, str]:
    """Prints a finding; the form in which it is kept."""
    err.print(f"[bold red]{escape(subject)}[/] {rule}: {escape(message)}", soft_wrap=True)
    return {"workload": subject, "rule": rule, "message": message}


def _chosen(names: Sequence[str], subset: str) -> Sequence[Workload]:
    """The subset, cut down to the names, if there are any."""
    workloads = find_subset(subset)
    if subset == "all" and names:
        workloads += _own(names)
    known = {name for w in workloads for name in _names(w)}
    unknown = [name for name in names if name not in known]
    if unknown:
        where = "" if subset == "all" else f" in subset {subset!r}"
        raise UsageError(
            f"no workload, pattern, family or own suite {unknown[0]!r}{where}",
            "`ekb suite list` names them, and those of yours with `--subset own`",
        )
    wanted = set(names)
    return [w for w in workloads if not wanted or wanted & _names(w)]


def _names(workload: Workload) -> set[str]:
    """By which a workload is called, alone or with others."""
    own = workload.definition.origin
    return {workload.id, workload.pattern, workload.family} | ({own} if own else set())


def _own(names: Sequence[str]) -> tuple[Workload, ...]:
    """Own workloads that have one of the names: they are in no packaged subset."""
    from edgekernelbench.suite.own import store

    wanted = set(names)
    if store.FAMILY in wanted:
        return store.workloads()
    suites = sorted({name.partition("__")[0] for name in wanted} & set(store.names()))
    return tuple(w for suite in suites for w in store.workloads(suite) if wanted & _names(w))


def _sampled(workloads: Sequence[Workload], count: int | None) -> Sequence[Workload]:
    """The first ``count`` in an order that has nothing to do with the table's."""
    if count is None:
        return workloads
    return sorted(workloads, key=lambda w: hashlib.sha256(w.id.encode()).digest())[:count]


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM unwinds like an interrupt, so that no process and no semaphore is left behind."""

    def stop(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _lines(path: Path | None) -> AbstractContextManager[IO[str] | None]:
    """A file for JSON lines, or None."""
    if path is None:
        return nullcontext()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--out {path}: cannot be written ({error.strerror})", "choose a file elsewhere"
        ) from error


def _print(
    count: int,
    applied: Counter[str],
    skipped: Counter[tuple[str, str]],
    broken: list[dict[str, Any]],
    tried_only: bool,
) -> None:
    from edgekernelbench.suite.check import RULES

    by_rule = Counter(finding["rule"] for finding in broken)
    table = Table(
        title=f"{count} workload{'s' * (count != 1)}",
        title_justify="left",
        caption="tried: how often a rule was applied: to each input, output, draw or control",
        caption_justify="left",
    )
    for column, justify in (("rule", "left"), ("tried", "right"), ("broken", "right")):
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("what must hold")
    for rule, text in RULES.items():
        if applied[rule] or by_rule[rule] or not tried_only:
            table.add_row(rule, str(applied[rule]), str(by_rule[rule]), text)
    out.print(table)
    kinds = {k.removeprefix("control:"): n for k, n in applied.items() if k.startswith("control:")}
    if kinds:
        out.print("controls that failed as they must: " + counts(kinds))
    for rule, number in sorted(_by_rule(skipped).items()):
        out.print(f"not applied: {rule} {number} ({reasons(skipped, rule)})", markup=False)


def _by_rule(skipped: Counter[tuple[str, str]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for (rule, _), number in skipped.items():
        totals[rule] += number
    return dict(totals)


def reasons(skipped: Counter[tuple[str, str]], rule: str) -> str:
    """The commonest reasons why a rule was not applied."""
    whys = Counter({why: number for (name, why), number in skipped.items() if name == rule})
    told: list[str] = []
    for why, number in whys.most_common(SHOWN):
        line = why.partition("\n")[0] or "no reason is given"
        told.append(f"{number}: {line}" if len(whys) > 1 else line)
    more = len(whys) - len(told)
    return "; ".join([*told, *([f"{more} more reasons"] if more else [])])


def counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(numbers.items()))
