"""Markdown tables of a run's records: scores, families, one row a workload.

.venv/bin/python benchmarks/table.py runs/agent32 > table.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def main() -> None:
    from edgekernelbench.records.read import find_records
    from edgekernelbench.scores.score import score

    records = find_records(Path(sys.argv[1])).records
    result = score(records)
    print(f"{result['n']} tasks: {result['statuses']}\n")
    print("| baseline | Fast@1.0 | by median | geometric mean [95 %] | tasks |")
    print("|---|---|---|---|---|")
    for name in ("best", "tvm", "ort", "tvm-raw"):
        at = result["fast_at"][name]["1.0"]
        low, high = result["geomean_interval"][name]
        mean = result["geomean_speedup"][name]
        print(
            f"| {name} | {_share(at)} | {_share(at['by_median'])} "
            f"| {mean:.2f} [{low:.2f}, {high:.2f}] | {at['n']} |"
        )
    print("\n| family | correct | Fast@1.0 best | geomean best | geomean tvm | geomean ort |")
    print("|---|---|---|---|---|---|")
    for family, group in result["by_family"].items():
        means = group["geomean_speedup"]
        cells = " | ".join(_times(means.get(b)) for b in ("best", "tvm", "ort"))
        correct, fast = group["correct_at"]["1"], group["fast_at"]["best"]["1.0"]
        print(f"| {family} | {_share(correct)} | {_share(fast)} | {cells} |")
    print("\n| workload | us | best | tvm | ort | tvm-raw |")
    print("|---|---|---|---|---|---|")
    for record in records:
        evaluation = record.evaluation
        if evaluation is None or evaluation.performance is None:
            print(f"| {record.task.workload} | {record.status.value} | - | - | - | - |")
            continue
        times = {n: _times(b.speedup) for n, b in evaluation.baselines.items()}
        best = f"{times.get(evaluation.best or '', '-')} ({evaluation.best})"
        others = " | ".join(times.get(name, "-") for name in ("tvm", "ort", "tvm-raw"))
        time = evaluation.performance.median_us
        print(f"| {record.task.workload} | {time:.4g} | {best} | {others} |")


def _share(cell: dict[str, Any]) -> str:
    return "-" if cell["value"] is None else f"{cell['count']}/{cell['n']}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
