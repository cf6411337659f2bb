"""Square products of 1024 on an NVIDIA GPU in many nests, beside cuBLAS (`torch`) and `tvm`.

    .venv/bin/python benchmarks/gpu_matmul.py runs/matmul.jsonl --minutes 2
    .venv/bin/python benchmarks/gpu_matmul.py runs/matmul.jsonl --table

A line a nest: its name, status, microseconds, and how many times as fast as each baseline it is.
The baselines are measured with the first nest of each kind of product, in turns with it. Work that
the file already holds is skipped. Measure with nothing else on the device.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BASELINES = ("torch", "tvm")
SIZE = 1024
Row = dict[str, Any]


@dataclass(frozen=True)
class Nest:
    """A product by one nest.

    Attributes:
        kind: the workload that is resized, and so the order of the second factor and the dtype.
        loops: of the product, `m` and `n` its rows and columns.
        memory: lines of the memory layer.
    """

    kind: str
    name: str
    loops: str
    memory: str

    def text(self, header: str) -> str:
        index = "n, k" if "nt" in self.kind else "k, n"
        half = " f16" in header
        stages = f"P[m: M, n: N] = sum[k: K](A[m, k] * B[{index}])  C[m, n] = P[m, n]"
        if not half:
            stages = f"C[m, n] = sum[k: K](A[m, k] * B[{index}])"
        stage, place = ("P", "place C in P.n0") if half else ("C", "")
        memory = self.memory.replace("S.", f"{stage}.")
        return (
            f"{header} {{\n  compute {{ {stages} }}\n"
            f"  schedule for gpu {{ loops {stage} ({self.loops}) {place} }}\n"
            f"  memory for gpu {{ {memory} }}\n}}\n"
        )


CACHED = "cache A, B in S.k0 prefetch A, B in S.k0 ahead 1"
TURNED_A = "layout A.cache [m, k] -> [k, m]"
TURNED = f"{CACHED} {TURNED_A} layout B.cache [n, k] -> [k, n]"


def plain(m: int, n: int, k: int, rows: int, columns: int) -> str:
    """Neighbouring threads side by side along the columns."""
    return (
        f"block m by {m}, block n by {n}, k by {k}, thread m by {rows}, thread n by {columns}, "
        "k, unroll m, unroll n"
    )


def in_warps(m: int, n: int, k: int, rows: int, columns: int, lanes: tuple[int, int]) -> str:
    """Warps of ``lanes`` threads, so that they read few different rows and columns."""
    high, wide = rows * lanes[0], columns * lanes[1]
    outer = f"block m by {m}, block n by {n}, k by {k}"
    warps = (f"thread m by {high}, " if high < m else "") + (
        f"thread n by {wide}, " if wide < n else ""
    )
    return f"{outer}, {warps}thread m by {rows}, thread n by {columns}, k, unroll m, unroll n"


def quartered(m: int, n: int, k: int) -> str:
    """A thread has four tiles of 4 x 4, half a block apart."""
    return (
        f"block m by {m}, block n by {n}, k by {k}, k, unroll m by {m // 2}, "
        f"unroll n by {n // 2}, thread m by 4, thread n by 4, unroll m, unroll n"
    )


def halves(m: int, n: int, k: int, rows: int) -> str:
    """A thread has two tiles of 4 columns, half a block apart; a warp reads few rows."""
    return (
        f"block m by {m}, block n by {n}, k by {k}, k, unroll n by {n // 2}, "
        f"thread m by {rows}, thread n by 4, unroll m, unroll n"
    )


def cores(m: int, n: int, k: int, rows: int, columns: int) -> str:
    """Tensor cores; a warp has ``rows`` x ``columns``."""
    warps = (f"warp m by {rows}, " if rows < m else "") + (
        f"warp n by {columns}, " if columns < n else ""
    )
    return f"block m by {m}, block n by {n}, k by {k}, {warps}mma m, mma n, mma k"


def nests() -> Iterator[Nest]:
    nt, nn, half_nt, half_nn = "matmul_nt__01", "matmul_nn__01", "matmul_nt__02", "matmul_nn__04"
    row = f"{CACHED} {TURNED_A}"
    best = (64, 128, 16)
    yield Nest(nt, f"{best} 8x4", plain(*best, 8, 4), TURNED)
    yield Nest(nn, f"{best} 8x4", plain(*best, 8, 4), row)
    yield Nest(half_nt, "(64, 64, 64) warps 32x32", cores(64, 64, 64, 32, 32), CACHED)
    yield Nest(half_nn, "(64, 64, 64) warps 32x32", cores(64, 64, 64, 32, 32), CACHED)
    for tile in ((64, 128, 16), (64, 128, 8)):
        yield Nest(nt, f"{tile} 16x4", plain(*tile, 16, 4), TURNED)
        yield Nest(nn, f"{tile} 16x4", plain(*tile, 16, 4), row)
        yield Nest(nt, f"{tile} 8x4 and 8x4", halves(*tile, 8), TURNED)
    for tile in ((32, 256, 16), (32, 256, 8)):
        yield Nest(nt, f"{tile} 8x4 and 8x4", halves(*tile, 8), TURNED)
    yield Nest(nt, "(64, 128, 8) 8x4", plain(64, 128, 8, 8, 4), TURNED)
    yield Nest(nn, "(64, 128, 8) 8x4", plain(64, 128, 8, 8, 4), row)
    yield Nest(nt, "(128, 64, 16) 8x4", plain(128, 64, 16, 8, 4), TURNED)
    yield Nest(nt, "(64, 128, 16) 4x4", plain(*best, 4, 4), TURNED)
    yield Nest(nn, "(64, 128, 16) 4x4", plain(*best, 4, 4), row)
    yield Nest(nt, "(64, 64, 16) 8x4", plain(64, 64, 16, 8, 4), TURNED)
    yield Nest(nn, "(64, 64, 8) 8x4", plain(64, 64, 8, 8, 4), row)
    yield Nest(nt, "(64, 64, 8) 8x4, warps 4x8", in_warps(64, 64, 8, 8, 4, (4, 8)), TURNED)
    yield Nest(nt, "(128, 64, 16) 8x8 quartered", quartered(128, 64, 16), TURNED)
    yield Nest(half_nt, "(64, 64, 128) once", cores(64, 64, 128, 32, 32), "cache A, B in S.k0")
    yield Nest(half_nt, "(128, 64, 64) once", cores(128, 64, 64, 32, 32), "cache A, B in S.k0")
    yield Nest(half_nt, "(64, 32, 64) warps 32x16", cores(64, 32, 64, 32, 16), CACHED)
    yield Nest(half_nt, "(64, 32, 64) warps 16x32", cores(64, 32, 64, 16, 32), CACHED)
    yield Nest(half_nt, "(64, 32, 128) once", cores(64, 32, 128, 32, 16), "cache A, B in S.k0")
    yield Nest(half_nt, "(32, 64, 64) warps 32x16", cores(32, 64, 64, 32, 16), CACHED)
    yield Nest(half_nn, "(32, 64, 64) warps 16x32", cores(32, 64, 64, 16, 32), CACHED)


def measure(options: argparse.Namespace, rows: list[Row]) -> None:
    from edgekernelbench.evaluator import EvalSettings, Evaluator
    from edgekernelbench.suite import load_suite
    from edgekernelbench.targets.registry import find_target

    done = {(row["kind"], row["name"]) for row in rows}
    compared = {row["kind"] for row in rows if row["evaluation"]["baselines"]}
    until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    target, workloads = find_target(options.target), load_suite().workloads
    options.file.parent.mkdir(parents=True, exist_ok=True)
    alone = EvalSettings(baselines=(), replicas=1)
    beside = EvalSettings(baselines=BASELINES, replicas=1)
    with (
        options.file.open("a") as file,
        Evaluator(target, settings=alone) as short,
        Evaluator(target, settings=beside) as long,
    ):
        for nest in nests():
            full = f"{nest.kind} {nest.name}"
            if (nest.kind, nest.name) in done or options.only not in full:
                continue
            if time.monotonic() > until:
                break
            task = workloads[nest.kind].resized(M=SIZE, N=SIZE, K=SIZE)
            evaluator = short if nest.kind in compared else long
            compared.add(nest.kind)
            result = evaluator.evaluate(nest.text(task.header().rstrip(" {")), task)
            rows.append({"kind": nest.kind, "name": nest.name, "evaluation": result.public()})
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            print(line(rows[-1], rows), flush=True)


def line(row: Row, rows: list[Row]) -> str:
    """A nest's line; ratios are above 1 where it is faster than the baseline."""
    found, head = row["evaluation"], f"{row['kind']:14} {row['name']:40}"
    performance = found["performance"]
    if performance is None:
        return f"{head} {found['status']}: {found['message'][:200]}"
    cells = [f"{found['status']} {performance['median_us']:8.1f}"]
    for name in BASELINES:
        results = [r["evaluation"]["baselines"].get(name) for r in rows if r["kind"] == row["kind"]]
        times = [r["median_us"] for r in results if r is not None and r.get("median_us")]
        ratio = f"{times[0] / performance['median_us']:.2f}" if times else "?"
        cells.append(f"{name} {ratio}")
    return f"{head} {'  '.join(cells)}"


def main() -> None:
    from edgekernelbench.errors import UsageError

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--only", default="", help="part of the kind and name of a nest")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin none after that time")
    parser.add_argument("--table", action="store_true", help="only print the lines")
    options = parser.parse_args()
    rows: list[Row] = []
    if options.file.exists():
        rows = [json.loads(text) for text in options.file.read_text().splitlines()]
    try:
        if not options.table:
            measure(options, rows)
    except UsageError as error:
        sys.exit(f"{error.message}: {error.help}")
    if options.table:
        print("\n".join(line(row, rows) for row in rows))


if __name__ == "__main__":
    main()
