"""The GPU benchmarks: their tables, how work is shared out, and code generation of a sample."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_speed, gpu_sweep, sanitize
from edgekernelbench.suite.load import load_suite
from edgekernelbench.targets.toolkit import find_toolkit

SAMPLE = ("relu__01", "softmax_last__01", "fir_q15__01")


def test_table_of_a_sweep_counts_sizes_apart() -> None:
    rows = [
        {"workload": "a", "ok": True, "size": "full"},
        {"workload": "b", "ok": True, "size": "small"},
        {"workload": "c", "ok": True, "size": "small"},
        {"workload": "d", "ok": None, "why": "the device has no f16"},
        {"workload": "e", "ok": False, "error": "CudaError", "message": "bad address"},
    ]
    lines = gpu_sweep.table(rows).splitlines()
    assert lines[0] == "3 good, 1 not, 1 skipped, of 5"
    assert lines[1] == "good: 1 at full size, 2 at small size"
    assert lines[2].split() == ["1", "skipped:", "the", "device", "has", "no", "f16"]
    assert lines[3].split(maxsplit=1) == ["1", "'CudaError: bad address'"]


def test_names_are_taken_once_and_a_dead_worker_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "worker.py"
    program.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    if 'dies' in line: os._exit(3)\n"
        "    if 'hangs' in line: __import__('time').sleep(60)\n"
        "    print(json.dumps({'ok': True}), flush=True)\n"
    )
    monkeypatch.setattr(sys, "argv", [str(program)])
    rows: list[dict[str, Any]] = []
    options = argparse.Namespace(jobs=2, minutes=0.0, timeout=5.0)
    names = ["a", "dies", "b", "hangs", "c", "d"]
    gpu_sweep.sweep(iter(names), options, rows.append)
    assert sorted(row["workload"] for row in rows) == sorted(names)
    failed = {row["workload"]: row["error"] for row in rows if not row["ok"]}
    assert failed == {"dies": "Died", "hangs": "TimeLimit"}


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "sweep.jsonl"
    file.write_text('{"workload": "relu__01", "ok": true, "size": "full"}\n')
    words = [sys.executable, "benchmarks/gpu_sweep.py", "source", str(file), "--only", "relu__01"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1 good, 0 not, 0 skipped, of 1")
    assert len(file.read_text().splitlines()) == 1


@pytest.mark.parametrize("name", SAMPLE)
def test_source_of_a_sample(name: str, tmp_path: Path) -> None:
    found = gpu_sweep.do_source(load_suite().workloads[name], argparse.Namespace(), tmp_path)
    assert found["cuda_kernels"] == found["opencl_kernels"] > 0


@pytest.mark.parametrize("arch", ["sm_87", "sm_90"])
@pytest.mark.parametrize("name", SAMPLE)
def test_machine_code_of_a_sample(name: str, arch: str, tmp_path: Path) -> None:
    toolkit = find_toolkit()
    if toolkit is None or arch not in toolkit.architectures:
        pytest.skip("there is no nvcc that knows the architecture")
    options = argparse.Namespace(arch=[arch])
    found = gpu_sweep.do_cuda(load_suite().workloads[name], options, tmp_path)
    assert found[arch]["kernels"] > 0 and found[arch]["registers"] > 0
    assert found[arch]["spilled_bytes"] == 0


# ------------------------------------------------------------------ speed
def evaluation(median: float | None, **baselines: float | None) -> dict[str, Any]:
    measured = {
        name: {"status": "unavailable", "message": "no twin", "speedup": None}
        if ratio is None
        else {"status": "measured", "median_us": ratio * (median or 1), "speedup": ratio}
        for name, ratio in baselines.items()
    }
    performance = None if median is None else {"median_us": median, "overhead_dominated": False}
    status = "correct" if median is not None else "crashed"
    return {
        "status": status, "message": "" if median else "why",
        "performance": performance, "baselines": measured,
    }  # fmt: skip


def test_table_of_speeds_has_means_and_what_failed() -> None:
    rows = [
        {"name": "a", "kind": "gallery", "evaluation": evaluation(10.0, tvm=2.0, torch=0.5)},
        {"name": "b", "kind": "gallery", "evaluation": evaluation(10.0, tvm=8.0, torch=None)},
        {"name": "c", "kind": "gallery", "evaluation": evaluation(None)},
    ]
    text = gpu_speed.table(rows)
    assert "gallery: 2 correct, 1 crashed" in text
    assert "against tvm: 4.00 (geometric mean of 2)" in text
    assert "against torch: 0.50 (geometric mean of 1)" in text
    assert "torch unavailable: no twin" in text and "crashed: why" in text


# ------------------------------------------------------------------ sanitizer
FAKE = """#!/bin/sh
echo "========= Invalid __global__ read of size 4 bytes"
echo "========= ERROR SUMMARY: {errors} error(s)"
exit {status}
"""


@pytest.mark.parametrize(
    ("errors", "status", "ok"), [(0, 0, True), (2, sanitize.FOUND, False), (0, 1, None)]
)
def test_what_the_sanitizer_says(errors: int, status: int, ok: bool | None, tmp_path: Path) -> None:
    fake = tmp_path / "compute-sanitizer"
    fake.write_text(FAKE.format(errors=errors, status=status))
    fake.chmod(0o755)
    options = argparse.Namespace(timeout=30.0)
    row = sanitize.watch(str(fake), "memcheck", tmp_path, options)
    assert row["ok"] is ok
    if ok is False:
        assert row["errors"] == errors and "Invalid __global__ read" in row["says"]


def test_table_of_the_sanitizer() -> None:
    rows = [
        {"workload": "a", "tool": "memcheck", "ok": True},
        {"workload": "b", "tool": "memcheck", "ok": False, "errors": 3},
        {"workload": "b", "tool": "racecheck", "ok": None, "why": "not finished in time"},
    ]
    lines = sanitize.table(rows).splitlines()
    assert lines[0].split(maxsplit=1)[1] == "1 clean, 1 with findings, 0 not run"
    assert lines[2:] == ["  b memcheck: 3 errors", "  b racecheck: not finished in time"]


def test_without_a_sanitizer_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("compute-sanitizer") or Path("/usr/local/cuda/bin/compute-sanitizer").exists():
        pytest.skip("compute-sanitizer is installed")
    words = [sys.executable, "benchmarks/sanitize.py", str(tmp_path / "rows.jsonl")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "compute-sanitizer is missing" in done.stdout


@pytest.mark.parametrize("tile", gpu_speed.TILES)
def test_tiled_products_fit_the_task(tile: tuple[int, ...]) -> None:
    from edgekernelbench.evaluator.static import static_check
    from edgekernelbench.targets.gpus import cuda_target

    square = load_suite().workloads["matmul_nt__01"].resized(M=1024, N=1024, K=1024)
    checked = static_check(gpu_speed.tiled(square, tile), square, cuda_target("sm_90"))
    assert checked.ok, checked.diagnostics


def test_only_kernels_with_a_layer_for_gpus_are_measured_apart() -> None:
    square = load_suite().workloads["matmul_nt__01"]
    assert gpu_speed.for_gpus(gpu_speed.tiled(square, gpu_speed.TILES[0]))
    assert not gpu_speed.for_gpus(square.canonical())
