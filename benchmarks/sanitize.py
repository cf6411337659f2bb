"""Default GPU schedules under NVIDIA's compute-sanitizer or Oclgrind: accesses, races, barriers.

    .venv/bin/python benchmarks/sanitize.py runs/sanitize.jsonl --every 20
    .venv/bin/python benchmarks/sanitize.py runs/oclgrind.jsonl --tool oclgrind --patterns

Each kernel is compiled for the first CUDA device and run once at the small sizes of its pattern,
every array in memory of its own, in a process that the sanitizer watches: once with each tool. With
``--tool oclgrind`` it is compiled for OpenCL and simulated; no device is needed. Rows that the file
already holds are skipped. Without compute-sanitizer it says so and ends with 2.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TOOLS = ("memcheck", "racecheck", "synccheck")
SIMULATED = "oclgrind"
FOUND = 99
"""Exit status that the sanitizer is told to give when it has found something."""

_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_ARRAYS, _DEVICE = "inputs.npz", "device.json"
Row = dict[str, Any]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", help="default: cuda, or opencl for Oclgrind")
    parser.add_argument("--tool", action="append", choices=(*TOOLS, "initcheck", SIMULATED))
    parser.add_argument("--patterns", action="store_true", help="one workload of each pattern")
    parser.add_argument("--only", default="", help="part of the workloads' names")
    parser.add_argument("--every", type=int, default=1, help="take every n-th workload")
    parser.add_argument("--first", type=int, default=0, help="leave out those before")
    parser.add_argument(
        "--full-flops",
        type=float,
        default=0.0,
        help="only workloads of no more operations, at their own sizes",
    )
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one run")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin none after that time")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def launch(folder: Path) -> None:
    """Runs what lies in a folder once: this is what the sanitizer watches."""
    from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
    from edgekernelbench.targets.device import chosen

    choice = chosen(json.loads((folder / _DEVICE).read_text()))
    with np.load(folder / _ARRAYS) as arrays:
        given = {name: arrays[name] for name in arrays.files}
    LoadedDeviceKernel(folder, choice).run_apart(given, given)


def watch(sanitizer: str, tool: str, folder: Path, options: argparse.Namespace) -> Row:
    """One run under one tool: ``errors``, and the first lines of what it says."""
    watched = [sys.executable, __file__, str(folder), "--launch"]
    words = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), *watched]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"ok": None, "why": "not finished in time"}
    text = done.stdout + done.stderr
    counts = [int(n) for n in _SUMMARY.findall(text)]
    if done.returncode not in (0, FOUND) or not counts:
        return {"ok": None, "why": f"status {done.returncode}", "says": text[-600:]}
    errors = sum(counts)
    return {"ok": errors == 0, "errors": errors, "says": text[:600] if errors else ""}


def rows_of(
    workload: Any, target: Any, sanitizer: str, tools: list[str], options: argparse.Namespace
) -> list[Row]:
    """A workload's row for each tool."""
    from edgekernelbench.compilers.tvm import TvmCompiler
    from edgekernelbench.ir.check import check_text

    small = sized(workload, options)
    checked = check_text(small.canonical())
    assert checked.kernel is not None and checked.program is not None
    with tempfile.TemporaryDirectory(prefix="sanitize-") as scratch:
        folder = Path(scratch)
        built = TvmCompiler().compile(checked.kernel, checked.program, target, folder)
        if built.artifact is None:
            why = built.diagnostics[0].message
            return [{"workload": workload.id, "tool": t, "ok": None, "why": why} for t in tools]
        np.savez(folder / _ARRAYS, **small.inputs(2))
        (folder / _DEVICE).write_text(target.device.choice.model_dump_json())
        return [
            {"workload": workload.id, "tool": tool, **watch(sanitizer, tool, folder, options)}
            for tool in tools
        ]


def simulated(workload: Any, target: Any, options: argparse.Namespace) -> Row:
    """A workload's row for Oclgrind."""
    from edgekernelbench.evaluator.checked import check_run

    small = sized(workload, options)
    report = check_run(small.canonical(), small, target, options.timeout)
    row = {"workload": workload.id, "tool": SIMULATED, "seconds": report.seconds}
    if report.outcome in ("clean", "found"):
        says = "; ".join(d["message"] for d in report.diagnostics)
        errors = len(report.diagnostics)
        return {**row, "ok": report.outcome == "clean", "errors": errors, "says": says[:600]}
    return {**row, "ok": None, "why": report.message}


def sized(workload: Any, options: argparse.Namespace) -> Any:
    return workload if options.full_flops else workload.small()


def chosen_workloads(options: argparse.Namespace) -> list[Any]:
    from edgekernelbench.suite.load import load_suite

    named = [w for name, w in load_suite().workloads.items() if options.only in name]
    if options.full_flops:
        named = [w for w in named if w.flops <= options.full_flops]
    if options.patterns:
        named = list({w.pattern: w for w in reversed(named)}.values())[::-1]
    return named[options.first :: options.every]


def sanitizer() -> str:
    """Path of compute-sanitizer; ends the program where there is none."""
    path = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(path).is_file():
        print("skipped: compute-sanitizer is missing (it is part of the CUDA toolkit)")
        sys.exit(2)
    return path


def table(rows: list[Row]) -> str:
    """Counts by tool, then everything that is not clean."""
    lines = []
    for tool in sorted({row["tool"] for row in rows}):
        counts = Counter(row["ok"] for row in rows if row["tool"] == tool)
        summary = f"{counts[True]} clean, {counts[False]} with findings, {counts[None]} not run"
        lines.append(f"{tool:10} {summary}")
    for row in rows:
        if not row["ok"]:
            said = row.get("why") or f"{row['errors']} errors"
            lines.append(f"  {row['workload']} {row['tool']}: {said}")
    return "\n".join(lines)


def judge(options: argparse.Namespace, tools: list[str], rows: list[Row]) -> Iterator[Row]:
    """The rows that are not there yet."""
    from edgekernelbench.targets.registry import find_target

    simulating = tools == [SIMULATED]
    watcher = "" if simulating else sanitizer()
    target = find_target(options.target or ("opencl" if simulating else "cuda"))
    done = {(row["workload"], row["tool"]) for row in rows}
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    for workload in chosen_workloads(options):
        left = [tool for tool in tools if (workload.id, tool) not in done]
        if not left or time.monotonic() > until:
            continue
        if simulating:
            yield simulated(workload, target, options)
        else:
            yield from rows_of(workload, target, watcher, left, options)


def main() -> None:
    options = arguments()
    if options.launch:
        return launch(options.file)
    tools = options.tool or list(TOOLS)
    if SIMULATED in tools and tools != [SIMULATED]:
        sys.exit("--tool oclgrind needs another target than the other tools: run it alone")
    rows: list[Row] = []
    if options.file.exists():
        rows = [json.loads(text) for text in options.file.read_text().splitlines()]
    options.file.parent.mkdir(parents=True, exist_ok=True)
    with options.file.open("a") as file:
        for row in judge(options, tools, list(rows)):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
    print(table(rows))
    sys.exit(1 if any(row["ok"] is False for row in rows) else 0)


if __name__ == "__main__":
    main()
