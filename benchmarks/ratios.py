"""Markdown table of a run: how the baselines compare with each other, by family.

.venv/bin/python benchmarks/ratios.py runs/sweep > table.md

A ratio is the other baseline's time over that of `tvm`: above 1, `tvm` is the faster one.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

OTHERS = ("tvm-raw", "ort")


def main() -> None:
    from edgekernelbench.records.read import find_records

    records = find_records(Path(sys.argv[1])).records
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    candidates: dict[str, list[float]] = defaultdict(list)
    statuses: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for record in records:
        family = record.task.family
        for group in (family, "all"):
            statuses[group][record.status.value] += 1
        evaluation = record.evaluation
        tvm = None if evaluation is None else evaluation.baselines.get("tvm")
        if evaluation is None or tvm is None or tvm.median_us is None:
            continue
        for other in OTHERS:
            found = evaluation.baselines.get(other)
            if found is not None and found.median_us is not None:
                for group in (family, "all"):
                    ratios[group][other].append(found.median_us / tvm.median_us)
        if evaluation.performance is not None:
            for group in (family, "all"):
                candidates[group].append(tvm.median_us / evaluation.performance.median_us)
    print("| family | correct | tvm-raw / tvm | n | ort / tvm | n | tvm / canonical program |")
    print("|---|---|---|---|---|---|---|")
    for family in [*sorted(f for f in statuses if f != "all"), "all"]:
        counts = statuses[family]
        cells = [f"{counts['correct']}/{sum(counts.values())}"]
        for other in OTHERS:
            values = ratios[family][other]
            cells += [_mean(values), str(len(values))]
        print(f"| {family} | {' | '.join([*cells, _mean(candidates[family])])} |")
    others = {s: n for s, n in statuses["all"].items() if s != "correct"}
    print(f"\nnot correct: {others or 'none'}")


def _mean(values: Iterable[float]) -> str:
    """Geometric mean."""
    logs = [math.log(value) for value in values]
    return f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "-"


if __name__ == "__main__":
    main()
