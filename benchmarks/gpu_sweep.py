"""All canonical programs on GPU targets under the default rules: source, compiled, or run.

    .venv/bin/python benchmarks/gpu_sweep.py source runs/gpu-source.jsonl
    .venv/bin/python benchmarks/gpu_sweep.py cuda runs/gpu-cuda.jsonl --arch sm_87 --arch sm_90
    .venv/bin/python benchmarks/gpu_sweep.py run runs/gpu-cuda-run.jsonl --target cuda --jobs 8
    .venv/bin/python benchmarks/gpu_sweep.py run runs/gpu-opencl.jsonl --target opencl --small

``source``: OpenCL and CUDA code is generated. ``cuda``: nvcc compiles it for the architectures;
registers, spills and shared memory are recorded. ``run``: the kernel runs once on a device, guard
bytes around its arrays, and is compared with the truth: at the workload's own sizes where that
takes no more than ``--full-flops`` operations (NumPy computes the truth in float64), at the small
sizes of its pattern otherwise and with ``--small``. Workloads that the file already holds are
skipped, so a run that was stopped goes on; ``--table`` only prints the summary.
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Result = dict[str, Any]

_PATTERN = 0xA5C3_96F0_5A3C_690F
"""What guard bytes and unwritten outputs hold."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("source", "cuda", "run"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--arch", action="append", help="CUDA architecture (default: sm_87, sm_90)")
    parser.add_argument("--target", default="cuda", help="device to run on: cuda, opencl:nvidia")
    parser.add_argument("--small", action="store_true", help="small sizes of all")
    parser.add_argument("--full-flops", type=float, default=2e9)
    parser.add_argument("--only", default="", help="part of the workloads' names")
    parser.add_argument("--every", type=int, default=1, help="take every n-th workload")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one workload")
    parser.add_argument("--jobs", type=int, default=1, help="workloads side by side")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin none after that time")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# ------------------------------------------------------------------ code
def checked(workload: Any) -> tuple[Any, Any]:
    """The canonical kernel and its program."""
    from edgekernelbench.ir.check import check_text

    found = check_text(workload.canonical())
    assert found.kernel is not None and found.program is not None
    return found.kernel, found.program


def compiled(workload: Any, target: Any, folder: Path) -> Any:
    """The manifest of what the compiler leaves in a folder."""
    from edgekernelbench.compilers.tvm import TvmCompiler

    built = TvmCompiler().compile(*checked(workload), target, folder)
    if built.artifact is None:
        raise ValueError("; ".join(f"{d.rule.code}: {d.message}" for d in built.diagnostics))
    return built.artifact.manifest


def do_source(workload: Any, options: argparse.Namespace, scratch: Path) -> Result:
    from edgekernelbench.compilers.tvm.gpu import build
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module
    from edgekernelbench.lowering.lower import lower
    from edgekernelbench.targets.gpus import cuda_target, opencl_target

    out: Result = {}
    for target in (opencl_target(), cuda_target("sm_87")):
        module = lower(*checked(workload), target).module
        tvm_target = build.device_target(target)
        split = build.split(emit_device_module(module, target.backend), tvm_target)
        source = build.device_source(split, tvm_target)
        out[f"{target.backend}_bytes"] = len(source)
        out[f"{target.backend}_kernels"] = len(build.kernel_names(split))
        if "double" in source:
            out["double"] = True
    return out


def do_cuda(workload: Any, options: argparse.Namespace, scratch: Path) -> Result:
    """Compiles to machine code; the most that any kernel takes of each resource."""
    from edgekernelbench.targets.gpus import cuda_target
    from edgekernelbench.targets.toolkit import toolkit_for

    out: Result = {}
    for arch in options.arch or ("sm_87", "sm_90"):
        toolkit_for(arch)
        folder = Path(tempfile.mkdtemp(dir=scratch))
        bills = compiled(workload, cuda_target(arch), folder).facts.kernels
        names = ("registers", "spilled_bytes", "stack_bytes", "shared_bytes")
        most = {name: max((getattr(b, name) for b in bills), default=0) for name in names}
        out[arch] = {"kernels": len(bills), **most}
    return out


# ------------------------------------------------------------------ on a device
def do_run(workload: Any, options: argparse.Namespace, scratch: Path) -> Result:
    from edgekernelbench.targets.registry import find_target

    target = find_target(options.target)
    full = not options.small and workload.flops <= options.full_flops
    task = workload if full else workload.small()
    size = "full" if full else "small"
    tensors = (*task.input_specs, *task.output_specs)
    missing = sorted({s.dtype.value for s in tensors} & set(target.dtypes_missing))
    if missing:
        return {"ok": None, "why": f"the device has no {', '.join(missing)}"}
    # Kept while the worker lives: a driver that was told to keep its own files there goes on so.
    folder = Path(tempfile.mkdtemp(dir=scratch))
    return {"size": size, **run(task, target, folder)}


def run(task: Any, target: Any, folder: Path) -> Result:
    """One call on the device; what it leaves must be right, and nothing else be touched."""
    from edgekernelbench.compilers.launch import count_launches
    from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
    from edgekernelbench.evaluator.regions import Arena, fill, gap_damage, guarded

    began = time.monotonic()
    manifest = compiled(task, target, folder)
    built = time.monotonic()
    inputs = task.inputs(2)
    moving = [s for s in task.input_specs if not s.const]
    arrays = [(s.name, s.dtype, s.shape) for s in (*moving, *task.output_specs)]
    layout = guarded(arrays, target.device.align_bytes)
    arena = Arena(layout, _PATTERN)
    for spec in moving:
        arena.arrays[spec.name][...] = inputs[spec.name]
    for spec in task.output_specs:
        fill(arena.arrays[spec.name], _PATTERN)
    spans = {slot.name: (slot.offset, slot.bytes) for slot in layout.slots}
    consts = {s.name: inputs[s.name] for s in task.input_specs if s.const}
    call = LoadedDeviceKernel(folder, target.device.choice).bind(arena.bytes, spans, consts)
    call.upload()
    call.untimed(1)
    back = np.empty_like(arena.bytes)
    call.download(back)
    took = call.timed(3)
    if (damage := gap_damage(layout, back, _PATTERN)) is not None:
        raise ValueError(f"wrote outside of its arrays, at {damage}")
    ran = time.monotonic()
    views = layout.views(back)
    got = {s.name: views[s.name] for s in task.output_specs}
    verdict = task.compare(got, task.truth(inputs))
    if not verdict.passed:
        raise ValueError(f"wrong result: worst error {verdict.worst_error}")
    return {
        "launches": count_launches(manifest.plans["main"]),
        "us": round(took.span_ns / 3e3, 2),
        "worst_error": float(verdict.worst_error),
        "build_s": round(built - began, 2),
        "run_s": round(ran - built, 2),
        "truth_s": round(time.monotonic() - ran, 2),
    }


DO: dict[str, Callable[[Any, argparse.Namespace, Path], Result]] = {
    "source": do_source,
    "cuda": do_cuda,
    "run": do_run,
}


def work(options: argparse.Namespace, scratch: Path) -> None:
    """Reads names of workloads, writes one line of JSON for each. After an error of a device it
    goes: the device is lost to this process."""
    from edgekernelbench.suite.load import load_suite
    from edgekernelbench.targets.cuda_driver import CudaError

    known = dict(load_suite().workloads)
    for line in sys.stdin:
        began = time.monotonic()
        lost = False
        try:
            result = {"ok": True, **DO[options.what](known[line.strip()], options, scratch)}
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            lost = isinstance(error, CudaError)
            result = {
                "ok": False,
                "error": type(error).__name__,
                "message": str(error)[:2000],
                "where": f"{Path(where.filename).name}:{where.lineno}",
            }
        result["seconds"] = round(time.monotonic() - began, 2)
        print(json.dumps(result), flush=True)
        if lost:
            return


# ------------------------------------------------------------------ all workloads
class Worker:
    """A process that works; it is replaced when it takes too long or ends."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str, timeout: float) -> Result:
        if self.process is None or self.process.poll() is not None:
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
            result = json.loads(line)
            if result.get("error") == "CudaError":
                self.close()
            return result
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
            self.process = None


def sweep(
    names: Iterator[str], options: argparse.Namespace, note: Callable[[Result], None]
) -> None:
    """Each of ``--jobs`` threads has a worker, and takes the next name."""
    lock = threading.Lock()
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")

    def go_on() -> None:
        worker = Worker()
        while time.monotonic() < until:
            with lock:
                name = next(names, None)
            if name is None:
                break
            row = {"workload": name, **worker.ask(name, options.timeout)}
            with lock:
                note(row)
        worker.close()

    threads = [threading.Thread(target=go_on) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def table(rows: list[Result]) -> str:
    """Counts, by size where there are two, and the failures by their first words."""
    counts = Counter(r["ok"] for r in rows)
    lines = [f"{counts[True]} good, {counts[False]} not, {counts[None]} skipped, of {len(rows)}"]
    sizes = Counter(r["size"] for r in rows if r["ok"] and "size" in r)
    if sizes:
        lines.append("good: " + ", ".join(f"{n} at {size} size" for size, n in sizes.items()))
    reasons = Counter(r.get("why", "") for r in rows if r["ok"] is None)
    lines += [f"{n:4d}  skipped: {why}" for why, n in reasons.most_common()]
    kinds = Counter(f"{r['error']}: {r['message'][:90]}" for r in rows if r["ok"] is False)
    lines += [f"{n:4d}  {kind!r}" for kind, n in kinds.most_common(40)]
    return "\n".join(lines)


def main() -> None:
    options = arguments()
    if options.worker:
        with tempfile.TemporaryDirectory(prefix="gpu-sweep-") as scratch:
            return work(options, Path(scratch))
    from edgekernelbench.suite.load import load_suite

    rows = []
    if options.file.exists():
        rows = [json.loads(line) for line in options.file.read_text().splitlines()]
    done = {row["workload"] for row in rows}
    names = [name for name in load_suite().workloads if options.only in name][:: options.every]
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
