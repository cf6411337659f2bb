"""``state.jsonl``: what an optimisation has done, a line for each finished step, only appended."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from edgekernelbench.errors import UsageError
from edgekernelbench.files import append_line, mend_lines
from edgekernelbench.optimize.figures import Figures

STATE = "state.jsonl"
_PARTIAL = "state.partial"
_LOCK = ".lock"


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Begun(_Event):
    """``arguments``: all that decides what is done."""

    step: Literal["begun"] = "begun"
    version: Literal[1] = 1
    arguments: dict[str, Any]


class Cut(_Event):
    """Tasks are there; ``signatures`` of the parts by id."""

    step: Literal["cut"] = "cut"
    signatures: dict[str, str]


class Measured(_Event):
    """A part's canonical program."""

    step: Literal["measured"] = "measured"
    part: str
    figures: Figures


class Granted(_Event):
    """``evaluations`` that the agent may use on a part."""

    step: Literal["granted"] = "granted"
    part: str
    evaluations: int


class Found(_Event):
    """An agent's best kernel of a part so far; its text is in the part's run."""

    step: Literal["found"] = "found"
    part: str
    kernel_hash: str
    median_us: float


class Optimised(_Event):
    """An agent has ended. ``figures`` are of the kernel that it kept, judged anew; None if it kept
    none, and ``message`` says why."""

    step: Literal["optimised"] = "optimised"
    part: str
    evaluations: int
    figures: Figures | None
    message: str = ""


class Finished(_Event):
    """The whole is judged and written."""

    step: Literal["finished"] = "finished"


Event = Begun | Cut | Measured | Granted | Found | Optimised | Finished
_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="step")])


class Journal:
    """The steps of one optimisation. One process at a time holds its folder.

    Attributes:
        events: all steps so far.
    """

    def __init__(self, folder: Path, lock: FileLock, events: list[Event]) -> None:
        self.folder = folder
        self._lock = lock
        self.events = events

    @classmethod
    def open(cls, folder: Path, arguments: dict[str, Any]) -> Journal:
        """Begins an optimisation, or takes up the one that the folder holds.

        Raises:
            UsageError: the folder holds something else, or an optimisation with other arguments,
                or cannot be written.
        """
        path = folder / STATE
        try:
            if folder.exists() and not folder.is_dir():
                raise UsageError(f"{folder}: a file", "name a new folder with -o")
            if folder.is_dir() and not path.exists() and _foreign(folder):
                raise UsageError(
                    f"{folder}: not empty, and it holds no optimisation",
                    "name a new or an empty folder with -o",
                )
            folder.mkdir(parents=True, exist_ok=True)
            lock = _hold(folder)
            if path.exists():
                mend_lines(path, folder / _PARTIAL)
            events = _read(path) if path.exists() else []
        except OSError as error:
            raise _unwritable(folder, error) from error
        journal = cls(folder, lock, events)
        try:
            journal._agree(arguments)
        except BaseException:
            journal.close()
            raise
        return journal

    def _agree(self, arguments: dict[str, Any]) -> None:
        if not self.events:
            self.add(Begun(arguments=arguments))
            return
        begun = self.events[0]
        if not isinstance(begun, Begun):
            raise UsageError(f"{self.folder / STATE}: does not begin with its arguments", _ELSE)
        there = begun.arguments
        differ = sorted(k for k in there.keys() | arguments if there.get(k) != arguments.get(k))
        if differ:
            told = "; ".join(
                f"{k}: {there.get(k)!r} there, {arguments.get(k)!r} now" for k in differ
            )
            raise UsageError(
                f"{self.folder}: holds an optimisation with other arguments ({told})",
                "go on with the same ones, or name another folder with -o",
            )

    def add(self, event: Event) -> None:
        """Notes a step; it is on the disk when this returns."""
        try:
            append_line(self.folder / STATE, event.model_dump_json().encode() + b"\n")
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self.events.append(event)

    def discard(self, *folders: str) -> None:
        """Leaves nothing behind of an optimisation that has done nothing yet.

        Args:
            folders: what it may have begun to fill.
        """
        if any(not isinstance(event, Begun) for event in self.events):
            return
        for name in folders:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (STATE, _LOCK):
            (self.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it may have been there, empty or not
            self.folder.rmdir()

    def close(self) -> None:
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_ELSE = "name another folder with -o"


def _foreign(folder: Path) -> bool:
    """Whether something lies there that an optimisation killed at its very start does not leave."""
    return any(child.name != _LOCK for child in folder.iterdir())


def _hold(folder: Path) -> FileLock:
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UsageError(f"{folder}: another process is at work there", "wait for it") from error
    return lock


def _read(path: Path) -> list[Event]:
    events: list[Event] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            events.append(_ADAPTER.validate_json(line))
        except ValidationError as error:
            raise UsageError(
                f"{path}:{number}: not a step of an optimisation of this version", _ELSE
            ) from error
    return events


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{folder}: cannot be written ({error.strerror})",
        "make room, or name another folder with -o; what was done before is kept",
    )
