"""What correct kernels take, and scores under a cap of memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import Resources
from edgekernelbench.records.schema import Record
from edgekernelbench.scores.attempts import counted, is_correct, uncounted
from edgekernelbench.scores.shares import correct_at, fast_at
from edgekernelbench.targets.profiles.quantities import Bytes

_BILL: dict[str, Callable[[Resources], float | None]] = {
    "memory_bytes": lambda r: r.memory_bytes,
    "peak_rss_bytes": lambda r: r.peak_rss_bytes,
    "workspace_bytes": lambda r: r.facts and r.facts.workspace_bytes,
    "packed_bytes": lambda r: r.facts and r.facts.packed_bytes,
    "code_bytes": lambda r: r.facts and r.facts.code_bytes,
    "first_call_us": lambda r: r.first_call_us,
    "compile_seconds": lambda r: r.facts and r.facts.compile_seconds,
    "prepack_seconds": lambda r: r.prepack_seconds,
}

_SIZE: TypeAdapter[int] = TypeAdapter(Bytes)


def bytes_of(text: str) -> int:
    """Bytes of a size as profiles write it (``64 MB``, ``64MiB``), or of a bare number.

    Raises:
        UsageError: it is none, or not positive.
    """
    try:
        return _SIZE.validate_python(int(text) if text.strip().isdecimal() else text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no size of memory", "write 64MB, 64MiB or a number of bytes"
        ) from error


def summary(records: Iterable[Record]) -> dict[str, dict[str, float | int | None]]:
    """Median and maximum of each line of the bill over correct attempts that tell it."""
    bills = [bill for r in records if is_correct(r) and (bill := _bill(r)) is not None]
    out = {}
    for name, get in _BILL.items():
        values = [value for bill in bills if (value := get(bill)) is not None]
        out[name] = {
            "n": len(values),
            "median": statistics.median(values) if values else None,
            "max": max(values, default=None),
        }
    return out


def under_cap(
    records: Sequence[Record], ks: Sequence[int], baselines: Sequence[str], cap: int
) -> dict[str, Any]:
    """Correct@k and Fast@p where a kernel counts only if its bill of memory is within ``cap``.

    The bill is what one call needs: inputs, outputs, packed copies and workspace. A correct
    attempt that does not tell it counts as over, and is counted as ``unknown``.
    """
    tasks = counted(records)
    correct = [r for r in records if is_correct(r)]
    unknown = sum(_needs(record) is None for record in correct)

    def within(record: Record) -> bool:
        needed = _needs(record)
        return needed is not None and needed <= cap

    return {
        "bytes": cap,
        "over": sum(not within(record) for record in correct) - unknown,
        "unknown": unknown,
        "correct_at": correct_at(tasks, ks, uncounted(records), within),
        "fast_at": fast_at(tasks, baselines, within),
    }


def _bill(record: Record) -> Resources | None:
    return None if record.evaluation is None else record.evaluation.resources


def _needs(record: Record) -> int | None:
    bill = _bill(record)
    return None if bill is None else bill.memory_bytes
