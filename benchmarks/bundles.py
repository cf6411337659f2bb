"""Do bundles pass their self-test on other machines? Each runs under qemu-user; those for OpenCL
on this machine's device.

A sample of workloads, every level and dtype among them, each with the gallery's kernel where there
is one and else with the canonical program. Goes on where it stopped, and prints a JSON object.
Needs (Debian): qemu-user gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-riscv64-linux-gnu, and
for OpenCL ocl-icd-libopencl1.

    .venv/bin/python benchmarks/bundles.py runs/bundles.jsonl [WORKLOAD ...]
    .venv/bin/python benchmarks/bundles.py runs/opencl.jsonl --machine opencl [WORKLOAD ...]
    .venv/bin/python benchmarks/bundles.py runs/bundles.jsonl --table > rows.md   # runs nothing
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TARGETS = {
    "x86-64": "llvm",
    "aarch64": "raspberry-pi-5",
    "armv7": str(ROOT / "docs" / "devices" / "armv7.yaml"),
    "riscv64": str(ROOT / "docs" / "devices" / "riscv64.yaml"),
    "opencl": "opencl",
}
EMULATED = ("x86-64", "aarch64", "armv7", "riscv64")
A_KIND = 2
"""Workloads of each level and dtype, the smallest ones: emulators are slow."""


def main() -> None:
    options = _options()
    path = options.path
    if options.table:
        print("\n".join(table(path)))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.read_text().splitlines() if path.exists() else []
    done = {(line["workload"], line["machine"]) for line in map(json.loads, known)}
    from edgekernelbench.deploy import compile_server

    with path.open("a") as out, contextlib.closing(compile_server()) as server:
        for workload in options.workload or sample():
            for machine in options.machine or EMULATED:
                if (workload, machine) not in done:
                    out.write(json.dumps(tried(workload, machine, server)) + "\n")
                    out.flush()
    print(json.dumps(summary(path), indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="file of the results, a line each")
    parser.add_argument("workload", nargs="*", help="in place of the sample")
    parser.add_argument("--machine", action="append", choices=TARGETS, help="only it; repeatable")
    parser.add_argument("--table", action="store_true", help="print a table of them, run nothing")
    return parser.parse_intermixed_args()


def sample() -> Iterator[str]:
    """Workloads of every level and dtype, and those of the gallery."""
    from edgekernelbench.suite.find import find_subset

    workloads = find_subset("all")
    kinds: dict[tuple[int, str], list[Any]] = {}
    for workload in workloads:
        kinds.setdefault((workload.level, workload.dtype), []).append(workload)
    chosen = {file.stem for file in (ROOT / "gallery").glob("*.ekir")}
    for kind in kinds.values():
        smallest = sorted(kind, key=lambda w: (w.flops + w.bytes_touched, w.id))
        chosen |= {workload.id for workload in smallest[:A_KIND]}
    yield from sorted(chosen)


def tried(workload: str, machine: str, server: Any) -> dict[str, Any]:
    """One bundle on one machine: made, tested, thrown away."""
    from edgekernelbench.deploy import Refused, Request, deploy
    from edgekernelbench.errors import UsageError
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    task, began = find_workload(workload), time.monotonic()
    file = ROOT / "gallery" / f"{workload}.ekir"
    line: dict[str, Any] = {"workload": workload, "machine": machine, "level": task.level}
    line |= {"dtype": task.dtype, "kernel": "gallery" if file.exists() else "canonical"}
    place = Path(tempfile.mkdtemp(prefix="bundle-"))
    try:
        text = file.read_text() if file.exists() else task.canonical()
        target, folder = find_target(TARGETS[machine]), place / "bundle"
        made = deploy(Request(text, target, folder, workload=task, selftest=True), server)
        if isinstance(made, Refused):
            line |= {"outcome": made.status, "why": made.message[-2000:]}
        else:
            program = folder / "prebuilt" / "selftest"
            size = program.stat().st_size if program.exists() else None
            constants = made.manifest.bill.constants_bytes
            line |= {"outcome": "passed", "program_bytes": size, "constants_bytes": constants}
    except UsageError as error:
        line |= {"outcome": "not tried", "why": f"{error.message}: {error.help}"}
    finally:
        shutil.rmtree(place)
    return line | {"seconds": round(time.monotonic() - began, 1)}


def summary(path: Path) -> dict[str, Any]:
    """Outcomes by machine, and everything that did not pass."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    table = {}
    for machine in dict.fromkeys(line["machine"] for line in lines):
        rows = [line for line in lines if line["machine"] == machine]
        passed = [line for line in rows if line["outcome"] == "passed"]
        table[machine] = {
            "outcomes": Counter(line["outcome"] for line in rows),
            "levels": Counter(str(line["level"]) for line in passed),
            "dtypes": Counter(line["dtype"] for line in passed),
            "largest_program_without_constants": max(
                (
                    x["program_bytes"] - x["constants_bytes"]
                    for x in passed
                    if x["program_bytes"] is not None
                ),
                default=None,
            ),
        }
    bad = [f"{x['workload']} {x['machine']}: {x['outcome']} {x['why']}"
           for x in lines if x["outcome"] != "passed"]  # fmt: skip
    return {"machines": table, "not passed": bad}


def table(path: Path) -> Iterator[str]:
    """A row for each workload in Markdown, with the size of each program, constants apart."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines:
        rows.setdefault(line["workload"], {})[line["machine"]] = line
    machines = dict.fromkeys(line["machine"] for line in lines)
    yield f"| workload | level | dtype | kernel | {' | '.join(machines)} |"
    yield "|---" * (len(machines) + 4) + "|"
    for workload, row in sorted(rows.items()):
        one = next(iter(row.values()))
        cells = [_cell(row.get(machine)) for machine in machines]
        facts = [workload, str(one["level"]), one["dtype"], one["kernel"]]
        yield f"| {' | '.join([*facts, *cells])} |"


def _cell(line: dict[str, Any] | None) -> str:
    if line is None:
        return "-"
    if line["outcome"] != "passed" or line["program_bytes"] is None:
        return line["outcome"]
    return f"{(line['program_bytes'] - line['constants_bytes']) / 1024:.0f} KiB"


if __name__ == "__main__":
    main()
