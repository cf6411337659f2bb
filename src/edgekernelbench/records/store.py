"""The folder of a run: ``run.json`` (its settings), ``records.jsonl``, ``kernels/``, ``texts/``.

Records are appended, flushed to the disk and never rewritten. A line that a killed process left
half-written is moved aside when the run is resumed; readers skip it and say so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic_core import PydanticSerializationError

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.files import write_whole
from edgekernelbench.records.schema import RECORD_VERSION, Record

RECORDS = "records.jsonl"
SETTINGS = "run.json"
_PARTIAL = "records.partial"
_KERNELS, _TEXTS = "kernels", "texts"
_KEY = re.compile(r"[0-9a-f]{32}")
_HASH = re.compile(r"[0-9a-f]{64}")

Settings = dict[str, Any]
Completion = Callable[[Settings], Settings]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Records of one or more files, and a line for each piece of text that was not a record.

    Attributes:
        folders: of the run that each record is from.
        replaced: records of attempts that were made again because the provider had failed; the
            later one counts.
    """

    records: tuple[Record, ...]
    problems: tuple[str, ...]
    folders: tuple[Path, ...]
    replaced: tuple[Record, ...] = ()


def read_records(path: Path) -> Loaded:
    """Reads one ``records.jsonl``.

    Raises:
        UsageError: if a record has a newer version than this package knows.
    """
    records: dict[str, Record] = {}
    replaced: list[Record] = []
    problems: list[str] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            data = json.loads(line, parse_constant=_refuse_number, parse_float=_finite)
            version = data.get("version") if isinstance(data, dict) else None
            if isinstance(version, int) and version > RECORD_VERSION:
                raise UsageError(
                    f"{where}: record version {version}, this package reads up to {RECORD_VERSION}",
                    "update edgekernelbench",
                )
            record = Record.model_validate(data)
            record.model_dump_json()  # lone surrogates parse, but can never be written again
        except (ValueError, RecursionError) as error:
            problems.append(f"{where}: not a complete record, skipped ({_first_line(error)})")
            continue
        before = records.get(record.id)
        if before is not None and before.status is EvaluationStatus.PROVIDER_ERROR:
            replaced.append(before)
        elif before is not None:
            problems.append(f"{where}: attempt {record.id} is recorded twice, first kept")
            continue
        records[record.id] = record
    folders = (path.parent,) * len(records)
    return Loaded(tuple(records.values()), tuple(problems), folders, tuple(replaced))


def record_files(folder: Path) -> list[Path]:
    """Every ``records.jsonl`` at or below a folder (or the one such file that is named).

    Raises:
        UsageError: when there is none.
    """
    if folder.is_file():
        return [folder]
    if folder.is_dir():
        paths = sorted(path for path in folder.rglob(RECORDS) if path.is_file())
    else:
        raise UsageError(f"{folder}: no such folder", "give the --out folder of an `ekb run`")
    if not paths and folder.is_dir() and any(folder.rglob(SETTINGS)):
        raise UsageError(
            f"{folder}: a run without a finished attempt so far", "go on with `ekb run --resume`"
        )
    if not paths:
        raise UsageError(f"{folder}: holds no {RECORDS}", "give the --out folder of an `ekb run`")
    return paths


def find_records(folder: Path) -> Loaded:
    """Reads every ``records.jsonl`` at or below a folder (or one such file).

    An attempt that several of them hold, as copies of a run do, counts once. Attempts that a run's
    settings name and its records do not are among the problems.

    Raises:
        UsageError: when there is none.
    """
    paths = record_files(folder)
    loaded = [read_records(path) for path in paths]
    if not any(part.records for part in loaded):
        problems = [problem for part in loaded for problem in part.problems]
        raise UsageError(
            f"{folder}: holds no readable record" + (f" ({problems[0]})" if problems else ""),
            "give the --out folder of an `ekb run`",
        )
    records: dict[tuple[str, str, str], tuple[Record, Path]] = {}
    problems: list[str] = []
    for path, part in zip(paths, loaded, strict=True):
        known = len(records)
        for record in part.records:
            key = (record.run, record.id, record.started)
            records.setdefault(key, (record, path.parent))
        again = known + len(part.records) - len(records)
        problems += part.problems
        if again:
            problems.append(f"{path}: {again} attempts are in another folder, too; they count once")
        if missing := _missing(path, part.records):
            problems.append(f"{path}: {missing} attempts of this run have no record")
    found = tuple(record for record, _ in records.values())
    replaced = {(r.run, r.id, r.started): r for part in loaded for r in part.replaced}
    return Loaded(
        found,
        tuple(problems),
        tuple(folder for _, folder in records.values()),
        tuple(replaced.values()),
    )


def _missing(path: Path, records: Iterable[Record]) -> int:
    """How many attempts the settings beside a run's records name that have none; 0 where no
    settings say."""
    try:
        settings = json.loads((path.parent / SETTINGS).read_text())
        workloads, epochs = list(settings["workloads"]), int(settings["epochs"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0
    done = {(record.task.workload, record.epoch) for record in records}
    return sum((workload, epoch) not in done for workload in workloads for epoch in range(epochs))


def _refuse_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return number


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
            for name in (_KERNELS, _TEXTS):
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
            _append_whole(path, _line(record))
        except OSError as error:
            raise self._refused(path, error) from error
        self.done.add(record.id)

    def keep_kernel(self, kernel_hash: str, text: str) -> None:
        """Stores a candidate's text under its hash, once.

        Raises:
            UsageError: as `append`.
        """
        self._keep(self.folder / _KERNELS / f"{kernel_hash}.ekir", text)

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


def text_path(folder: Path, key: str) -> Path:
    """Where a run keeps the text with a key."""
    return folder / _TEXTS / f"{key}.md"


def kept_text(folder: Path, key: str) -> str | None:
    """The text with a key; None where it was not kept or is gone. Records may be a stranger's: a
    key that is none, or a link in the text's place, would show another file."""
    return _kept(text_path(folder, key)) if _KEY.fullmatch(key) else None


def kept_kernel(folder: Path, kernel_hash: str) -> str | None:
    """The candidate of this hash; None where it was not kept or is gone, as `kept_text`."""
    path = folder / _KERNELS / f"{kernel_hash}.ekir"
    return _kept(path) if _HASH.fullmatch(kernel_hash) else None


def _kept(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file():
        return None
    return path.read_text(encoding="utf-8", errors="replace")


def text_key(text: str) -> str:
    """Of a prompt or an answer: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _refuse_strange(folder: Path) -> None:
    """A run that came from elsewhere may hold links: a record would go to another file, and what
    looks like its half-written end would be cut off.

    Raises:
        UsageError: something lies where a run's own files and folders do.
    """
    for name, fits in (
        *((name, stat.S_ISREG) for name in (RECORDS, SETTINGS, _PARTIAL)),
        *((name, stat.S_ISDIR) for name in (_KERNELS, _TEXTS)),
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
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        cut = data.rfind(b"\n") + 1
        with path.with_name(_PARTIAL).open("ab") as aside:
            aside.write(data[cut:] + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        os.truncate(path, cut)
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


def _append_whole(path: Path, line: bytes) -> None:
    """Adds a line and waits until it is on the disk; takes back what was written of one that does
    not fit, where the disk still lets it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            line = b"\n" + line  # after a line that was cut off and could not be taken back
        try:
            written = 0
            while written < len(line):
                written += os.write(fd, line[written:])
            os.fsync(fd)
        except OSError:
            with contextlib.suppress(OSError):  # a cut line is set aside when the run is resumed
                os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return "; ".join(line.strip() for line in lines[:3]) if lines else type(error).__name__
