"""All canonical programs through the C compiler of this host, run once and compared with the truth.

    .venv/bin/python benchmarks/c_sweep.py runs/c.jsonl
    .venv/bin/python benchmarks/c_sweep.py runs/c-gallery.jsonl --times --gallery
    CC=clang .venv/bin/python benchmarks/c_sweep.py runs/clang.jsonl --small

At the workload's own sizes where that takes no more than ``--full-flops`` operations (NumPy
computes the truth in float64), at the small sizes of its pattern otherwise and with ``--small``.
Arrays lie between guard bytes. ``--times`` builds the same loop program with LLVM, too, and lets
both take turns on one thread: the least processor time of a call is recorded of each, which other
work on the machine disturbs little. Workloads that the file already holds are skipped, so a run
that was stopped goes on; ``--table`` only prints the summary.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gpu_sweep import Result, sweep
from gpu_sweep import table as counted

_PATTERN = 0xA5C3_96F0_5A3C_690F
_LEAST_SECONDS = 0.2
GALLERY = {
    file.stem: file for file in sorted((Path(__file__).parents[1] / "gallery").glob("*.ekir"))
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--small", action="store_true", help="small sizes of all")
    parser.add_argument("--full-flops", type=float, default=2e9)
    parser.add_argument("--times", action="store_true", help="LLVM beside it, in turns")
    parser.add_argument("--gallery", action="store_true", help="the gallery's kernels instead")
    parser.add_argument("--only", default="", help="part of the workloads' names")
    parser.add_argument("--every", type=int, default=1, help="take every n-th workload")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for one workload")
    parser.add_argument("--jobs", type=int, default=1, help="workloads side by side")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin none after that time")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def judged(workload: Any, options: argparse.Namespace, folder: Path) -> Result:
    """One call of the C build; what it leaves must be right, and nothing else be touched."""
    from edgekernelbench.compilers.c import CCompiler
    from edgekernelbench.evaluator.regions import gap_damage
    from edgekernelbench.targets.cc import c_target

    full = options.gallery or (not options.small and workload.flops <= options.full_flops)
    task = workload if full else workload.small()
    text = GALLERY[workload.id].read_text() if options.gallery else task.canonical()
    began = time.monotonic()
    facts = built(text, CCompiler(), c_target(), folder / "c").facts
    took = time.monotonic() - began
    inputs = task.inputs(2)
    arena, layout = laid_out(task, inputs)
    call = bound(task, folder / "c", arena, inputs)
    call()
    if (damage := gap_damage(layout, arena.bytes, _PATTERN)) is not None:
        raise ValueError(f"wrote outside of its arrays, at {damage}")
    got = {s.name: arena.arrays[s.name] for s in task.output_specs}
    verdict = task.compare(got, task.truth(inputs))
    if not verdict.passed:
        raise ValueError(f"wrong result: worst error {verdict.worst_error}")
    out = {
        "size": "full" if full else "small",
        "family": workload.family,
        "worst_error": float(verdict.worst_error),
        "build_s": round(took, 2),
        "code_bytes": facts.code_bytes,
    }
    return out | (timed(task, text, folder, call, inputs) if options.times else {})


def built(text: str, compiler: Any, target: Any, folder: Path) -> Any:
    """The manifest of what a compiler leaves in a folder."""
    from edgekernelbench.ir.check import check_text

    found = check_text(text)
    assert found.kernel is not None and found.program is not None
    folder.mkdir()
    made = compiler.compile(found.kernel, found.program, target, folder)
    if made.artifact is None:
        notes = "; ".join(note for d in made.diagnostics for note in d.notes)
        said = "; ".join(f"{d.rule.code}: {d.message}" for d in made.diagnostics)
        raise ValueError(f"{said} | {notes}")
    return made.artifact.manifest


def laid_out(task: Any, inputs: dict[str, np.ndarray]) -> tuple[Any, Any]:
    """Inputs and outputs between guard bytes, and where they lie."""
    from edgekernelbench.evaluator.regions import Arena, fill, guarded

    moving = [s for s in task.input_specs if not s.const]
    arrays = [(s.name, s.dtype, s.shape) for s in (*moving, *task.output_specs)]
    layout = guarded(arrays, 64)
    arena = Arena(layout, _PATTERN)
    for spec in moving:
        arena.arrays[spec.name][...] = inputs[spec.name]
    for spec in task.output_specs:
        fill(arena.arrays[spec.name], _PATTERN)
    return arena, layout


def bound(task: Any, folder: Path, arena: Any, inputs: dict[str, np.ndarray]) -> Callable[[], None]:
    """The call of a built kernel on an arena."""
    from edgekernelbench.compilers.tvm.execute import LoadedKernel

    moving = {s.name: arena.arrays[s.name] for s in task.input_specs if not s.const}
    consts = {s.name: inputs[s.name] for s in task.input_specs if s.const}
    outputs = {s.name: arena.arrays[s.name] for s in task.output_specs}
    return LoadedKernel(folder).bind(moving, consts, outputs)


def timed(
    task: Any, text: str, folder: Path, call: Callable[[], None], inputs: dict[str, np.ndarray]
) -> Result:
    """The least processor time of a call of each build, in turns, with one thread."""
    from edgekernelbench.compilers.tvm import TvmCompiler
    from edgekernelbench.targets.host import host_target

    built(text, TvmCompiler(), host_target(), folder / "llvm")
    other = bound(task, folder / "llvm", laid_out(task, inputs)[0], inputs)
    best = {"c": math.inf, "llvm": math.inf}
    threads(1)
    rounds, until = 0, time.monotonic() + _LEAST_SECONDS
    while rounds < 5 or (time.monotonic() < until and rounds < 500):
        for name, run in (("c", call), ("llvm", other)):
            run()
            began = time.thread_time_ns()
            run()
            best[name] = min(best[name], (time.thread_time_ns() - began) / 1e3)
        rounds += 1
    threads(host_target().threads)
    return {"c_us": round(best["c"], 2), "llvm_us": round(best["llvm"], 2)}


def threads(count: int) -> None:
    """How many threads the run time's pool has."""
    import tvm_ffi

    tvm_ffi.get_global_func("runtime.config_threadpool")(1, count)


def work(options: argparse.Namespace, scratch: Path) -> None:
    """Reads names of workloads, writes one line of JSON for each."""
    from edgekernelbench.suite.load import load_suite
    from edgekernelbench.targets.host import host_target

    os.environ["TVM_NUM_THREADS"] = str(host_target().threads)
    known = dict(load_suite().workloads)
    for line in sys.stdin:
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(dir=scratch))
        try:
            result = {"ok": True, **judged(known[line.strip()], options, folder)}
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            result = {
                "ok": False,
                "error": type(error).__name__,
                "message": str(error)[:2000],
                "where": f"{Path(where.filename).name}:{where.lineno}",
            }
        result["seconds"] = round(time.monotonic() - began, 2)
        print(json.dumps(result), flush=True)


def table(rows: list[Result]) -> str:
    """Counts, and where both were timed the ratios by family: above 1, LLVM's code is faster."""
    lines = [counted(rows)]
    families: dict[str, list[float]] = {}
    for row in rows:
        if row["ok"] and "c_us" in row and row["size"] == "full":
            families.setdefault(row["family"], []).append(row["c_us"] / row["llvm_us"])
    everything = [ratio for found in families.values() for ratio in found]
    for name, found in (*sorted(families.items()), ("all", everything)):
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            lines.append(
                f"{name:18s} n {len(found):4d}  c / llvm {mean:6.2f}  "
                f"from {min(found):.2f} to {max(found):.2f}"
            )
    return "\n".join(lines)


def main() -> None:
    options = arguments()
    if options.worker:
        with tempfile.TemporaryDirectory(prefix="c-sweep-") as scratch:
            return work(options, Path(scratch))
    from edgekernelbench.suite.load import load_suite

    rows = []
    if options.file.exists():
        rows = [json.loads(line) for line in options.file.read_text().splitlines()]
    done = {row["workload"] for row in rows}
    known = list(GALLERY) if options.gallery else list(load_suite().workloads)
    names = [name for name in known if options.only in name][:: options.every]
    if not options.table:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        with options.file.open("a") as file:

            def note(row: Result) -> None:
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()

            sweep((name for name in names if name not in done), options, note)
    print(table(rows))


if __name__ == "__main__":
    main()
