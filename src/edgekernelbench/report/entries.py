"""What a report is of: each folder named is an entry, with the records that one score may mix."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.records.read import SETTINGS, find_records
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.likeness import by_kind
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class Entry:
    """Records that are scored together.

    Attributes:
        name: unique in a report.
        records: at least one.
        folders: of the run that each record is from, where its texts and candidates are.
        targets: by name, as the runs' settings describe them; without those that tell none.
    """

    name: str
    records: tuple[Record, ...]
    folders: tuple[Path, ...]
    targets: dict[str, Target]

    @property
    def agent(self) -> str:
        """Agent and model in words."""
        first = self.records[0]
        return f"{first.agent} · {first.model}" if first.model else first.agent


@dataclass(frozen=True, slots=True)
class Entries:
    """``problems``: a line for each piece of text that was not a record."""

    entries: tuple[Entry, ...]
    problems: tuple[str, ...]


def read_entries(folders: Sequence[Path]) -> Entries:
    """Reads every run at or below the folders. A folder is one entry, as `ekb score` takes it;
    one that mixes agents, models, budgets or tolerance versions becomes an entry for each.

    Raises:
        UsageError: a folder holds no record, or is named twice.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("a folder is named twice", "name each once")
    found: list[tuple[Path, Entry]] = []
    problems: list[str] = []
    for folder in folders:
        parts, told = read_parts(folder)
        found += [(folder, part) for part in parts]
        problems += told
    return Entries(named(found), tuple(problems))


def read_whole(folder: Path) -> tuple[Entry, tuple[str, ...]]:
    """All records of a folder as one entry, mixed or not; and what was no record.

    Raises:
        UsageError: there is none.
    """
    loaded = find_records(folder)
    name = run_folder(folder).name
    return Entry(name, loaded.records, loaded.folders, _targets(loaded.folders)), loaded.problems


def run_folder(path: Path) -> Path:
    """The folder that is named, or that holds the file of records that is."""
    resolved = path.resolve()
    return resolved if resolved.is_dir() else resolved.parent


def read_parts(folder: Path) -> tuple[list[Entry], tuple[str, ...]]:
    """Records of a folder, an entry for each kind that one score may not mix; and what was none.

    Raises:
        UsageError: there is none.
    """
    whole, problems = read_whole(folder)
    places = {id(r): place for r, place in zip(whole.records, whole.folders, strict=True)}
    entries = [
        replace(whole, records=tuple(kind), folders=tuple(places[id(record)] for record in kind))
        for kind in by_kind(whole.records)
    ]
    return entries, problems


def _targets(folders: Sequence[Path]) -> dict[str, Target]:
    targets: dict[str, Target] = {}
    for place in dict.fromkeys(folders):
        target = _target(place / SETTINGS)
        if target is not None:
            targets.setdefault(target.name, target)
    return targets


def _target(settings: Path) -> Target | None:
    """None where a run's settings are gone, or are not of a form that this package knows."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, ValidationError):
        return Target.model_validate(json.loads(settings.read_bytes())["target"])
    return None


def named(found: Sequence[tuple[Path, Entry]]) -> tuple[Entry, ...]:
    """Names by folder; by agent and model too where a folder was divided, then by number."""
    folders = [run_folder(folder) for folder, _ in found]
    taken: dict[str, int] = {}
    out = []
    for folder, (_, entry) in zip(folders, found, strict=True):
        name = folder.name
        if any(other != folder and other.name == name for other in folders):
            name = f"{folder.parent.name}/{name}"
        if folders.count(folder) > 1:
            name = f"{name}: {entry.agent}"
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            name = f"{name} ({taken[name]})"
        out.append(replace(entry, name=name))
    return tuple(out)
