"""Reading the folder of a run, as whoever wrote it left it: records, candidates, texts.

Records may be a stranger's, and may be half-written: what is no record is skipped and told.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.schema import RECORD_VERSION, Record

RECORDS = "records.jsonl"
SETTINGS = "run.json"
KERNELS, TEXTS = "kernels", "texts"
_KEY = re.compile(r"[0-9a-f]{32}")
_HASH = re.compile(r"[0-9a-f]{64}")


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
            data = json.loads(
                line, parse_constant=_refuse_number, parse_float=_finite, parse_int=_countable
            )
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
        if gone := missing(path, part.records):
            problems.append(f"{path}: {gone} attempts of this run have no record")
    found = tuple(record for record, _ in records.values())
    replaced = {(r.run, r.id, r.started): r for part in loaded for r in part.replaced}
    return Loaded(
        found,
        tuple(problems),
        tuple(folder for _, folder in records.values()),
        tuple(replaced.values()),
    )


def missing(path: Path, records: Iterable[Record]) -> int:
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


def _countable(text: str) -> int:
    """What is larger has no place in a float, where sums and shares are made."""
    number = int(text)
    if abs(number) >> 64:
        raise ValueError(f"{text[:40]} is beyond all counts")
    return number


def text_path(folder: Path, key: str) -> Path:
    """Where a run keeps the text with a key."""
    return folder / TEXTS / f"{key}.md"


def kept_text(folder: Path, key: str) -> str | None:
    """The text with a key; None where it was not kept or is gone. Records may be a stranger's: a
    key that is none, or a link in the text's place, would show another file."""
    return _kept(text_path(folder, key)) if _KEY.fullmatch(key) else None


def kernel_path(folder: Path, kernel_hash: str) -> Path:
    """Where a run keeps the candidate of this hash."""
    return folder / KERNELS / f"{kernel_hash}.ekir"


def kept_kernel(folder: Path, kernel_hash: str) -> str | None:
    """The candidate of this hash; None where it was not kept or is gone, as `kept_text`."""
    return _kept(kernel_path(folder, kernel_hash)) if _HASH.fullmatch(kernel_hash) else None


def _kept(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file():
        return None
    return path.read_text(encoding="utf-8", errors="replace")


def text_key(text: str) -> str:
    """Of a prompt or an answer: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return "; ".join(line.strip() for line in lines[:3]) if lines else type(error).__name__
