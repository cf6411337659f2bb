"""The baseline of PyTorch: when there is none and why; its operators against the truth, on the
CPU, where PyTorch is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgekernelbench.baselines import torch as baseline
from edgekernelbench.baselines.base import Recipe, Unavailable
from edgekernelbench.evaluator.task import as_task, materials
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.gpus import cuda_target

TASKS = (
    "matmul_nt__01", "conv2d_nhwc__01", "softmax_last__01", "layer_norm_last__01",
    "max_pool2d_nchw__01", "lstm_sequence__01", "resnet8_cifar__01", "gelu_erf__01",
    "cumsum_last__01",
)  # fmt: skip


def test_only_on_nvidia_devices() -> None:
    task = materials(as_task(find_workload("relu__01")))
    reason = baseline.BASELINE.available(task, cuda_target("sm_90"))
    assert reason == "PyTorch is run on NVIDIA devices only, not on cuda-sm_90"


def test_a_recipe_or_the_operators_that_are_missing(tmp_path: Path) -> None:
    target = cuda_target("sm_90")
    made = baseline.BASELINE.prepare(
        materials(as_task(find_workload("conv2d_nhwc__01"))), target, tmp_path
    )
    assert isinstance(made, Recipe) and made.wants_twin and made.kind == "torch"
    lacks = materials(as_task(find_workload("qconv2d_s8s32_nhwc__01")))
    refused = baseline.BASELINE.prepare(lacks, target, tmp_path)
    assert isinstance(refused, Unavailable) and "ConvInteger" in refused.reason
    without = lacks.model_copy(update={"twin": None})
    assert isinstance(baseline.BASELINE.prepare(without, target, tmp_path), Unavailable)


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch", reason="PyTorch is not installed")
    baseline.pin_precision(found)
    return found


@pytest.mark.parametrize("name", TASKS)
def test_results_are_right(name: str, torch: Any) -> None:
    from edgekernelbench.baselines.torch_graph import TorchGraph

    task = find_workload(name).small()
    inputs = task.inputs(0)
    twin = task.twin(inputs)
    assert twin is not None
    given = {i.name: torch.from_numpy(np.array(inputs[i.name])) for i in twin.graph.input}
    results = TorchGraph(twin.SerializeToString(), given, "cpu").run()
    got = {s.name: results[s.name].numpy().reshape(s.shape) for s in task.output_specs}
    assert all(got[s.name].dtype == s.dtype.numpy for s in task.output_specs)
    assert task.compare(got, task.truth(inputs)).passed


@pytest.mark.parametrize("kind", ["Transpose", "Flatten"])
def test_results_are_arrays_of_their_own(kind: str, torch: Any) -> None:
    from onnx import TensorProto, helper

    from edgekernelbench.baselines.torch_graph import TorchGraph

    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"])], "g", [given], [made])
    x = torch.arange(12.0).reshape(3, 4)
    model = helper.make_model(graph).SerializeToString()
    y = TorchGraph(model, {"x": x}, "cpu").run()["y"]
    assert y.is_contiguous() and y.data_ptr() != x.data_ptr()
    assert y.reshape(-1)[1] == (4.0 if kind == "Transpose" else 1.0)
