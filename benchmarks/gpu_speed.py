"""Kernels on a GPU beside the compiler (`tvm`, DLight) and PyTorch (`torch`, cuBLAS and cuDNN).

    .venv/bin/python benchmarks/gpu_speed.py runs/gpu-speed.jsonl --target cuda --minutes 30
    .venv/bin/python benchmarks/gpu_speed.py runs/gpu-speed.jsonl --table

Takes a square f32 product of 1024, under the default rules and in tiles, then the gallery's kernels
with layers for GPUs and the canonical programs of all its workloads. Kernel and baselines are timed
in turns. Work that the file already holds is skipped, so a run that was stopped goes on. Measure
with nothing else on the device.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BASELINES = ("tvm", "torch")
Row = dict[str, Any]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--subset", help="canonical programs of this subset instead")
    parser.add_argument("--only", default="", help="part of the workloads' names")
    parser.add_argument("--kind", help="only these: canonical, tiles or gallery")
    parser.add_argument("--every", type=int, default=1, help="take every n-th")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=0.0, help="begin none after that time")
    parser.add_argument("--table", action="store_true", help="only print the table")
    return parser.parse_args()


TILES = ((64, 64, 16, 8, 4), (64, 64, 16, 8, 8), (128, 64, 16, 8, 8), (128, 128, 16, 8, 8))
"""Rows and columns of a block's tile and its depth, rows and columns of a thread's."""

_TILED = """%s {
  compute { C[m, n] = sum[k: K](A[m, k] * B[n, k]) }
  schedule for gpu {
    loops C (block m by %d, block n by %d, k by %d, thread m by %d, thread n by %d, k,
             unroll m, unroll n)
  }
  memory for gpu {
    cache A, B in C.k0
    layout A.cache [m, k] -> [k, m]
    layout B.cache [n, k] -> [k, n]
  }
}
"""


def tiled(square: Any, tile: tuple[int, ...]) -> str:
    """The product with both factors in shared memory and a tile of the result in registers."""
    return _TILED % (square.header().rstrip(" {"), *tile)


def entries(options: argparse.Namespace) -> Iterator[tuple[str, str, Any, str]]:
    """Name, kind, task and text of each kernel."""
    from edgekernelbench.suite import load_suite
    from edgekernelbench.suite.find import find_subset
    from edgekernelbench.suite.gallery import load_gallery

    if options.subset is not None:
        for workload in find_subset(options.subset):
            yield workload.id, "canonical", workload, workload.canonical()
        return
    square = load_suite().workloads["matmul_nt__01"].resized(M=1024, N=1024, K=1024)
    yield "matmul 1024", "canonical", square, square.canonical()
    for tile in TILES:
        yield f"matmul 1024, {' x '.join(map(str, tile))}", "tiles", square, tiled(square, tile)
    for name, example in load_gallery().items():
        if for_gpus(example.kernel):
            yield name, "gallery", example.workload, example.kernel
        yield name, "canonical", example.workload, example.workload.canonical()


def for_gpus(text: str) -> bool:
    """Whether a kernel has a layer for GPUs; without one it runs under the default rules."""
    from edgekernelbench.ir.parse import parse

    kernel = parse(text).kernel
    layers = () if kernel is None else (*kernel.schedules, *kernel.memories)
    return any(layer.target not in ("cpu", "llvm") for layer in layers)


def measure(options: argparse.Namespace, rows: list[Row]) -> None:
    from edgekernelbench.evaluator import EvalSettings, Evaluator
    from edgekernelbench.targets.registry import find_target

    done = {(row["name"], row["kind"]) for row in rows}
    until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    settings = EvalSettings(baselines=BASELINES, replicas=options.replicas)
    wanted = [
        entry
        for entry in entries(options)
        if options.only in entry[0] and options.kind in (None, entry[1])
    ][:: options.every]
    options.file.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.file.open("a") as file,
        Evaluator(find_target(options.target), settings=settings) as evaluator,
    ):
        for name, kind, task, text in wanted:
            if (name, kind) in done or time.monotonic() > until:
                continue
            result = evaluator.evaluate(text, task)
            rows.append({"name": name, "kind": kind, "evaluation": result.public()})
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            print(line(rows[-1]), flush=True)


def line(row: Row) -> str:
    """A row of the table: times in microseconds, ratios above 1 where the kernel is faster."""
    found = row["evaluation"]
    performance = found["performance"]
    if performance is None:
        return f"{row['name']:40} {row['kind']:9} {found['status']}: {found['message'][:90]}"
    cells = [f"{performance['median_us']:10.1f}"]
    for name in BASELINES:
        result = found["baselines"].get(name, {})
        if result.get("speedup") is None:
            cells.append(f"{name} {result.get('status')}: {result.get('message', '')[:60]}")
        else:
            ratio = f"{result['speedup']:.2f}x"
            cells.append(f"{name} {result['median_us']:.1f} ({ratio})")
    mark = " launch-bound" if performance["overhead_dominated"] else ""
    return f"{row['name']:40} {row['kind']:9} {'  '.join(cells)}{mark}"


def table(rows: list[Row]) -> str:
    """All rows, then by kind: statuses, and the geometric mean against each baseline."""
    lines = [line(row) for row in rows]
    for kind in sorted({row["kind"] for row in rows}):
        evaluations = [row["evaluation"] for row in rows if row["kind"] == kind]
        statuses = Counter(e["status"] for e in evaluations)
        lines.append(f"{kind}: " + ", ".join(f"{n} {s}" for s, n in statuses.most_common()))
        for name in BASELINES:
            found = [e["baselines"].get(name, {}).get("speedup") for e in evaluations]
            ratios = [ratio for ratio in found if ratio is not None]
            if ratios:
                mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
                lines.append(f"  against {name}: {mean:.2f} (geometric mean of {len(ratios)})")
    return "\n".join(lines)


def main() -> None:
    from edgekernelbench.errors import UsageError

    options = arguments()
    rows: list[Row] = []
    if options.file.exists():
        rows = [json.loads(text) for text in options.file.read_text().splitlines()]
    try:
        if not options.table:
            measure(options, rows)
    except UsageError as error:
        sys.exit(f"{error.message}: {error.help}")
    print(table(rows))


if __name__ == "__main__":
    main()
