"""Which submissions stand in one table, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from edgekernelbench.errors import UsageError
from edgekernelbench.report.board.submissions import Submission
from edgekernelbench.report.plots.curves import curves_of, fast_plot
from edgekernelbench.report.together import DRAWN, Paired, paired
from edgekernelbench.scores.attempts import baseline_order, counted, rivals
from edgekernelbench.scores.likeness import conditions, refuse_other_devices, refuse_unlike
from edgekernelbench.suite import SUBSETS, TOLERANCE_VERSION, load_suite


@dataclass(frozen=True, slots=True)
class Place:
    """``rank``: None for a submission that takes no part in the order; equals share one."""

    rank: int | None
    submission: Submission


@dataclass(frozen=True, slots=True)
class Section:
    """Submissions that were judged alike on the same tasks.

    Attributes:
        title: the tasks and the target.
        facts: what they share, by name.
        places: in order.
        baselines: that any of them was held against.
        plot: Fast@p over the best baseline, of the first `DRAWN`; None for a single one.
        paired: each that follows against the first.
    """

    title: str
    facts: dict[str, str]
    places: tuple[Place, ...]
    baselines: tuple[str, ...]
    plot: Markup | None
    paired: tuple[Paired, ...]


def sections_of(submissions: Sequence[Submission]) -> tuple[Section, ...]:
    """Sections with most tasks first, of these those with most submissions."""
    groups: list[list[Submission]] = []
    for one in sorted(submissions, key=_telling):
        group = next((g for g in groups if all(_alike(one, other) for other in g)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    groups.sort(key=lambda g: (-len(_tasks(g[0])), -len(g), g[0].entry.name))
    return tuple(_told_apart([_section(group) for group in groups]))


def _told_apart(sections: Sequence[Section]) -> Iterator[Section]:
    """Sections of one title get what differs between them into it."""
    for one in sections:
        same = [other for other in sections if other.title == one.title]
        apart = [
            f"{name} {value}"
            for name, value in one.facts.items()
            if any(other.facts.get(name, value) != value for other in same)
        ]
        yield replace(one, title=", ".join([one.title, *apart]))


def _telling(one: Submission) -> tuple[int, str]:
    """Those that tell most of their conditions first: what tells nothing goes with any."""
    return -len(conditions(one.records)), one.entry.name


# ---------------------------------------------------------------- what may stand together
Tasks = frozenset[tuple[str, str, str]]


def _tasks(one: Submission) -> Tasks:
    """Of users' own tasks two may have one name; dtype and tolerance tell most of them apart."""
    tasks = (record.task for record in one.records)
    return frozenset((task.workload, task.dtype, task.tolerance) for task in tasks)


def _alike(a: Submission, b: Submission) -> bool:
    """The rule of `ekb compare`, and beyond it the same tasks and the same baselines to beat."""
    try:
        refuse_unlike(a.records, b.records)
        refuse_other_devices(a.entry.targets, b.entry.targets)
    except UsageError:
        return False
    return _tasks(a) == _tasks(b) and _same_rivals(a, b)


def _same_rivals(a: Submission, b: Submission) -> bool:
    """Over the tasks that both solve: of the others nobody knows what there was to beat."""
    one, other = counted(a.records), counted(b.records)
    both = [task for task in one.keys() & other.keys() if rivals(one[task]) and rivals(other[task])]
    return rivals(r for t in both for r in one[t]) == rivals(r for t in both for r in other[t])


# ---------------------------------------------------------------- a section
def _section(group: Sequence[Submission]) -> Section:
    places = tuple(_ranked(group))
    ordered = [place.submission for place in places]
    return Section(
        title=f"{_named(_tasks(group[0]))} on {group[0].records[0].task.target}",
        facts=_facts(group),
        places=places,
        baselines=baseline_order({name for one in group for name in one.row["fast_at"]}),
        plot=_plot(ordered),
        paired=tuple(
            paired(one.entry.name, one.records, ordered[0].records) for one in ordered[1:]
        ),
    )


def _ranked(group: Sequence[Submission]) -> Iterator[Place]:
    """By Fast@1.0 over the best baseline, then Correct@1; the unranked after all others."""
    ordered = sorted(group, key=lambda one: (not one.ranked, *_worse(one), one.entry.name))
    rank, before = 0, None
    for number, one in enumerate(ordered, 1):
        if one.ranked and _worse(one) != before:
            rank, before = number, _worse(one)
        yield Place(rank if one.ranked else None, one)


def _worse(one: Submission) -> tuple[float, float]:
    fast, correct = one.row["fast_at"]["best"]["value"], one.row["correct_at"]["value"]
    return (1.0 if fast is None else -fast), (1.0 if correct is None else -correct)


def _plot(ordered: Sequence[Submission]) -> Markup | None:
    if len(ordered) < 2:
        return None
    curves = {
        one.entry.name: curves_of(counted(one.records), ["best"])["best"] for one in ordered[:DRAWN]
    }
    title = "Share of tasks with a kernel at least p times as fast as the best baseline, by run"
    return fast_plot(curves, title, None)


def _facts(group: Sequence[Submission]) -> dict[str, str]:
    version = group[0].records[0].task.tolerance_version
    told = {"tasks": str(len(_tasks(group[0]))), "tolerances": f"version {version}"}
    if version != TOLERANCE_VERSION:
        told["this package judges by"] = f"version {TOLERANCE_VERSION}"
    described = {
        target.description
        for one in group
        for name, target in one.entry.targets.items()
        if name == one.records[0].task.target and target.description
    }
    records = [record for one in group for record in one.records]
    measured = {name: ", ".join(values) for name, values in conditions(records).items()}
    if described - {measured.get("processor")}:
        told["target"] = ", ".join(sorted(described))
    told |= measured
    scored = baseline_order(rivals(records))
    told["baselines in best"] = ", ".join(scored) or "none was measured"
    return told


def _named(tasks: Tasks) -> str:
    """The subset that has exactly these, else their number."""
    workloads = {workload for workload, _, _ in tasks}
    for subset in SUBSETS:
        if workloads == {workload.id for workload in load_suite().subset(subset)}:
            return "The whole suite" if subset == "all" else f"The {subset} subset"
    if len(workloads) == 1:
        return next(iter(workloads))
    return f"{len(workloads)} workloads"
