"""Records as flat rows: one an attempt and baseline, the same columns for every run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from edgekernelbench.evaluator.model import BaselineResult, Evaluation
from edgekernelbench.records.schema import Record
from edgekernelbench.report.entries import Entry
from edgekernelbench.scores.attempts import baseline_order, speedups

Kind = Literal["text", "integer", "number", "truth"]
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    """``kind``: of its values, beside None for what is not known."""

    name: str
    kind: Kind


_TEXTS = (
    "run", "id", "workload", "pattern", "level", "family", "domain", "dtype", "target", "backend",
    "tolerance", "tolerance_version", "agent", "agent_options", "model", "epoch", "seed", "status",
    "message", "kernel_hash", "isolated", "started", "seconds", "version",
)  # fmt: skip
_OTHER_KINDS: dict[str, Kind] = {
    "level": "integer", "tolerance_version": "integer", "epoch": "integer", "seed": "integer",
    "isolated": "truth", "seconds": "number",
}  # fmt: skip

_LIMITS: tuple[Column, ...] = tuple(
    Column(f"{side}_{what}", "integer" if what in ("evaluations", "tokens") else "number")
    for side in ("limit", "spent")
    for what in ("evaluations", "tokens", "seconds", "cost")
)
_FIGURES: tuple[Column, ...] = (
    Column("matched_ratio", "number"), Column("worst_error", "number"),
    Column("median_us", "number"), Column("low_us", "number"), Column("high_us", "number"),
    Column("quarantined", "truth"), Column("timer", "text"), Column("cache_state", "text"),
    Column("threads", "integer"), Column("rounds", "integer"),
    Column("launch_overhead_us", "number"), Column("overhead_dominated", "truth"),
    Column("flops", "number"), Column("io_bytes", "integer"), Column("workspace_bytes", "integer"),
    Column("packed_bytes", "integer"), Column("code_bytes", "integer"),
    Column("memory_bytes", "integer"), Column("first_call_us", "number"),
    Column("processor", "text"), Column("system", "text"),
)  # fmt: skip
_BASELINE: tuple[Column, ...] = (
    Column("baseline", "text"), Column("baseline_status", "text"),
    Column("baseline_scored", "truth"), Column("baseline_is_best", "truth"),
    Column("baseline_median_us", "number"), Column("baseline_low_us", "number"),
    Column("baseline_high_us", "number"), Column("speedup", "number"),
    Column("speedup_low", "number"), Column("speedup_high", "number"),
    Column("fast_at_1", "truth"), Column("baseline_route", "text"),
)  # fmt: skip

COLUMNS: tuple[Column, ...] = (
    *(Column(name, _OTHER_KINDS.get(name, "text")) for name in _TEXTS),
    *_LIMITS,
    *_FIGURES,
    *_BASELINE,
)
"""In the order of the file. `docs/reports.md` says what they mean."""

Row = dict[str, Value]


def rows_of(entries: Sequence[Entry]) -> Iterator[Row]:
    """A row for each attempt and each of its baselines, one without a baseline for an attempt that
    has none; every row has every column."""
    empty: Row = {column.name: None for column in COLUMNS}
    for entry in entries:
        for record in entry.records:
            own = empty | _attempt(entry.name, record) | _figures(record.evaluation)
            against = _baselines(record)
            yield from (own | baseline for baseline in against) if against else (own,)


def _attempt(name: str, record: Record) -> Row:
    facts = record.task.model_dump(mode="json")
    out: Row = {key: facts[key] for key in facts if key in _TEXTS}
    for side, spent in (("limit", record.limits), ("spent", record.spent)):
        out |= {f"{side}_{what}": value for what, value in spent.model_dump().items()}
    evaluation = record.evaluation
    return out | {
        "run": name,
        "id": record.id,
        "agent": record.agent,
        "agent_options": json.dumps(record.agent_options, sort_keys=True),
        "model": record.model,
        "epoch": record.epoch,
        "seed": record.seed,
        "status": record.status.value,
        "message": record.message if evaluation is None else evaluation.message,
        "kernel_hash": record.kernel_hash,
        "isolated": record.isolated,
        "started": record.started,
        "seconds": record.seconds,
        "version": record.versions.get("edgekernelbench"),
    }


def _figures(evaluation: Evaluation | None) -> Row:
    if evaluation is None:
        return {}
    out: Row = {}
    for part, names in (
        (evaluation.correctness, ("matched_ratio", "worst_error")),
        (evaluation.resources, ("memory_bytes", "first_call_us")),
        (
            None if evaluation.resources is None else evaluation.resources.facts,
            ("flops", "io_bytes", "workspace_bytes", "packed_bytes", "code_bytes"),
        ),
        (
            evaluation.performance or evaluation.quarantined,
            ("median_us", "low_us", "high_us", "timer", "cache_state", "threads", "rounds",
             "launch_overhead_us", "overhead_dominated"),
        ),
    ):  # fmt: skip
        if part is not None:
            out |= {name: _plain(getattr(part, name)) for name in names}
            if part is evaluation.quarantined:
                out["quarantined"] = True
            elif part is evaluation.performance:
                out["quarantined"] = False
    if evaluation.environment is not None:
        out |= {
            "processor": evaluation.environment.cpu,
            "system": evaluation.environment.system,
        }
    return out


def _plain(value: Any) -> Value:
    return value if isinstance(value, bool | int | float | str) else None


def _baselines(record: Record) -> list[Row]:
    evaluation = record.evaluation
    if evaluation is None:
        return []
    fast = {name: low >= 1.0 for name, (_, low) in speedups(record).items()}
    return [
        _baseline(name, evaluation.baselines[name], name == evaluation.best, fast.get(name))
        for name in baseline_order(evaluation.baselines)
    ]


def _baseline(name: str, result: BaselineResult, best: bool, fast: bool | None) -> Row:
    return {
        "baseline": name,
        "baseline_status": result.status,
        "baseline_scored": result.scored,
        "baseline_is_best": best,
        "baseline_median_us": result.median_us,
        "baseline_low_us": result.low_us,
        "baseline_high_us": result.high_us,
        "speedup": result.speedup,
        "speedup_low": result.speedup_low,
        "speedup_high": result.speedup_high,
        "fast_at_1": fast,
        "baseline_route": result.route,
    }
