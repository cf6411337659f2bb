"""Graphs and plans for the search: canonical programs as loop functions, work in forks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.baselines import programs
from edgekernelbench.baselines.base import Materials
from edgekernelbench.compilers.tvm.build import tvm_target
from edgekernelbench.compilers.tvm.execute import aligned_copy, aligned_empty
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.compilers.tvm.tuning import build
from edgekernelbench.compilers.tvm.tuning.execute import LoadedPlan
from edgekernelbench.compilers.tvm.tuning.forked import run_all
from edgekernelbench.compilers.tvm.tuning.graph import Graph, key
from edgekernelbench.compilers.tvm.tuning.stages import from_program
from edgekernelbench.ir.core import Program
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.host import host_target

SUITE = load_suite().workloads
TARGET = tvm_target(host_target())


def program(text: str) -> Program:
    described = Materials(workload="w", header="", ports=(), canonical=text)
    bare = programs.canonical(described)
    assert isinstance(bare, programs.Bare), bare
    return bare.program


def graph(text: str) -> Graph:
    return from_program(program(text), TARGET)


def run(made: Graph, folder: Path, **arrays: np.ndarray) -> LoadedPlan:
    """Fills the arrays that are outputs."""
    build.build(made, {}, TARGET, folder)
    loaded = LoadedPlan(folder)
    loaded.bind(arrays, arrays, arrays)()
    return loaded


FORMS = [
    "batch_matmul_nt__01",
    "gemv_row_major__01",
    "embedding_bag_sum__01",
    "qdepthwise_bias_requant_s8_nhwc__01",
    "residual_add_rms_norm__01",
    "softmax_last__02",
    "spmm_csr__01",
    "conv2d_nchw__02",
    "relu_linear_attention__01",
]


@pytest.mark.parametrize("name", [n for n in FORMS if n in SUITE])
def test_canonical_programs_are_right(name: str, tmp_path: Path) -> None:
    task = SUITE[name]
    try:
        made = graph(task.canonical())
    except Refused as reason:
        pytest.skip(str(reason))
    given = task.inputs(3, 4)
    arrays = {n: aligned_copy(np.asarray(a)) for n, a in given.items()}
    arrays |= {s.name: aligned_empty(s.shape, s.dtype) for s in task.output_specs}
    run(made, tmp_path, **arrays)
    outputs = {s.name: arrays[s.name] for s in task.output_specs}
    assert task.compare(outputs, task.truth(given)).passed


def test_what_is_constant_is_computed_before(tmp_path: Path) -> None:
    made = graph("""kernel k[N=32](x: f32[N], w: const f32[N]) -> (y: f32[N]) {
      compute {
        v[i: N] = exp(w[i]) + w[N - 1 - i]
        s = sum[k: N](v[k])
        y[i] = x[i] * v[i] + s
      }
    }""")
    rng = np.random.default_rng(0)
    x, w = (aligned_copy(rng.normal(size=32).astype("f4")) for _ in range(2))
    y = aligned_empty((32,), np.dtype("f4"))
    loaded = run(made, tmp_path, x=x, w=w, y=y)
    v = np.exp(w) + w[::-1]
    np.testing.assert_allclose(y, x * v + v.sum(), rtol=1e-5, atol=1e-5)
    assert loaded.plan.prepack and len(loaded.plan.steps) == 1
    assert len(build.timed(made)) == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("seq t: N { h[t] = x[t] + pad(h[t-1], 0) }  y[i] = h[i]", "loops in order"),
        ("p = argmax[i: N](x[i])  y[i] = x[i] + p", "position"),
    ],
)
def test_programs_without_schedules_are_refused(body: str, told: str) -> None:
    text = f"kernel k[N=32](x: f32[N]) -> (y: f32[N]) {{ compute {{ {body} }} }}"
    with pytest.raises(Refused, match=told):
        graph(text)


def test_a_long_formula_is_refused() -> None:
    lets = "  ".join(f"let a{n + 1} = a{n} * a{n} + a{n}" for n in range(14))
    body = f"y[i] = {{ let a0 = x[i]  {lets}  return a14 }}"
    text = f"kernel k[N=32](x: f32[N]) -> (y: f32[N]) {{ compute {{ {body} }} }}"
    with pytest.raises(Refused, match="too long"):
        graph(text)


def test_one_function_has_one_key() -> None:
    """Whatever its variables are called, and whatever else the program does."""
    one = graph("kernel k[N=32](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] * 2 } }")
    other = graph("kernel q[M=32](z: f32[M]) -> (w: f32[M]) { compute { w[j] = z[j] * 2 } }")
    third = graph("kernel k[N=32](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] * 3 } }")
    keys = [key(f) for made in (one, other, third) for f in build.timed(made).values()]
    assert keys[0] == keys[1] != keys[2]


# ---------------------------------------------------------------- forks
def test_work_in_forks() -> None:
    def crash() -> None:
        os.abort()

    def fail() -> None:
        raise ValueError("first line\nlast line")

    def hang() -> None:
        time.sleep(60)

    began = time.monotonic()
    found = run_all([lambda: [1, 2.5], crash, fail, hang, lambda: "x"], 3, 1.0)
    assert found[0].value == [1, 2.5] and found[4].value == "x"
    assert found[1].error == "the process crashed"
    assert found[2].error == "ValueError: last line"
    assert found[3].error == "not done within 1 s"
    assert time.monotonic() - began < 20
