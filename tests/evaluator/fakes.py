"""The parent's side of the fakes: a task, a target, a machinery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.forkserver import ServerSpec
from edgekernelbench.evaluator.machinery import Machinery, RunnerPlug
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.tolerance import compare
from edgekernelbench.targets.model import Target
from tests.evaluator.child_fakes import N

HERE = "tests.evaluator.child_fakes"

BASELINES = {
    name: f"{HERE}:{name.upper()}"
    for name in ("good", "slow", "raw", "wrong", "dying", "none", "late", "broken", "two")
}

TARGET = Target(
    name="fake",
    backend="llvm",
    threads=1,
    vector_bits=128,
    cache_bytes=(32 << 10, 16 << 20),
    memory_bytes=1 << 30,
)

QUICK = EvalSettings(
    compile_s=10,
    run_s=1.0,
    total_run_s=20,
    measure_s=0.05,
    interval=0.5,
    replicas=1,
    baselines=(),
)

CARELESS = [
    ("wrong", "wrong_result", "y"),
    ("nothing", "wrong_result", "y"),
    ("half", "wrong_result", "y"),
    ("behind", "wrong_result", "wrote 4 byte(s) outside of its arrays, behind 'y'"),
    ("before", "wrong_result", "outside of its arrays, behind 'x'"),
    ("input", "wrong_result", "changed its input 'x'"),
]
"""Kernels that any host or device can run, with their status and what the message says."""


class FakeTask:
    """``y = x * w`` with const w."""

    id = "fake"
    dtype = "f32"
    tolerance = "f32_elementwise"
    flops = N
    bytes_touched = 12 * N
    sizes: Mapping[str, int | float] = {"N": N}
    input_specs = (
        TensorSpec(name="x", dtype=DType.F32, shape=(N,)),
        TensorSpec(name="w", dtype=DType.F32, shape=(N,), const=True),
    )
    output_specs = (TensorSpec(name="y", dtype=DType.F32, shape=(N,)),)

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.draws: list[tuple[int, int | None]] = []

    def header(self) -> str:
        return f"kernel fake[N={N}](x: f32[N], w: const f32[N]) -> (y: f32[N])"

    def canonical(self) -> str:
        return self.header() + " { compute { y[i] = x[i] * w[i] } }"

    def inputs(self, seed: int, const_seed: int | None = None) -> dict[str, np.ndarray]:
        self.draws.append((seed, const_seed))
        x, w = (np.random.default_rng(s).standard_normal(N) for s in (seed, const_seed))
        return {"x": x.astype(np.float32), "w": w.astype(np.float32)}

    def truth(
        self, inputs: Mapping[str, np.ndarray], *, cache: bool = True
    ) -> dict[str, np.ndarray]:
        if self.broken == "raises":
            raise ArithmeticError("reference is broken")
        y = inputs["x"].astype(np.float64) * inputs["w"]
        if self.broken == "nan":
            y[3] = np.nan
        return {"y": y}

    def twin(self, inputs: Mapping[str, np.ndarray]) -> None:
        return None

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        return compare(outputs, truth, "f32_elementwise")


MACHINERY = Machinery(
    servers={
        "compile": ServerSpec("compile", ("tests.evaluator.child_fakes",), {}),
        "run": ServerSpec(
            "run", ("tests.evaluator.child_fakes", "edgekernelbench.evaluator.runchild"), {}
        ),
    },
    compiler="",
    runners={"tvm-library": RunnerPlug("run", f"{HERE}:CRunner")},
    baselines=BASELINES,
    canary="#canary",
    build_kernel=f"{HERE}:build_kernel",
)


def make_evaluator(
    cache: object, machinery: Machinery = MACHINERY, target: Target = TARGET, **changed: object
) -> Evaluator:
    """An evaluator on the fakes; ``changed`` are settings."""
    settings = QUICK.model_copy(update=changed)
    return Evaluator(target, settings=settings, cache_dir=cache, machinery=machinery)  # type: ignore[arg-type]


def with_runner(name: str) -> Machinery:
    """The fakes with another runner of `child_fakes` for everything."""
    return replace(MACHINERY, runners={"tvm-library": RunnerPlug("run", f"{HERE}:{name}")})
