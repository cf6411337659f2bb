"""What a leaderboard is of: every run at or below the folders, an entry for each of its kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgekernelbench.errors import UsageError
from edgekernelbench.records.read import record_files
from edgekernelbench.records.schema import Record
from edgekernelbench.report.board.standing import Standing, standing_of
from edgekernelbench.report.entries import Entry, named, read_parts
from edgekernelbench.report.words import budget_words
from edgekernelbench.runs.submission import digest_of
from edgekernelbench.scores.agents import agent_row
from edgekernelbench.scores.attempts import is_correct, is_fast, least_share


@dataclass(frozen=True, slots=True)
class Submission:
    """``row``: what `scores.agents.agent_row` says of the entry."""

    entry: Entry
    row: dict[str, Any]
    standing: Standing

    @property
    def records(self) -> tuple[Record, ...]:
        return self.entry.records

    @property
    def isolated(self) -> bool:
        return all(record.isolated for record in self.records)

    @property
    def ranked(self) -> bool:
        """Whether it takes part in the order: an agent that was not isolated may have seen what
        it should not, a refuted run is not what it says, and one without a verdict says nothing."""
        return self.isolated and self.standing.word != "refuted" and self.row["n"] > 0

    @property
    def least(self) -> tuple[float, float]:
        """Shares by which it is ordered: fast at 1.0 over the best baseline, and correct; what has
        no verdict, and what had no baseline to beat, counts as neither."""
        fast = least_share(self.records, lambda record: is_fast(record, "best", 1.0))
        return fast, least_share(self.records, is_correct)

    @property
    def budget(self) -> str:
        return budget_words(self.records[0].limits)

    @property
    def dates(self) -> tuple[str, str]:
        """Days on which the first and the last attempt began."""
        days = sorted(record.started[:10] for record in self.records)
        return days[0], days[-1]


@dataclass(frozen=True, slots=True)
class Submissions:
    """``problems``: a line for each folder, run or piece of text that could not be taken."""

    submissions: tuple[Submission, ...]
    problems: tuple[str, ...]


def read_submissions(folders: Sequence[Path]) -> Submissions:
    """Reads every run at or below the folders; what is none is among the problems, and keeps no
    other from being shown. Records that lie in two folders are shown once.

    Raises:
        UsageError: nothing is left to show.
    """
    if not folders:
        raise UsageError("no folder is named", "give the --out folders of runs, or one above them")
    problems: list[str] = []
    found: list[tuple[Path, Entry]] = []
    for file in _files(folders, problems):
        found += [(file, part) for part in _parts(file, problems)]
    submissions = []
    for (file, _), entry in zip(found, named(found), strict=True):
        try:
            row = agent_row(entry.agent, entry.records)
        except UsageError as error:
            problems.append(f"{file.parent}: not shown, {error.message}")
            continue
        submissions.append(Submission(entry, row, standing_of(file.parent)))
    if not submissions:
        told = problems[0] if len(problems) == 1 else f"{problems[0]}; and {len(problems) - 1} more"
        raise UsageError(f"no run to show: {told}", "give the --out folders of runs")
    return Submissions(tuple(submissions), tuple(problems))


def _files(folders: Sequence[Path], problems: list[str]) -> Iterator[Path]:
    """Files of records, each once, whichever folder it was reached by."""
    seen: set[Path] = set()
    held: dict[str, Path] = {}
    for folder in folders:
        try:
            files = record_files(folder)
        except UsageError as error:
            problems.append(error.message)
            continue
        for file in files:
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            digest = digest_of(file.parent)
            if digest in held:
                problems.append(f"{file.parent}: the same run as {held[digest]}, shown once")
                continue
            held[digest] = file.parent
            yield file


def _parts(file: Path, problems: list[str]) -> list[Entry]:
    """A run's records apart by kind and by target."""
    try:
        parts, told = read_parts(file)
    except UsageError as error:
        problems.append(error.message)
        return []
    problems += told
    return [part for whole in parts for part in _by_target(whole)]


def _by_target(whole: Entry) -> Iterator[Entry]:
    for target in dict.fromkeys(record.task.target for record in whole.records):
        there = [
            (record, folder)
            for record, folder in zip(whole.records, whole.folders, strict=True)
            if record.task.target == target
        ]
        yield replace(
            whole,
            records=tuple(record for record, _ in there),
            folders=tuple(folder for _, folder in there),
        )
