"""The report: one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from edgekernelbench.report import words
from edgekernelbench.report.details import Details, details
from edgekernelbench.report.entries import Entries
from edgekernelbench.report.losses import Loss
from edgekernelbench.report.pack import pack
from edgekernelbench.report.tasks import TaskRow
from edgekernelbench.report.together import together
from edgekernelbench.report.view import GROUPS, View, view_of

LIMIT = 5_000_000
"""Bytes of a page. Its overview is never shortened, its details of attempts are."""

_LEAST_FOR_DETAILS = 500_000


def report_page(entries: Entries, ks: Sequence[int] = (1,), limit: int = LIMIT) -> str:
    """Renders the report of one or more entries.

    Args:
        entries: what was read.
        ks: the k of Correct@k.
        limit: bytes that the page should not exceed.

    Raises:
        UsageError: see `scores.score.score`.
    """
    views = [view_of(number, entry, ks) for number, entry in enumerate(entries.entries)]
    data = pack(
        {
            "entries": [
                {"name": view.entry.name, "score": view.score, "tasks": _task_data(view)}
                for view in views
            ]
        }
    )

    def render(found: Details) -> str:
        return render_page(
            "report.html.j2", ("data.js", "table.js", "detail.js", "trajectory.js", "main.js"),
            views=views, together=together(views), problems=entries.problems,
            groups=GROUPS, data=data, details=found,
        )  # fmt: skip

    bare = len(render(Details("", "")).encode())
    return render(details([view.entry for view in views], max(limit - bare, _LEAST_FOR_DETAILS)))


def render_page(template: str, scripts: Sequence[str], **values: Any) -> str:
    """A template with the style sheet and scripts in it, the only ones that may run there: what
    a stranger's record says is data."""
    script = "\n".join(_source(name) for name in scripts)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = (
        _environment()
        .get_template(template)
        .render(
            style=Markup(_source("style.css")),
            script=Markup(script),
            script_hash=f"sha256-{allowed}",
            **values,
        )
    )
    return page.lstrip()  # what macros leave behind


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("edgekernelbench.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "times": words.times,
        "time": words.short_time,
        "span": words.seconds,
        "percent": words.percent,
        "counted": words.count,
        "interval": words.interval,
        "amount": words.amount,
        "plain": words.plain,
        "signed": words.signed,
        "chance": words.chance,
        "change": words.change_words,
        "why": why,
    }
    return environment


@cache
def _source(name: str) -> str:
    """A file beside the templates; scripts and styles go into the page as they are."""
    return (files("edgekernelbench.report") / "templates" / name).read_text(encoding="utf-8")


def why(loss: Loss) -> str:
    """A family's losses in one sentence."""
    parts = [f"{n} {words.plain(status.value)}" for status, n in loss.failed.most_common()]
    if loss.slow:
        rivals = ", ".join(f"{name} {n}" for name, n in loss.rivals.most_common(3))
        parts.append(
            f"{loss.slow} correct but surely slower than the best baseline "
            f"(median {words.times(loss.slow_speedup)}; lost to {rivals})"
        )
    if loss.unsure:
        noisy = f", {loss.noisy} measured on a noisy machine" if loss.noisy else ""
        parts.append(f"{loss.unsure} undecided ({loss.ahead} ahead by median{noisy})")
    told = "; ".join(parts)
    return told + (f". Mostly launch overhead: {loss.overhead}" if loss.overhead else "")


def _task_data(view: View) -> list[dict[str, Any]]:
    """Rows of the table of tasks, in the order of their links."""
    return [_row_data(row) for row in view.rows]


def _row_data(row: TaskRow) -> dict[str, Any]:
    facts, performance = row.shown.task, row.performance
    return {
        "workload": facts.workload,
        "pattern": facts.pattern,
        "level": facts.level,
        "family": facts.family,
        "domain": facts.domain,
        "dtype": facts.dtype,
        "target": facts.target,
        "backend": facts.backend,
        "outcome": row.outcome,
        "status": row.status.value,
        "attempts": len(row.attempts),
        "correct": row.correct,
        "places": list(row.places),
        "shown": row.attempts.index(row.shown),
        "us": None if performance is None else performance.median_us,
        "speedup": row.speedup,
        "rival": row.rival,
        "overhead": row.overhead_dominated,
    }
