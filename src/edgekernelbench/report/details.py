"""Everything that a page has of each attempt: its record, with the texts that the run kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgekernelbench.records.read import kept_kernel, kept_text
from edgekernelbench.records.schema import Record
from edgekernelbench.report.entries import Entry
from edgekernelbench.report.pack import Pool, pack

_LONG = 120
"""Characters from which a text is put into the pool."""

_TEXT_KEYS = ("prompt", "answer", "patch")


@dataclass(frozen=True, slots=True)
class Kept:
    """What of an attempt's record comes along; ``without`` says in words what does not."""

    texts: bool = True
    candidates: bool = True
    samples: bool = True
    steps: bool = True
    without: str = ""


_STAGES = (
    Kept(),
    Kept(texts=False, without="prompts, answers and patches"),
    Kept(texts=False, candidates=False, without="prompts, answers, patches and candidates"),
    Kept(False, False, False, without="prompts, answers, patches, candidates and raw samples"),
    Kept(
        False, False, False, False,
        "prompts, answers, patches, candidates, raw samples and trajectories",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Details:
    """``packed``: of ``{"texts": [paragraph], "entries": [[attempt]]}``, attempts in the order of
    the entry's records. ``without``: what was left out to stay below the limit; empty if nothing.
    """

    packed: str
    without: str


def details(entries: Sequence[Entry], limit: int) -> Details:
    """All attempts, with as much of each as fits into ``limit`` characters; the least is the
    verdict with its figures, the kernel and the diagnostics, whatever its size."""
    for kept in _STAGES:
        pool = Pool()
        attempts = [
            [_attempt(r, f, kept, pool) for r, f in zip(e.records, e.folders, strict=True)]
            for e in entries
        ]
        packed = pack({"texts": pool.paragraphs, "entries": attempts})
        if len(packed) <= limit or kept is _STAGES[-1]:
            return Details(packed, kept.without)
    raise AssertionError("unreachable")


def _attempt(record: Record, folder: Path, kept: Kept, pool: Pool) -> dict[str, Any]:
    data = record.model_dump(mode="json", exclude_none=True)
    steps = data.pop("trajectory", []) if kept.steps else []
    data["trajectory"] = [_step(step, folder, kept) for step in steps]
    if not kept.samples:
        for figures in _figures(data):
            figures.pop("samples_us", None)
    return _pooled(data, pool)


def _step(step: dict[str, Any], folder: Path, kept: Kept) -> dict[str, Any]:
    """A step with the texts that it names in place of their keys; None where a text is gone or
    was left out."""
    for key in _TEXT_KEYS:
        if key in step:
            step[key] = kept_text(folder, step[key]) if kept.texts else None
    if kept.candidates and step.get("action") in ("evaluate", "keep", "check"):
        step["kernel"] = kept_kernel(folder, step.get("kernel_hash") or "")
    return step


def _figures(data: dict[str, Any]) -> list[dict[str, Any]]:
    evaluation = data.get("evaluation") or {}
    own = [evaluation.get(name) for name in ("performance", "quarantined")]
    return [each for each in (*own, *evaluation.get("baselines", {}).values()) if each]


def _pooled(value: Any, pool: Pool, key: str = "") -> Any:
    """Long texts become ``{"$": paragraphs}``; samples keep four digits, the record has all."""
    if isinstance(value, str):
        return {"$": pool.put(value)} if len(value) >= _LONG else value
    if isinstance(value, dict):
        return {name: _pooled(inner, pool, name) for name, inner in value.items()}
    if isinstance(value, list):
        if key == "samples_us":
            return [float(f"{sample:.4g}") for sample in value]
        return [_pooled(inner, pool) for inner in value]
    return value
