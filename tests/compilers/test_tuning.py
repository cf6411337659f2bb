"""Graphs and plans for the search: canonical programs as loop functions, work in forks."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm.s_tir import Schedule

from edgekernelbench.baselines import programs
from edgekernelbench.baselines.base import Materials
from edgekernelbench.compilers.tvm.build import tvm_target
from edgekernelbench.compilers.tvm.execute import aligned_copy, aligned_empty
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.compilers.tvm.tuning import build
from edgekernelbench.compilers.tvm.tuning.decide import decide, difference
from edgekernelbench.compilers.tvm.tuning.execute import LoadedPlan
from edgekernelbench.compilers.tvm.tuning.forked import (
    Outcome,
    Place,
    Say,
    Yard,
    run_all,
    run_pairs,
)
from edgekernelbench.compilers.tvm.tuning.graph import Graph, key, standalone
from edgekernelbench.compilers.tvm.tuning.measure import Candidate, HostBench, candidate_of, measure
from edgekernelbench.compilers.tvm.tuning.search import Trial, as_json, replay
from edgekernelbench.compilers.tvm.tuning.stages import from_program
from edgekernelbench.ir.core import Program
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.placement import Core, host_cores, slots

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
    "conv2d_nchw__02",
    "relu_linear_attention__01",
]


@pytest.mark.parametrize("name", FORMS)
def test_canonical_programs_are_right(name: str, tmp_path: Path) -> None:
    task = SUITE[name]
    made = graph(task.canonical())
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


# ---------------------------------------------------------------- candidates
TWO_STAGES = """kernel k[M=16, K=24, N=33](x: f32[M, K], w: const f32[K, N]) -> (y: f32[M, N]) {
  compute { p[i: M, j: N] = sum[k: K](x[i, k] * w[k, j])   y[i, j] = max(p[i, j], 0) * 100 }
}"""
BENCH = HostBench(TARGET, slots(host_cores(), host_target().threads, 1)[0])


def module_and_trials(spoil: bool) -> tuple[Any, list[Trial]]:
    """A function and two schedules for it; the one said to be faster, with an intermediate result
    in eight bits if so wished."""
    (function,) = build.timed(graph(TWO_STAGES)).values()
    module = standalone(function)
    trials = []
    for n, wrong in enumerate((spoil, False)):
        schedule = Schedule(module)
        block = schedule.get_sblock("p")
        rows, _columns, _ = schedule.get_loops(block)
        schedule.split(rows, factors=[None, 4])
        schedule.parallel(schedule.get_loops(block)[0])
        if wrong:
            schedule.unsafe_set_dtype(block, 0, "int8")
        trials.append(Trial(as_json(schedule.trace), 1.0 + n))
    return module, trials


def test_measuring() -> None:
    module, (trial, _) = module_and_trials(spoil=False)
    good = candidate_of(replay(trial.trace, module).mod)
    other = Candidate(good.module, (("float32", (3,)), *good.interface[1:]))
    right, refused = measure([good, other], BENCH)
    assert right.error is None and 0 < right.value < 1e6
    assert refused.error and refused.value is None
    (rough,) = measure([good], BENCH, best_us=right.value / 100)
    assert rough.value > 0


def test_the_best_candidate_with_right_results_is_chosen() -> None:
    module, trials = module_and_trials(spoil=True)
    decision = decide(module, [*trials, Trial(None, None, "crashed")], BENCH)
    assert decision.best is not None and decision.best.trace == trials[1].trace
    assert decision.checked and decision.best.us != trials[1].us
    module, trials = module_and_trials(spoil=False)
    assert decide(module, trials, BENCH).remarks == ()


def test_no_candidate_is_chosen_where_all_are_wrong() -> None:
    module, trials = module_and_trials(spoil=True)
    decision = decide(module, trials[:1], BENCH)
    assert decision.best is None and not decision.checked
    assert "a candidate of" in decision.remarks[0] and "wrong results" in decision.remarks[0]


@pytest.mark.parametrize(
    ("values", "same"),
    [
        (np.full(4000, 1.00001, "f4"), True),
        (np.full(4000, 1.01, "f4"), False),
        (np.where(np.arange(4000) == 7, 1.1, 1).astype("f4"), False),  # one wrong element
        (np.where(np.arange(4000) == 7, np.nan, 1).astype("f4"), False),
    ],
)
def test_results_are_compared(values: np.ndarray, same: bool, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", np.ones(4000, "f4"))
    np.savez(tmp_path / "b.npz", values)
    assert (difference(tmp_path / "a.npz", tmp_path / "b.npz") is None) == same


def test_quantised_results_may_be_rounded_the_other_way(tmp_path: Path) -> None:
    values = np.arange(-100, 100, dtype="i1")
    np.savez(tmp_path / "a.npz", values)
    for change, same in ((1, True), (2, False)):
        np.savez(tmp_path / "b.npz", np.where(values == 50, values + change, values))
        assert (difference(tmp_path / "a.npz", tmp_path / "b.npz") is None) == same


# ---------------------------------------------------------------- forks
ANYWHERE = Place(workers=3, silence_s=2.0)


def test_work_in_forks() -> None:
    def crash(_say: Say) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def fail(_say: Say) -> None:
        raise ValueError("first line\nlast line")

    def hang(_say: Say) -> None:
        time.sleep(60)

    began = time.monotonic()
    work = [lambda _say: [1, 2.5], crash, fail, hang, lambda _say: "x" * 300_000]
    found = run_all(work, ANYWHERE)
    assert found[0].value == [1, 2.5] and found[4].value == "x" * 300_000
    assert found[1].error == "the process crashed"
    assert found[2].error == "ValueError: last line"
    assert found[3].error == "no word for 2 s"
    assert time.monotonic() - began < 20


def test_a_child_that_talks_is_not_taken_to_hang() -> None:
    def talk(say: Say) -> str:
        for n in range(6):
            time.sleep(0.5)
            say(n)
        return "done"

    heard: list[int] = []
    ended: list[Outcome] = []
    yard = Yard()
    yard.submit(talk, ANYWHERE, ended.append, heard.append)
    yard.run()
    assert heard == list(range(6)) and ended == [Outcome("done")]


def test_what_children_leave_behind_ends_with_them() -> None:
    def leave(say: Say) -> None:
        run_all([lambda _say: (say(os.getpid()), time.sleep(60))], Place(silence_s=60))

    def gone(pid: int) -> bool:
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    heard: list[int] = []
    yard = Yard()
    yard.submit(leave, ANYWHERE, lambda _outcome: None, heard.append)
    yard.run()
    deadline = time.monotonic() + 10
    while not gone(heard[0]):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_slots_work_side_by_side_on_their_own_cores(tmp_path: Path) -> None:
    """One job at a time in each, on its processors alone, while the others work, too."""
    cpus = sorted(os.sched_getaffinity(0))
    made = slots(tuple(Core((cpu,)) for cpu in cpus), 1)
    spans: dict[tuple[int, ...], list[tuple[float, float]]] = {}

    def work(_say: Say) -> tuple[list[int], float, float]:
        began = time.monotonic()
        (tmp_path / str(os.getpid())).touch()
        while len(list(tmp_path.iterdir())) < len(made):  # until a job of every slot is here
            assert time.monotonic() < began + 60
            time.sleep(0.01)
        return sorted(os.sched_getaffinity(0)), began, time.monotonic()

    yard = Yard()
    for slot in made:
        for _ in range(3):

            def ended(outcome: Outcome, timed: tuple[int, ...] = slot.timed) -> None:
                assert outcome.error is None, outcome.error
                where, began, end = outcome.value
                assert tuple(where) == timed
                spans.setdefault(timed, []).append((began, end))

            yard.submit(work, Place(slot.timed), ended)
    yard.run()
    assert set(spans) == {slot.timed for slot in made}
    for own in spans.values():
        own.sort()
        assert len(own) == 3 and all(end <= later for (_, end), (later, _) in pairwise(own))


@pytest.mark.parametrize("beside", [True, False])
def test_candidates_are_timed_while_others_are_built_if_there_are_cores(
    beside: bool, tmp_path: Path
) -> None:
    def build_one(n: int, _say: Say) -> None:
        time.sleep(0.2)
        (tmp_path / f"{n}").touch()

    def run_one(_say: Say) -> int:
        return len(list(tmp_path.iterdir()))

    def broken(_say: Say) -> None:
        raise ValueError("no code")

    pairs = [(partial(build_one, n), run_one) for n in range(4)]
    pairs.append((broken, run_one))
    *found, failed = run_pairs(pairs, Place(workers=1), Place(silence_s=30), beside=beside)
    assert failed.error == "ValueError: no code"
    built = [outcome.value for outcome in found]
    assert built == [4] * 4 if not beside else built[0] < 4 and built == sorted(built)
