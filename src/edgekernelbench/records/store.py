"""The folder of a run: ``run.json`` (its settings), ``records.jsonl``, ``kernels/``, ``texts/``.

Records are appended, flushed to the disk and never rewritten. A line that a killed process left
half-written is moved aside when the run is resumed; readers skip it and say so.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic_core import PydanticSerializationError

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.files import append_line, mend_lines, write_whole
from edgekernelbench.records.read import (
    KERNELS,
    RECORDS,
    SETTINGS,
    TEXTS,
    kernel_path,
    read_records,
    text_key,
    text_path,
)
from edgekernelbench.records.schema import Record

_PARTIAL = "records.partial"

Settings = dict[str, Any]
Completion = Callable[[Settings], Settings]


class RunStore:
    """Writes the records of one run. One process at a time holds a run's folder."""

    def __init__(self, folder: Path, lock: FileLock, done: Iterable[str]) -> None:
        self.folder = folder
        self._lock = lock
        self.done = set(done)

    @classmethod
    def open(
        cls,
        folder: Path,
        settings: Settings,
        resume: bool,
        complete: Completion = dict,
        unfinished: Collection[EvaluationStatus] = (),
    ) -> RunStore:
        """Creates a run's folder, or takes up a run that was interrupted.

        Args:
            folder: of the run.
            settings: everything that decides the results; must agree when resuming.
            resume: take up an existing run.
            complete: gives settings that an older package stored the fields that it did not know,
                with what they mean where they are not told.
            unfinished: statuses of records whose attempts are to be made again.

        Raises:
            UsageError: if the folder holds a run and ``resume`` is not set, if its settings
                differ, if another process is writing to it, or if it cannot be written.
        """
        settings = json.loads(json.dumps(settings))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_strange(folder)
            lock = _hold(folder)
            path = folder / SETTINGS
            if path.exists():
                _check_settings(path, settings, resume, complete)
            else:
                write_whole(
                    path, json.dumps(settings, indent=2, sort_keys=True) + "\n", lasting=True
                )
            for name in (KERNELS, TEXTS):
                (folder / name).mkdir(exist_ok=True)
            kept = _mend(folder / RECORDS)
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be written ({error.strerror})", "choose another --out"
            ) from error
        return cls(folder, lock, [r.id for r in kept if r.status not in unfinished])

    def append(self, record: Record) -> None:
        """Stores one record; it is on the disk when this returns.

        Raises:
            UsageError: if the disk is full or the folder cannot be written; nothing that was
                stored before is touched.
        """
        path = self.folder / RECORDS
        try:
            append_line(path, _line(record))
        except OSError as error:
            raise self._refused(path, error) from error
        self.done.add(record.id)

    def keep_kernel(self, kernel_hash: str, text: str) -> None:
        """Stores a candidate's text under its hash, once.

        Raises:
            UsageError: as `append`.
        """
        self._keep(kernel_path(self.folder, kernel_hash), text)

    def keep_text(self, text: str) -> str:
        """Stores a prompt or an answer under its key, once; returns the key.

        Raises:
            UsageError: as `append`.
        """
        key = text_key(text)
        self._keep(text_path(self.folder, key), text)
        return key

    def _keep(self, path: Path, text: str) -> None:
        if path.exists():
            return
        try:
            write_whole(path, text, lasting=True)
        except OSError as error:
            raise self._refused(path, error) from error

    def _refused(self, path: Path, error: OSError) -> UsageError:
        return UsageError(
            f"{path}: cannot be written ({error.strerror}); "
            f"the {len(self.done)} records before are intact",
            "make room, then run again with --resume",
        )

    def close(self) -> None:
        self._lock.release()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refuse_strange(folder: Path) -> None:
    """A run that came from elsewhere may hold links: a record would go to another file, and what
    looks like its half-written end would be cut off.

    Raises:
        UsageError: something lies where a run's own files and folders do.
    """
    for name, fits in (
        *((name, stat.S_ISREG) for name in (RECORDS, SETTINGS, _PARTIAL)),
        *((name, stat.S_ISDIR) for name in (KERNELS, TEXTS)),
    ):
        try:
            mode = (folder / name).lstat().st_mode
        except FileNotFoundError:
            continue
        if not fits(mode):
            kind = "folder" if fits is stat.S_ISDIR else "file"
            raise UsageError(
                f"{folder / name}: no plain {kind}, as a run's is",
                "put the run's own in its place, or choose another --out",
            )


def _hold(folder: Path) -> FileLock:
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UsageError(
            f"{folder}: another process is writing this run", "wait for it, or choose another --out"
        ) from error
    return lock


def _check_settings(path: Path, settings: Settings, resume: bool, complete: Completion) -> None:
    if not resume:
        raise UsageError(
            f"{path.parent}: already holds a run", "add --resume to go on, or choose another --out"
        )
    try:
        stored = json.loads(path.read_text())
        if not isinstance(stored, dict):
            raise ValueError("no object")
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}: does not hold a run's settings", "choose another --out"
        ) from error
    there, now = _leaves(complete(stored)), _leaves(settings)
    differ = sorted(k for k in there.keys() | now.keys() if there.get(k) != now.get(k))
    if differ:
        lines = ", ".join(f"{k}: {there.get(k)!r} there, {now.get(k)!r} now" for k in differ)
        raise UsageError(
            f"{path.parent}: holds a run with other settings ({lines})",
            "resume with the same settings and version of the package, or choose another --out",
        )


def _leaves(value: Any, name: str = "") -> dict[str, Any]:
    """Settings by dotted name, down to single values and lists."""
    if not isinstance(value, dict):
        return {name: value}
    out: dict[str, Any] = {}
    for key, inner in value.items():
        out |= _leaves(inner, f"{name}.{key}" if name else key)
    return out


def _mend(path: Path) -> tuple[Record, ...]:
    """Moves a half-written last line aside; returns the records already there."""
    if not path.exists():
        return ()
    mend_lines(path, path.with_name(_PARTIAL))
    return read_records(path).records


def _line(record: Record) -> bytes:
    """A record as it is stored. Halves of surrogate pairs, which a model's words may hold and no
    file can, become question marks."""
    try:
        text = record.model_dump_json()
    except PydanticSerializationError:
        text = Record.model_validate(_writable(record.model_dump())).model_dump_json()
    return text.encode() + b"\n"


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_writable(key): _writable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(inner) for inner in value]
    return value
