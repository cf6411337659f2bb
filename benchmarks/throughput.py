"""How many evaluations a minute this host reaches with small kernels, what of that time is the
kernels' own, and whether the parent's memory stays flat. Prints one JSON object.

.venv/bin/python benchmarks/throughput.py 500 --out runs/throughput.jsonl
.venv/bin/python benchmarks/throughput.py 5000 --brief --out runs/memory.jsonl

Full evaluations by the standard settings: compiled, checked and timed beside every baseline, eight
in a row of each task, as an agent makes them; no text comes twice. Baselines are built before the
clock starts. What is measured goes to the file as it comes; started again, it goes on with the
numbers that are left, in a new process, whose memory is looked at apart. ``--brief`` measures
kernels of level 1 for a hundredth of a second, beside one baseline: for the memory, not the rate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from edgekernelbench.evaluator import EvalSettings, Evaluator
from edgekernelbench.evaluator.ahead import build_ahead
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.runs.bench import Bench
from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.targets.registry import find_target

FLOPS, BYTES = 2e8, 16 << 20
"""The largest task that counts as small."""

BRIEF = EvalSettings(measure_s=0.01, interval=1.0, replicas=1, baselines=("tvm",))

IN_A_ROW = 8
WARM = 256
"""Evaluations of a process after which its memory is looked at: each task had its turn twice."""


def small_tasks(levels: tuple[int, ...] = (1, 2, 3)) -> list[Workload]:
    """Of the quick subset."""
    tasks = [(w, as_task(w)) for w in load_suite().subset("quick") if w.level in levels]
    return [w for w, task in tasks if task.flops <= FLOPS and task.bytes_touched <= BYTES]


def kernel_seconds(evaluation: Evaluation) -> tuple[float, float]:
    """In counted calls of the kernel, and of the baselines."""
    own = evaluation.performance
    rivals = evaluation.baselines.values()
    return (
        0.0 if own is None else sum(own.samples_us) * own.calls_per_sample / 1e6,
        sum(sum(r.samples_us) * r.calls_per_sample for r in rivals) / 1e6,
    )


def measure(
    numbers: Sequence[int], process: int, settings: EvalSettings
) -> Iterator[dict[str, Any]]:
    """One row an evaluation."""
    workloads = small_tasks((1,)) if settings is BRIEF else small_tasks()
    texts = {w.id: w.canonical() for w in workloads}
    parent = psutil.Process()
    with Evaluator(find_target("llvm"), settings=settings) as evaluator, Bench(evaluator) as bench:
        for _ in build_ahead(evaluator, [as_task(w) for w in workloads]):
            pass
        evaluator.peaks()
        evaluator.warm()
        for number in numbers:
            workload = workloads[number // IN_A_ROW % len(workloads)]
            began = time.perf_counter()
            evaluation = bench.evaluate(workload, f"# {number}\n{texts[workload.id]}")
            own, rivals = kernel_seconds(evaluation)
            yield {
                "number": number,
                "process": process,
                "workload": workload.id,
                "status": evaluation.status.value,
                "message": evaluation.message,
                "seconds": time.perf_counter() - began,
                "waited": evaluation.lock_wait_seconds,
                "kernel": own,
                "baselines": rivals,
                "timings": evaluation.timings,
                "rss": parent.memory_info().rss,
            }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seconds = [row["seconds"] - row["waited"] for row in rows]
    total = sum(seconds)
    steps = Counter[str]()
    for row in rows:
        steps.update(row["timings"])
    return {
        "evaluations": len(rows),
        "statuses": dict(Counter(row["status"] for row in rows)),
        "a_minute": round(60 * len(rows) / total, 1),
        "median_seconds": round(statistics.median(seconds), 3),
        "slowest_seconds": round(max(seconds), 3),
        "share_in_the_kernel": round(sum(row["kernel"] for row in rows) / total, 4),
        "share_in_baselines": round(sum(row["baselines"] for row in rows) / total, 4),
        "share_by_step": {n: round(s / total, 4) for n, s in steps.most_common() if n != "total"},
        "memory": [memory(own) for own in _by_process(rows)],
    }


def _by_process(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for process in sorted({row["process"] for row in rows}):
        yield [row for row in rows if row["process"] == process]


def memory(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """MiB of the parent: at the tenths of a process's life, and its slope once it is warm."""
    rss = np.array([row["rss"] for row in rows]) / 2**20
    warm = rss[WARM:]
    slope = (
        float(np.polyfit(np.arange(warm.size), warm, 1)[0]) * 1000 if warm.size >= WARM else None
    )
    return {
        "evaluations": len(rows),
        "mib": [round(float(value), 1) for value in rss[:: max(1, rss.size // 10)]],
        "last_mib": round(float(rss[-1]), 1),
        "mib_a_thousand": None if slope is None else round(slope, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("evaluations", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/throughput.jsonl"))
    parser.add_argument("--brief", action="store_true", help="measure hardly at all")
    options = parser.parse_args()
    settings = BRIEF if options.brief else EvalSettings()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a+", encoding="utf-8") as file:
        file.seek(0)
        rows = [json.loads(line) for line in file if line.endswith("\n")]
        process = 1 + max((row["process"] for row in rows), default=0)
        for row in measure(range(len(rows), options.evaluations), process, settings):
            file.write(json.dumps(row) + "\n")
            file.flush()
            rows.append(row)
    print(json.dumps(summary(rows), indent=2))


if __name__ == "__main__":
    main()
