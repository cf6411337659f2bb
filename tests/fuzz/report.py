"""The result of a long run: one JSON object, and a table of it."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Any

_GOOD = {
    "parser": ("verified",),
    "programs": ("well formed: agrees", "reckless: agrees", "mutation: agrees", "heavy: agrees"),
    "layers": ("well formed: agrees", "canonical: agrees"),
    "gpu": ("well formed: agrees", "canonical: agrees"),
    "races": ("canonical: clean", "well formed: clean"),
}
"""Outcomes that a part is there for: texts that verify, compiled programs that agree,
simulated ones without a finding."""


def result(parts: dict[str, dict], counts: dict[str, int]) -> dict[str, Any]:
    """Everything that is known, for a file.

    Args:
        parts: summaries of the stores.
        counts: inputs that the long form wants of each part.
    """
    found = {}
    for name, summary in parts.items():
        good = sum(summary["counts"].get(outcome, 0) for outcome in _GOOD[name])
        found[name] = {"wanted": counts[name], "good": good, **summary}
    return {
        "command": f"python -m tests.fuzz {' '.join(sys.argv[1:])}",
        "host": {
            "machine": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "apache-tvm": version("apache-tvm"),
            "numpy": version("numpy"),
        },
        "parts": found,
    }


_HEAD = (
    "part", "inputs", "of", "good", "failed", "text s (seed)", "text MiB (seed)",
    "input s (seed)", "process MiB (seed)", "inputs per CPU s",
)  # fmt: skip


def table(found: dict[str, Any]) -> str:
    """A Markdown table, a row for each part, and a line for each kind of failure."""
    rows = [_HEAD, ("---",) * len(_HEAD)]
    failures = []
    for name, part in found["parts"].items():
        failed = sum(len(seeds) for seeds in part["failures"].values())
        cells = (name, part["inputs"], part["wanted"], part["good"], failed)
        most = (_most(part, key) for key in ("text_s", "text_mb", "input_s", "process_mb"))
        rows.append((*map(str, cells), *most, str(part["inputs_per_cpu_s"] or "")))
        for kind, seeds in part["failures"].items():
            some = ", ".join(map(str, seeds[:8]))
            failures.append(f"{name}: {kind}: {len(seeds)} (seeds {some})")
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", *failures] if failures else lines)


def _most(part: dict, key: str) -> str:
    if key not in part["most"]:
        return ""
    return f"{part['most'][key]['value']:.3g} ({part['most'][key]['seed']})"
