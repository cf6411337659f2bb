"""Markdown table: what honest executors need of each tolerance class.

.venv/bin/ekb suite check --out runs/suite-check.jsonl
.venv/bin/python benchmarks/tolerances.py runs/suite-check.jsonl > table.md

Errors are worst errors over all elements, as shares of the allowed error.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

FIGURES = ("compiled_error", "twin_error", "canonical_error")


def main() -> None:
    from edgekernelbench.suite import load_suite

    workloads = load_suite().workloads
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in Path(sys.argv[1]).read_text().splitlines():
        outcome = json.loads(line)
        tolerance = workloads[outcome["workload"]].tolerance
        found[tolerance]["workloads"].append(1)
        for figure in FIGURES:
            if figure in outcome["figures"]:
                found[tolerance][figure].append(outcome["figures"][figure])
    print(
        "| class | workloads | compiled: least | median | most | twin: most | interpreter: most |"
    )
    print("|---|---|---|---|---|---|---|")
    for tolerance, figures in sorted(found.items()):
        errors = sorted(figures["compiled_error"])
        middle = errors[len(errors) // 2] if errors else None
        cells = [
            len(figures["workloads"]),
            *(map(_share, (min(errors, default=None), middle, max(errors, default=None)))),
            _share(max(figures["twin_error"], default=None)),
            _share(max(figures["canonical_error"], default=None)),
        ]
        print(f"| {tolerance} | {' | '.join(map(str, cells))} |")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


if __name__ == "__main__":
    main()
