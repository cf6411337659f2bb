"""Schedule packs: what tuning found, as portable JSON lines, and which of it fits a target.

A pack is a file of `Schedule` lines; a later line for the same function, CPU, threads and compiler
takes the place of an earlier one. Packs lie in the package, in the user's folder, and wherever
``EDGEKERNELBENCH_PACKS`` says (files or folders, separated like ``PATH``).

A schedule is a trace of the compiler's own steps, so it is valid for one version of it. It applies
to any CPU, but it is only as good as the search: a pack is made for an instruction set (AVX2,
AVX-512), on a CPU that has it. On another CPU with vectors of that width it is a baseline like any
other, since it is measured where it runs. On a CPU of another architecture or vector width nothing
was ever searched: it is *transferred*, said to be, and no part of ``best``.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target

PACKS_VARIABLE = "EDGEKERNELBENCH_PACKS"
SUFFIXES = (".jsonl", ".json")
MAX_LINE = 8 << 20


class Schedule(BaseModel):
    """What tuning one loop function for one CPU came to.

    Attributes:
        function: key of the function (see `compilers.tvm.tuning.graph.key`).
        name: of the function where it was first met, for people.
        workload: for which it was tuned.
        arch, cpu, vector_bits, threads: what it was tuned for; ``cpu`` is LLVM's name with what
            was switched on or off.
        host: LLVM's name of the CPU that it was tuned on.
        compiler: TVM's version.
        trials: candidates measured.
        wanted: candidates asked for; fewer are measured where there are no others.
        guide: cost model that chose the candidates.
        us: time of the best one in isolation, when it was tuned; None where none ran.
        trace: steps that lead to it; None leaves the function as it is.
        checked: the best one's results were those of the function without a schedule.
        reason: why there is no trace, or what else is to be known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    function: str = Field(pattern=r"^[0-9a-f]{16}$")
    name: str
    workload: str
    arch: str
    cpu: str
    host: str
    vector_bits: int = Field(gt=0)
    threads: int = Field(gt=0)
    compiler: str
    trials: int = Field(ge=0)
    wanted: int = Field(ge=0)
    guide: str
    us: float | None = Field(default=None, gt=0)
    trace: list[Any] | None = None
    checked: bool = False
    reason: str = ""

    @property
    def identity(self) -> tuple[str, str, str, int, str]:
        return (self.function, self.arch, self.cpu, self.threads, self.compiler)


# ---------------------------------------------------------------- machines
def arch_of(target: Target) -> str:
    """The instruction set, as the first part of a target triple."""
    return target.mtriple.split("-")[0] if target.mtriple else platform.machine()


def cpu_of(target: Target) -> str:
    """LLVM's name of the CPU and the features that the profile changes."""
    return ",".join((target.mcpu or "generic", *target.mattr))


def compiler_version() -> str:
    return importlib.metadata.version("apache-tvm")


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
    found: dict[tuple[Any, ...], Schedule] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            schedule = _parsed(path, number, line)
            found[schedule.identity] = schedule
    return tuple(found.values())


def _parsed(path: Path, number: int, line: bytes) -> Schedule:
    try:
        if len(line) > MAX_LINE:
            raise ValueError(f"longer than {MAX_LINE >> 20} MiB")
        return Schedule.model_validate_json(line)
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
Kinship = Literal["own", "kin", "transferred"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule, and what the CPU it was tuned for is to the target's: the same, another one with
    the same architecture and vector width, or neither."""

    schedule: Schedule
    kinship: Kinship

    @property
    def transferred(self) -> bool:
        return self.kinship == "transferred"


class Book:
    """All schedules at hand for one target."""

    def __init__(self, schedules: Iterable[Schedule], target: Target) -> None:
        self._target = target
        self._arch, self._cpu = arch_of(target), cpu_of(target)
        self._fitting: dict[str, list[Schedule]] = {}
        compiler = compiler_version()
        for schedule in schedules:
            if schedule.compiler == compiler:
                self._fitting.setdefault(schedule.function, []).append(schedule)

    @classmethod
    def open(cls, target: Target) -> Book:
        """From every pack.

        Raises:
            UsageError: one of them is damaged.
        """
        return cls((s for path in pack_files() for s in read_pack(path)), target)

    def find(self, function: str) -> Choice | None:
        """The schedule tuned for the CPU most like the target's, with the most trials."""
        fitting = self._fitting.get(function)
        if not fitting:
            return None
        best = max(fitting, key=self._merit)
        return Choice(best, self._kinship(best))

    def _kinship(self, schedule: Schedule) -> Kinship:
        if schedule.arch != self._arch:
            return "transferred"
        if schedule.cpu == self._cpu:
            return "own"
        return "kin" if schedule.vector_bits == self._target.vector_bits else "transferred"

    def _merit(self, schedule: Schedule) -> tuple[Any, ...]:
        return (
            ("transferred", "kin", "own").index(self._kinship(schedule)),
            schedule.threads == self._target.threads,
            schedule.arch == self._arch,
            -abs(schedule.vector_bits - self._target.vector_bits),
            schedule.wanted,
            -(schedule.us or float("inf")),
        )
