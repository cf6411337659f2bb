"""Schedule packs: what tuning found, as portable JSON lines, and which of it fits a target.

A pack is a file of lines, a `Schedule` each; a later line for the same function, device and
compiler takes the place of an earlier one. Packs lie in the package, in the user's folder, and
wherever ``EDGEKERNELBENCH_PACKS`` says (files or folders, separated like ``PATH``).

A pack is made for an instruction set (AVX2, AVX-512), on a CPU that has it, or for an architecture
of GPUs. On another device of the same it is a baseline like any other, since it is measured where
it runs; elsewhere it is transferred (see `schedules`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from edgekernelbench.baselines.schedules import (
    Identity,
    Kinship,
    Schedule,
    compiler_version,
    parse_schedule,
)
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target

PACKS_VARIABLE = "EDGEKERNELBENCH_PACKS"
SUFFIXES = (".jsonl", ".json")
MAX_LINE = 8 << 20


# ---------------------------------------------------------------- files
def user_folder() -> Path:
    """Where the user's own packs lie; it may not exist yet."""
    chosen = os.environ.get("EDGEKERNELBENCH_HOME")
    if chosen:
        return Path(chosen) / "packs"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local/share") / "edgekernelbench" / "packs"


def pack_places() -> str:
    """What ``EDGEKERNELBENCH_PACKS`` says, or the user's folder; from the root of the file system,
    since children have working folders of their own."""
    places = os.environ.get(PACKS_VARIABLE) or str(user_folder())
    return os.pathsep.join(str(Path(p).absolute()) for p in places.split(os.pathsep) if p)


def named_pack(path: Path | None, target: str) -> Path:
    """The pack of that name, or the user's own for a target.

    Raises:
        UsageError: the name is not one under which packs are found.
    """
    if path is None:
        return user_folder() / f"{target}{SUFFIXES[0]}"
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: no name for a pack", f"name it *{' or *'.join(SUFFIXES)}")
    return path


def pack_files() -> tuple[Path, ...]:
    """All packs there are, the package's first."""
    places = [Path(__file__).parent / "data"]
    places += [Path(place) for place in pack_places().split(os.pathsep)]
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            found += sorted(file for file in place.iterdir() if file.suffix in SUFFIXES)
        elif place.is_file():
            found.append(place)
    return tuple(dict.fromkeys(path.resolve() for path in found))


def read_pack(path: Path) -> tuple[Schedule, ...]:
    """The schedules of a pack, each once. A last line that was never finished is passed over.

    Raises:
        UsageError: the file cannot be read, or a line is no schedule.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror})",
            "give a pack that `ekb baseline tune` made",
        ) from error
    *lines, _unfinished = data.split(b"\n")
    found: dict[Identity, Schedule] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            schedule = _parsed(path, number, line)
            found[schedule.identity] = schedule
    return tuple(found.values())


def _parsed(path: Path, number: int, line: bytes) -> Schedule:
    try:
        if len(line) > MAX_LINE:
            raise ValueError(f"longer than {MAX_LINE >> 20} MiB")
        return parse_schedule(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}:{number}: no schedule of a pack ({_fault(error)})",
            "remove the line, or make the pack anew with `ekb baseline tune`",
        ) from error


def _fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    return str(error)[:200]


# ---------------------------------------------------------------- choice
@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule, and what it was tuned for as the target sees it."""

    schedule: Schedule
    kinship: Kinship

    @property
    def transferred(self) -> bool:
        return self.kinship == "transferred"


class Book:
    """All schedules at hand for one target."""

    def __init__(self, schedules: Iterable[Schedule], target: Target) -> None:
        self._target = target
        self._fitting: dict[str, list[Schedule]] = {}
        compiler = compiler_version()
        for schedule in schedules:
            if schedule.compiler == compiler and schedule.kinship(target) is not None:
                self._fitting.setdefault(schedule.function, []).append(schedule)

    @classmethod
    def open(cls, target: Target) -> Book:
        """From every pack.

        Raises:
            UsageError: one of them is damaged.
        """
        return cls((s for path in pack_files() for s in read_pack(path)), target)

    def find(self, function: str) -> Choice | None:
        """The schedule tuned for the device most like the target's, with the most trials."""
        fitting = self._fitting.get(function)
        if not fitting:
            return None
        best = max(fitting, key=lambda schedule: schedule.merit(self._target))
        kinship = best.kinship(self._target)
        assert kinship is not None, "others were left out"
        return Choice(best, kinship)
