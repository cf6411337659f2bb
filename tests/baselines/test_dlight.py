"""The baseline of devices: DLight on the twin, or on the canonical program, right on PoCL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.baselines import dlight
from edgekernelbench.baselines.base import Recipe, Unavailable
from edgekernelbench.evaluator.regions import Arena, guarded
from edgekernelbench.evaluator.runners import device_kernel
from edgekernelbench.evaluator.task import EvalTask, as_task, materials
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.model import Gpu, Target
from edgekernelbench.targets.registry import find_target


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("opencl")


def task_of(workload: str) -> EvalTask:
    return as_task(find_workload(workload))


@pytest.mark.parametrize(
    ("workload", "route", "launches"),
    [
        ("conv2d_nhwc__01", "ONNX twin, DLight", 3),
        ("fir_q15__01", "canonical program, DLight", 1),
    ],
)
def test_results_are_right(
    workload: str, route: str, launches: int, target: Target, tmp_path: Path
) -> None:
    task = task_of(workload)
    recipe = dlight.prepare("tvm", materials(task), target, tmp_path)
    assert isinstance(recipe, Recipe) and recipe.route == route
    inputs = task.inputs(1, 2)
    specs = [s for s in (*task.input_specs, *task.output_specs) if not s.const]
    layout = guarded([(s.name, s.dtype, s.shape) for s in specs], 512)
    arena = Arena(layout, 7)
    for spec in task.input_specs:
        if not spec.const:
            arena.arrays[spec.name][...] = inputs[spec.name]
    assert target.opencl is not None
    options = {**recipe.options, "device": target.opencl.choice.model_dump()}
    twin = task.twin(inputs).SerializeToString() if recipe.wants_twin else None
    spans = {slot.name: (slot.offset, slot.bytes) for slot in layout.slots}
    consts = {s.name: inputs[s.name] for s in task.input_specs if s.const}
    call = device_kernel(tmp_path, options).bind(arena.bytes, spans, consts, twin)
    call.upload()
    call.untimed(1)
    back = np.empty_like(arena.bytes)
    call.download(back)
    outputs = layout.views(back)
    found = task.compare({s.name: outputs[s.name] for s in task.output_specs}, task.truth(inputs))
    assert found.passed, found
    assert call.launches == launches  # type: ignore[attr-defined]


def test_programs_with_loops_in_order_have_none(target: Target, tmp_path: Path) -> None:
    outcome = dlight.prepare("tvm", materials(task_of("cholesky_batched__02")), target, tmp_path)
    assert isinstance(outcome, Unavailable) and "loops in order" in outcome.reason


def test_barriers_are_for_all_work_items(target: Target, tmp_path: Path) -> None:
    """A device with warps, as NVIDIA's: told of them, TVM reduces behind `if (id < 16)` with
    barriers inside, and the driver never comes back."""
    gpu = Gpu(max_threads=1024, shared_bytes=48 << 10, warp=32, units=16)
    with_warps = target.model_copy(update={"gpu": gpu})
    recipe = dlight.prepare("tvm", materials(task_of("softmax_last__02")), with_warps, tmp_path)
    assert isinstance(recipe, Recipe)
    depth = 0
    barriers = []
    for line in (tmp_path / "kernel.cl").read_text().splitlines():
        depth += line.count("{") - line.count("}")
        if line.strip().startswith("barrier("):
            barriers.append(depth)
    assert barriers and set(barriers) == {1}
