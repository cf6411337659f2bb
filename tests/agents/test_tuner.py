"""The tuner: legal proposals, a best that is kept, the same search for the same seed."""

from __future__ import annotations

import hashlib

import pytest

from edgekernelbench.agents.base import Answer, Budget, Device, Task
from edgekernelbench.agents.tuner import Tuner
from edgekernelbench.agents.tuner.search import Search
from edgekernelbench.agents.tuner.space import Space, build_space
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.lower import lower
from edgekernelbench.records.schema import Spent
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.gpus import cuda_target, opencl_target
from edgekernelbench.targets.model import Target
from tests.factories import correct, performance

TARGET = Target(
    name="llvm",
    backend="llvm",
    mcpu="skylake-avx512",
    threads=2,
    vector_bits=512,
    cache_bytes=(32 << 10, 1 << 20, 32 << 20),
    memory_bytes=8 << 30,
)


def _pretended_time(text: str) -> float:
    """A time that depends on the text alone."""
    return 1.0 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:2], "big")


def _attempt(
    workload: str, evaluations: int, seed: int, fails: str | None = None, target: Target = TARGET
) -> tuple:
    seen: list[str] = []

    def evaluate(text: str) -> Evaluation:
        seen.append(text)
        if fails:
            status = EvaluationStatus(fails)
            return Evaluation(status=status, workload=workload, target="llvm", message="no")
        return correct(workload, {}, None).model_copy(
            update={"performance": performance(_pretended_time(text))}
        )

    device = Device(evaluate, Budget(Spent(evaluations=evaluations)))
    task = Task(load_suite().workloads[workload], target)
    return Tuner().attempt(task, device, seed), seen, device


@pytest.mark.parametrize(
    "workload", ["matmul_nt__01", "lstm_sequence__01", "gqa_decode_attention__01"]
)
def test_it_keeps_the_fastest_and_never_asks_twice(workload: str) -> None:
    answer, seen, device = _attempt(workload, 12, seed=3)
    assert device.budget.spent.evaluations == 12 == len(seen) == len(set(seen))
    assert answer.kernel == min(seen, key=_pretended_time)
    kept = [s for s in device.trajectory if s.action == "keep"]
    assert kept[-1].median_us == _pretended_time(answer.kernel)
    assert all(step.reason for step in device.trajectory)


def test_the_same_seed_gives_the_same_search_and_another_seed_another() -> None:
    first, second, other = (_attempt("softmax_last__02", 10, seed)[1] for seed in (1, 1, 2))
    assert first == second != other


def test_every_proposal_lowers() -> None:
    _, seen, _ = _attempt("inverted_residual_se_hswish_nchw__01", 10, seed=0)
    for text in seen:
        checked = check_text(text)
        assert checked.kernel is not None
        assert checked.program is not None, text
        assert lower(checked.kernel, checked.program, TARGET).module is not None, text


def test_without_a_correct_kernel_there_is_no_answer() -> None:
    answer, seen, _ = _attempt("softmax_last__02", 3, seed=0, fails="crashed")
    assert isinstance(answer, Answer)
    assert answer.kernel is None
    assert len(seen) == 3


def test_what_the_target_cannot_do_is_answered_at_once() -> None:
    """So that the verdict says it, and the task leaves the denominator."""
    answer, seen, _ = _attempt("softmax_last__02", 3, seed=0, fails="unsupported")
    assert answer.kernel == seen[0] and answer.message == "no"
    assert len(seen) == 1


def test_a_small_space_ends_before_the_budget() -> None:
    answer, seen, _ = _attempt("rope_half_split__01", 60, seed=0)
    assert len(seen) < 60
    assert "nothing new" in answer.message


def _space(workload: str) -> tuple[Space, Search]:
    import random

    checked = check_text(load_suite().workloads[workload].canonical())
    assert checked.kernel is not None
    assert checked.program is not None
    program = checked.program
    space = build_space(checked.kernel, program, TARGET)
    search = Search(
        space,
        random.Random(0),
        lambda s: lower(space.kernel_of(s), program, TARGET).module is not None,
        lambda s: print_kernel(space.kernel_of(s)),
    )
    return space, search


@pytest.mark.parametrize("workload", [w.id for w in load_suite().subset("agent")])
def test_the_best_guess_can_be_made_legal_for_every_task(workload: str) -> None:
    space, search = _space(workload)
    guess = search.repair(space.best_guess())
    text = print_kernel(space.kernel_of(guess))
    checked = check_text(text)
    assert checked.kernel is not None
    assert checked.program is not None
    assert lower(checked.kernel, checked.program, TARGET).module is not None
    heaviest = space.roots[0]
    assert any(heaviest in choice.claims for choice in guess.values()), "the heaviest stage counts"


# ---------------------------------------------------------------- GPUs
@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("matmul_nt__01", ("block", "cache", "prefetch")),
        ("softmax_last__02", ("place", "thread")),
        ("gemv_row_major__01", ("thread", "place")),
        ("conv2d_nhwc__01", ("block", "unroll")),
    ],
)
@pytest.mark.parametrize("target", [cuda_target("sm_87"), opencl_target()], ids=["cuda", "opencl"])
def test_proposals_for_gpus_keep_within_limits(
    workload: str, said: tuple[str, ...], target: Target
) -> None:
    answer, seen, _ = _attempt(workload, 12, seed=0, target=target)
    assert "for gpu" not in seen[0], "the default rules come first"
    assert all("for gpu" in text for text in seen[1:])
    assert all(word in "".join(seen) for word in said)
    for text in seen:
        checked = check_text(text)
        assert checked.kernel is not None and checked.program is not None, text
        assert lower(checked.kernel, checked.program, target).module is not None, text
    assert answer.kernel == min(seen, key=_pretended_time)
