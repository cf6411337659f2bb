"""``report.json`` and ``report.md``: what was gained, part by part and in total."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.files import write_whole
from edgekernelbench.optimize.figures import Figures, gain
from edgekernelbench.optimize.request import Request
from edgekernelbench.optimize.shares import shares_of
from edgekernelbench.optimize.tasks import Tasks
from edgekernelbench.optimize.whole import Verdict
from edgekernelbench.optimize.work import Progress
from edgekernelbench.targets.model import Target

JSON, MARKDOWN = "report.json", "report.md"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PartReport(_Stored):
    """One part.

    Attributes:
        count: how often the model has it.
        share: of the measured time of all parts' canonical programs.
        used: whether the agent's kernel is in the whole; ``reason`` says why not.
        gain: how many times as fast as the canonical program, by what both are beside the same
            baselines; 1 where the canonical program stays.
        speedups: of the kernel in use over each baseline.
    """

    id: str
    operators: tuple[str, ...]
    nodes: tuple[str, ...]
    count: int
    share: float
    evaluations: int
    before_us: float | None
    after_us: float | None
    gain: float
    used: bool
    reason: str
    speedups: dict[str, float]


class WholeReport(_Stored):
    """The model. ``kind``: see `whole.Candidate`; ``gain``: over ``before``."""

    before_kind: str
    before: Figures
    kind: str
    after: Figures
    gain: float


class Report(_Stored):
    """All of an optimisation.

    Attributes:
        interrupted: the agent did not get all of the budget.
        agreement: how ONNX Runtime and the truth compare on the model's own weights, in words.
        bundle: its folder, or why there is none.
    """

    version: Literal[1] = 1
    model: str
    workload: str
    target: str
    cpu: str
    threads: int
    agent: str
    budget: int
    interrupted: bool
    parts: tuple[PartReport, ...]
    whole: WholeReport
    notes: tuple[str, ...]
    agreement: str = ""
    bundle: str = ""


def report_of(
    request: Request,
    target: Target,
    tasks: Tasks,
    progress: Progress,
    verdict: Verdict,
    interrupted: bool,
) -> Report:
    shares = shares_of(progress.times(tasks))
    parts = tuple(_part(part, shares[part], tasks, progress, verdict) for part in shares)
    before, after = verdict.before, verdict.chosen
    noise = {f.disturbed for f in (before.figures, after.figures) if f.disturbed}
    return Report(
        model=str(request.model),
        workload=tasks.whole.workload.id,
        target=target.name,
        cpu=target.mcpu or target.name,
        threads=target.threads,
        agent=request.agent,
        budget=request.budget,
        interrupted=interrupted,
        parts=parts,
        whole=WholeReport(
            before_kind=before.kind,
            before=before.figures,
            kind=after.kind,
            after=after.figures,
            gain=gain(before.figures, after.figures),
        ),
        notes=(*verdict.notes, *sorted(noise)),
    )


def _part(id: str, share: float, tasks: Tasks, progress: Progress, verdict: Verdict) -> PartReport:
    part = next(part for part in tasks.dissection.parts if part.id == id)
    before, done = progress.before[id], progress.after.get(id)
    used = id in verdict.chosen.used
    after = done.figures if used and done is not None and done.figures is not None else before
    found = progress.found.get(id)
    after_us = after.median_us
    if used and done is None and found is not None:
        after_us = found.median_us
    gained = gain(before, after) if after is not before else 1.0
    if used and done is None and after_us and before.median_us:
        gained = before.median_us / after_us
    return PartReport(
        id=id,
        operators=part.operators,
        nodes=part.nodes,
        count=part.count,
        share=share,
        evaluations=done.evaluations if done is not None else 0,
        before_us=before.median_us,
        after_us=after_us,
        gain=gained,
        used=used,
        reason="" if used else _reason(id, progress, verdict),
        speedups=after.speedups,
    )


def _reason(id: str, progress: Progress, verdict: Verdict) -> str:
    if id in verdict.dropped:
        return verdict.dropped[id]
    if id not in progress.budget:
        return "too small a share for this budget" if progress.budget else "nothing was tried"
    done = progress.after.get(id)
    if done is None:
        return "interrupted before anything better was found"
    return done.message or "nothing faster was found"


# ---------------------------------------------------------------- files
def write(report: Report, folder: Path) -> None:
    write_whole(folder / JSON, report.model_dump_json(indent=1) + "\n", lasting=True)
    write_whole(folder / MARKDOWN, as_markdown(report), lasting=True)


def read(folder: Path) -> Report | None:
    """The report of a finished optimisation; None where it is gone or of another version."""
    try:
        return Report.model_validate_json((folder / JSON).read_bytes())
    except (OSError, ValueError):
        return None


def as_markdown(report: Report) -> str:
    whole = report.whole
    lines = [
        f"# {report.workload} on {report.target}",
        "",
        f"{report.model}; {report.cpu}, {_threads(report.threads)}; agent `{report.agent}`, "
        f"{report.budget} evaluations" + ("; interrupted" if report.interrupted else ""),
        "",
        f"The whole: {_us(whole.before.median_us)} ({whole.before_kind}) before, "
        f"{_us(whole.after.median_us)} ({whole.kind}) after: {whole.gain:.2f} times as fast.",
        "",
        "| baseline | time over the kernel's | 95 % |",
        "|---|---|---|",
    ]
    for name, ratio in whole.after.speedups.items():
        low, high = whole.after.intervals[name]
        lines.append(f"| {name} | {ratio:.2f} | {low:.2f} .. {high:.2f} |")
    names = sorted({name for part in report.parts for name in part.speedups})
    lines += [
        "",
        "| part | operators | count | share | evaluations | before | after | gain | "
        + " | ".join(f"{name} /" for name in names) + " | |",
        "|---|---|---|---|---|---|---|---|" + "---|" * (len(names) + 1),
    ]  # fmt: skip
    for part in report.parts:
        ratios = (f"{part.speedups[n]:.2f}" if n in part.speedups else "-" for n in names)
        cells = (
            part.id, " ".join(part.operators), str(part.count), f"{part.share:.1%}",
            str(part.evaluations), _us(part.before_us), _us(part.after_us), f"{part.gain:.2f}",
            *ratios, part.reason,
        )  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    told = [*report.notes, report.agreement, report.bundle]
    lines += ["", *(f"- {note}" for note in told if note), ""]
    return "\n".join(lines)


def _threads(number: int) -> str:
    return f"{number} threads" if number > 1 else "one thread"


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} us"
