"""512 x 512 x 512 f32 matrix product, written by hand in the IR, against ONNX Runtime and OpenBLAS.

Prints one JSON object. ONNX Runtime is measured in the evaluator's interleaved rounds; NumPy's
OpenBLAS in a process of its own, in blocks that alternate with the evaluations, since it is no
baseline of the evaluator. Run it on a quiet machine:

    .venv/bin/python benchmarks/matmul_512.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

TURNS = 10
KERNEL = """{header} {{
  compute {{ C[m, n] = sum[k: K](A[m, k] * B[n, k]) }}
  schedule for cpu {{
    loops C (parallel m by {block}, n by {columns}, m by {rows}, k, unroll m, vectorize n)
  }}
  memory for cpu {{ layout B [n, k] -> [n // {columns}, k, n % {columns}] }}
}}
"""
BLAS = """
import sys, time, numpy
x, w = (numpy.random.default_rng(0).standard_normal((2, 512, 512)).astype("f"))
for line in sys.stdin:
    for _ in range(5):
        x @ w
    times = []
    for _ in range(40):
        begin = time.perf_counter()
        x @ w
        times.append(time.perf_counter() - begin)
    print(1e6 * sorted(times)[20], flush=True)
"""


def main() -> None:
    from edgekernelbench.evaluator import EvalSettings, Evaluator
    from edgekernelbench.suite import load_suite
    from edgekernelbench.targets.registry import find_target

    target = find_target("llvm")
    task = load_suite().workloads["matmul_nt__01"].resized(M=512, N=512, K=512)
    rows, columns = {512: (8, 32), 256: (6, 16)}.get(target.vector_bits, (8, 8))
    text = KERNEL.format(
        header=task.header().rstrip(" {"),
        block=-(-512 // target.threads),
        rows=rows,
        columns=columns,
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    environment["OPENBLAS_NUM_THREADS"] = str(target.threads)
    blas = subprocess.Popen(
        [sys.executable, "-c", BLAS], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert blas.stdin is not None
    assert blas.stdout is not None
    ours: list[float] = []
    against_ort: list[float] = []
    against_blas: list[float] = []
    settings = EvalSettings(baselines=("ort",))
    with Evaluator(target, settings=settings) as evaluator, evaluator.session(task) as session:
        for _ in range(TURNS):
            result = session.evaluate(text)
            if result.performance is None:
                sys.exit(f"{result.status.value}: {result.message} {result.diagnostics}")
            blas.stdin.write("go\n")
            blas.stdin.flush()
            blas_us = float(blas.stdout.readline())
            ours.append(result.performance.median_us)
            against_ort.append(result.baselines["ort"].speedup or 0.0)
            against_blas.append(blas_us / result.performance.median_us)
    blas.stdin.close()
    print(
        json.dumps(
            {
                "cpu": target.description, "mcpu": target.mcpu, "threads": target.threads,
                "turns": TURNS,
                "median_us": statistics.median(ours),
                "gflops": 2 * 512**3 / statistics.median(ours) / 1e3,
                "speedup_over_ort": _spread(against_ort),
                "speedup_over_openblas": _spread(against_blas),
            },
            indent=2,
        )
    )  # fmt: skip


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


if __name__ == "__main__":
    main()
