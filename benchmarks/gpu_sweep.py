"""All canonical programs on GPU targets under the default rules: source, compiled, or run.

.venv/bin/python benchmarks/gpu_sweep.py source runs/gpu-source.jsonl
.venv/bin/python benchmarks/gpu_sweep.py cuda runs/gpu-cuda.jsonl --arch sm_87 --arch sm_90
.venv/bin/python benchmarks/gpu_sweep.py opencl runs/gpu-opencl.jsonl --small

``source``: OpenCL and CUDA code is generated. ``cuda``: nvcc compiles it for the architectures;
registers, spills and shared memory are recorded. ``opencl``: runs on an OpenCL device and compares
with the truth, ``--small`` at the small sizes of each pattern. Workloads that the file already
holds are skipped, so a run that was stopped goes on; ``--table`` only prints the summary.
"""

from __future__ import annotations

import argparse
import json
import re
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Result = dict[str, Any]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("source", "cuda", "opencl"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--arch", action="append", help="CUDA architecture (default: sm_87, sm_90)")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--device", default="Portable", help="part of an OpenCL platform's name")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default="", help="part of the workloads' names")
    parser.add_argument("--every", type=int, default=1, help="take every n-th workload")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one workload")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# ------------------------------------------------------------------ one workload
def lowered(workload: Any, target: Any) -> tuple[Any, Any]:
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.lowering.lower import lower

    checked = check_text(workload.canonical())
    assert checked.kernel is not None and checked.program is not None
    result = lower(checked.kernel, checked.program, target)
    if result.module is None:
        raise ValueError("; ".join(d.message for d in result.diagnostics))
    return checked.program, result.module


def source_of(module: Any, target: Any) -> tuple[str, int]:
    """The device source of a loop program, and how many kernels it holds."""
    from edgekernelbench.compilers.tvm.gpu import build
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

    tvm_target = build.device_target(target)
    split = build.split(emit_device_module(module, target.backend), tvm_target)
    return build.device_source(split, tvm_target), len(build.kernel_names(split))


def do_source(workload: Any, options: argparse.Namespace) -> Result:
    from edgekernelbench.targets.gpus import cuda_target, opencl_target

    out: Result = {}
    for target in (opencl_target(), cuda_target("sm_87")):
        _, module = lowered(workload, target)
        source, kernels = source_of(module, target)
        out[f"{target.backend}_bytes"] = len(source)
        out[f"{target.backend}_kernels"] = kernels
        if "double" in source:
            out["double"] = True
    return out


def do_cuda(workload: Any, options: argparse.Namespace) -> Result:
    from edgekernelbench.targets.gpus import cuda_target

    out: Result = {}
    for arch in options.arch or ("sm_87", "sm_90"):
        target = cuda_target(arch)
        _, module = lowered(workload, target)
        out[arch] = nvcc(*source_of(module, target), arch, options.nvcc)
    return out


def nvcc(source: str, kernels: int, arch: str, command: str) -> Result:
    """Compiles to machine code; the most that any kernel takes of each resource.

    A text without kernels compiles too: all of them must be in what the assembler reports.
    """
    with tempfile.TemporaryDirectory(prefix="gpu-sweep-") as folder:
        file = Path(folder) / "kernel.cu"
        file.write_text(source)
        words = [command, "-cubin", f"-arch={arch}", "-Xptxas", "-v", "-w", "-o", "kernel.cubin"]
        done = subprocess.run(
            [*words, file.name], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise ValueError(f"{arch}: {done.stderr.strip()[:1000]}")

    compiled = len(re.findall(r"Compiling entry function", done.stderr))
    if compiled != kernels:
        raise ValueError(f"{arch}: {compiled} of {kernels} kernels were compiled")

    def most(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, done.stderr)), default=0)

    return {
        "kernels": compiled,
        "registers": most(r"Used (\d+) registers"),
        "spilled_bytes": most(r"(\d+) bytes spill stores"),
        "stack_bytes": most(r"(\d+) bytes stack frame"),
        "shared_bytes": most(r"(\d+) bytes smem"),
    }


def do_opencl(workload: Any, options: argparse.Namespace) -> Result:
    from edgekernelbench.targets.gpus import opencl_target
    from tests.lowering.run_device import DeviceRun, device

    device_found = device(options.device)
    program, module = lowered(workload, opencl_target())
    if any("f16" in str(t.dtype) for t in module.main.params) and (
        "cl_khr_fp16" not in device_found.extensions
    ):
        return {"ok": None, "why": "the device has no f16"}
    inputs = workload.inputs(2)
    began = time.monotonic()
    run = DeviceRun(module, opencl_target(), device_found)
    tables = {table.tensor.name: table.array() for table in program.tables}
    outputs = {t.name: np.zeros(t.shape, t.dtype.numpy) for t in program.outputs}
    built = time.monotonic()
    got = run.run({**inputs, **tables, **outputs})
    result = {"build_s": round(built - began, 2), "run_s": round(time.monotonic() - built, 2)}
    verdict = workload.compare(got, workload.truth(inputs))
    if not verdict.passed:
        raise ValueError(f"wrong result: worst error {verdict.worst_error}")
    return {**result, "launches": run.launches, "worst_error": float(verdict.worst_error)}


DO: dict[str, Callable[[Any, argparse.Namespace], Result]] = {
    "source": do_source,
    "cuda": do_cuda,
    "opencl": do_opencl,
}


def work(options: argparse.Namespace) -> None:
    """Reads names of workloads, writes one line of JSON for each."""
    from edgekernelbench.suite.load import load_suite

    known = dict(load_suite().workloads)
    for line in sys.stdin:
        workload = known[line.strip()]
        if options.small:
            workload = workload.small()
        began = time.monotonic()
        try:
            result = {"ok": True, **DO[options.what](workload, options)}
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


# ------------------------------------------------------------------ all workloads
class Worker:
    """A process that works; it is replaced when it takes too long or dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str, timeout: float) -> Result:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, *sys.argv, "--worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], timeout)
        line = process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        process.kill()
        code = process.wait()
        self.process = None
        error = "Died" if ready else "TimeLimit"
        return {"ok": False, "error": error, "message": f"status {code}", "seconds": timeout}

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()


def table(rows: list[Result]) -> str:
    """Counts, and the failures by their first words."""
    counts = Counter(r["ok"] for r in rows)
    lines = [f"{counts[True]} good, {counts[False]} not, {counts[None]} skipped, of {len(rows)}"]
    kinds = Counter(f"{r['error']}: {r['message'][:90]}" for r in rows if r["ok"] is False)
    lines += [f"{n:4d}  {kind!r}" for kind, n in kinds.most_common(40)]
    return "\n".join(lines)


def main() -> None:
    options = arguments()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    if options.worker:
        return work(options)
    from edgekernelbench.suite.load import load_suite

    rows = []
    if options.file.exists():
        rows = [json.loads(line) for line in options.file.read_text().splitlines()]
    done = {row["workload"] for row in rows}
    names = [name for name in load_suite().workloads if options.only in name][:: options.every]
    options.file.parent.mkdir(parents=True, exist_ok=True)
    worker = Worker()
    with options.file.open("a") as file:
        for name in names if not options.table else ():
            if name not in done:
                rows.append({"workload": name, **worker.ask(name, options.timeout)})
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    worker.close()
    print(table(rows))


if __name__ == "__main__":
    main()
