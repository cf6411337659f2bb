"""512 x 512 x 512 products of bytes, written by hand in the IR, against ONNX Runtime and f32.

The question is what dot-product instructions bring: on a CPU with VNNI, dotprod or i8mm, s8 by s8
(weights constant, as after quantisation) and u8 by s8 beside ONNX Runtime's ``MatMulInteger`` on
the same arrays, and beside the f32 product of the same size in the IR. Ours must be exact; whether
ONNX Runtime is (before VNNI its u8 by s8 saturates) is told. All run in this process on as many
threads, in turn: each turn calls every contestant for some milliseconds, and a ratio is that of two
medians of the same turn. Prints one JSON object.

Needs numpy, onnx, onnxruntime, apache-tvm and what the kernel language needs (lark, pydantic). Run
it on a quiet machine, from the root of the repository:

    PYTHONPATH=src python benchmarks/int8.py [--threads N] [--turns N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 512
SECONDS = 0.02
"""How long a contestant runs in a turn."""

DOT = """kernel product[N={n}](A: {a}[N, N], B: const s8[N, N]) -> (C: s32[N, N]) {{
  compute {{ C[i, j] = sum[k: N](A[i, k] * B[k, j]) }}
  schedule for cpu {{
    loops C (parallel i by {rows}, j by {columns}, k by 4, unroll i, vectorize j, dot4 k)
  }}
  memory for cpu {{ layout B [k, j] -> [j // 16, k // 4, j % 16, k % 4] }}
}}"""
F32 = """kernel product[N={n}](A: f32[N, N], B: const f32[N, N]) -> (C: f32[N, N]) {{
  compute {{ C[i, j] = sum[k: N](A[i, k] * B[k, j]) }}
  schedule for cpu {{
    loops C (parallel i by {rows}, j by {columns}, k by 4, unroll k, unroll i, vectorize j)
  }}
  memory for cpu {{ layout B [k, j] -> [j // {columns}, k, j % {columns}] }}
}}"""
Call = Callable[[], Any]


def tiles(vector_bits: int) -> list[tuple[int, int]]:
    """Rows and columns of register tiles to try: accumulators for nearly all registers."""
    return {512: [(12, 32), (6, 64), (8, 32), (4, 64)], 256: [(4, 16), (6, 16), (3, 32)]}.get(
        vector_bits, [(8, 8), (4, 16)]
    )


def kernel(text: str, arrays: dict[str, np.ndarray], target: Any, folder: Path) -> tuple[Call, Any]:
    """The compiled kernel bound to its arrays, and the array that it fills."""
    from edgekernelbench.compilers.tvm import TvmCompiler
    from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
    from edgekernelbench.ir.check import check_text

    checked = check_text(text)
    assert checked.kernel is not None and checked.program is not None, checked.diagnostics
    built = TvmCompiler().compile(checked.kernel, checked.program, target, folder)
    assert built.artifact is not None, built.diagnostics
    out = aligned_empty((SIDE, SIDE), checked.program.outputs[0].dtype)
    inputs = {"A": aligned_copy(arrays["A"])}
    consts = {"B": aligned_copy(arrays["B"])}
    return LoadedKernel(folder).bind(inputs, consts, {"C": out}), out


def onnx_runtime(arrays: dict[str, np.ndarray], threads: int) -> tuple[Call, Any]:
    """``MatMulInteger``, or ``MatMul`` of floats, with B as an initializer; and its result."""
    import onnx
    import onnxruntime

    a, b = arrays["A"], arrays["B"]
    integer = a.dtype != np.float32
    node = onnx.helper.make_node("MatMulInteger" if integer else "MatMul", ["A", "B"], ["C"])
    kind = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        [node],
        "product",
        [onnx.helper.make_tensor_value_info("A", kind(a.dtype), a.shape)],
        [onnx.helper.make_tensor_value_info(
            "C", onnx.TensorProto.INT32 if integer else onnx.TensorProto.FLOAT, a.shape
        )],
        [onnx.numpy_helper.from_array(b, "B")],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"A": a}), session.run(None, {"A": a})[0]


def median_us(call: Call) -> float:
    """The median time of a call while it runs for `SECONDS`, after a few calls."""
    for _ in range(3):
        call()
    samples: list[float] = []
    end = time.perf_counter() + SECONDS
    while (begin := time.perf_counter()) < end or len(samples) < 5:
        call()
        samples.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(samples)


def contestants(target: Any, folder: Path) -> tuple[dict[str, Call], dict[str, bool]]:
    """By name, ours exact where integers; and whether ONNX Runtime's are."""
    rng = np.random.default_rng(0)
    b = rng.integers(-128, 127, (SIDE, SIDE), np.int8, endpoint=True)
    inputs: dict[str, np.ndarray] = {
        "s8": rng.integers(-128, 127, (SIDE, SIDE), np.int8, endpoint=True),
        "u8": rng.integers(0, 255, (SIDE, SIDE), np.uint8, endpoint=True),
        "f32": rng.standard_normal((SIDE, SIDE)).astype(np.float32),
    }
    calls: dict[str, Call] = {}
    right: dict[str, bool] = {}
    for kind, a in inputs.items():
        arrays = {"A": a, "B": b if kind != "f32" else b.astype(np.float32)}
        exact = a.astype(np.int64) @ b.astype(np.int64) if kind != "f32" else None
        for rows, columns in tiles(target.vector_bits):
            form = F32 if kind == "f32" else DOT
            text = form.format(n=SIDE, a=kind, rows=rows, columns=columns)
            name = f"{kind} {rows}x{columns}"
            (folder / name).mkdir()
            call, out = kernel(text, arrays, target, folder / name)
            call()
            assert exact is None or np.array_equal(out, exact), name
            calls[name] = call
        call, out = onnx_runtime(arrays, target.threads)
        calls[f"{kind} ort"] = call
        if exact is not None:
            right[kind] = np.array_equal(out, exact)
    return calls, right


def instruction(target: Any, kind: str) -> str:
    """What the dot products of a kind are done with here."""
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.lowering import nest
    from edgekernelbench.lowering.lower import lower

    checked = check_text(DOT.format(n=SIDE, a=kind, rows=4, columns=16))
    assert checked.kernel is not None and checked.program is not None
    module = lower(checked.kernel, checked.program, target).module
    assert module is not None
    dots = (s for s in nest.statements(module.main.body) if isinstance(s, nest.Dot))
    return next(f"{dot.instruction.name} x {dot.lanes}" for dot in dots)


def summary(turns: list[dict[str, float]], right: dict[str, bool], target: Any) -> dict[str, Any]:
    def ratio(slow: str, fast: str) -> dict[str, float]:
        found = [turn[slow] / turn[fast] for turn in turns]
        return {"median": statistics.median(found), "low": min(found), "high": max(found)}

    medians = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
    mine = {
        kind: min((n for n in medians if n.startswith(kind) and "ort" not in n), key=medians.get)  # type: ignore[arg-type]
        for kind in ("s8", "u8", "f32")
    }
    return {
        "cpu": target.description, "mcpu": target.mcpu, "features": target.features,
        "threads": target.threads, "turns": len(turns),
        "instructions": {kind: instruction(target, kind) for kind in ("s8", "u8")},
        "best_tile": mine, "ort_is_exact": right,
        "gops": {name: 2 * SIDE**3 / us / 1e3 for name, us in medians.items()},
        "speedup_over_ort": {kind: ratio(f"{kind} ort", mine[kind]) for kind in mine},
        "speedup_over_own_f32": {kind: ratio(mine["f32"], mine[kind]) for kind in ("s8", "u8")},
    }  # fmt: skip


def main() -> None:
    from edgekernelbench.targets.host import host_target

    parser = argparse.ArgumentParser(description="products of bytes against ONNX Runtime and f32")
    parser.add_argument("--threads", type=int, default=host_target().threads)
    parser.add_argument("--turns", type=int, default=15)
    chosen = parser.parse_args()
    os.environ["TVM_NUM_THREADS"] = str(chosen.threads)  # before the first parallel loop runs
    target = host_target().model_copy(update={"threads": chosen.threads})
    with tempfile.TemporaryDirectory() as folder:
        calls, right = contestants(target, Path(folder))
        turns = [
            {name: median_us(call) for name, call in calls.items()} for _ in range(chosen.turns)
        ]
        print(json.dumps(summary(turns, right, target), indent=2))


if __name__ == "__main__":
    main()
