"""ONNX Runtime as a contestant: on real twins, with constants redrawn under it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.baselines.ort import BASELINE, OrtRunner
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import machinery
from edgekernelbench.evaluator.task import materials, ports
from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.targets.host import host_target
from tests.evaluator.fakes import QUICK

SUITE = load_suite().workloads
NAMES = [
    n
    for n in ("matmul_nt__01", "conv2d_nhwc__01", "max_pool2d_nchw__02", "argmax_channel_nchw__01")
    if n in SUITE
]


@pytest.mark.parametrize("name", NAMES)
def test_runner_gives_the_truth(name: str, tmp_path: Path) -> None:
    task = SUITE[name]
    recipe = BASELINE.prepare(materials(task), host_target(), tmp_path)
    assert isinstance(recipe, Recipe)
    runner = OrtRunner(tmp_path, recipe.options)
    for seed in (1, 2):
        drawn = task.inputs(seed)
        outputs = {s.name: np.zeros(s.shape, s.dtype.numpy) for s in task.output_specs}
        consts = {s.name: drawn[s.name] for s in task.input_specs if s.const}
        inputs = {s.name: drawn[s.name] for s in task.input_specs if not s.const}
        call = runner.bind(inputs, consts, outputs, task.twin(drawn).SerializeToString())  # type: ignore[union-attr]
        call()
        assert task.compare(outputs, task.truth(drawn)).passed


def test_availability() -> None:
    task = SUITE[NAMES[0]]
    described = materials(task)
    assert BASELINE.available(described, host_target()) is None
    without = described.model_copy(update={"twin": None})
    assert BASELINE.available(without, host_target()) == "the task has no ONNX twin"
    cuda = host_target().model_copy(update={"backend": "cuda"})
    assert "CPU only" in str(BASELINE.available(described, cuda))


def test_a_twin_that_is_refused_is_unavailable(tmp_path: Path) -> None:
    task = SUITE[NAMES[0]]
    damaged = materials(task).model_copy(update={"twin": b"no model"})
    outcome = BASELINE.prepare(damaged, host_target(), tmp_path)
    assert isinstance(outcome, Unavailable) and "refuses the twin" in outcome.reason


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    target = host_target()
    settings = QUICK.model_copy(update={"baselines": ("ort",), "pool_evaluations": 1})
    with Evaluator(
        target,
        settings=settings,
        cache_dir=tmp_path_factory.mktemp("cache"),
        machinery=machinery(target.threads),
    ) as made:
        yield made


def test_in_a_session_with_new_constants_each_time(evaluator: Evaluator) -> None:
    task: Workload = SUITE[NAMES[0]]
    with evaluator.session(task) as session:
        for _ in range(2):
            result = session.evaluate(task.canonical())
            assert result.status == "correct", result.message
            ort = result.baselines["ort"]
            assert ort.status == "measured", ort.message
            assert result.best == "ort"


def test_materials_carry_the_interface() -> None:
    task = SUITE[NAMES[0]]
    described = materials(task)
    assert isinstance(described, Materials) and described.twin is not None
    assert described.ports == ports(task)
    assert described.header == task.header()
