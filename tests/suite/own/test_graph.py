"""ONNX models as tasks: interface, redraw, truth, twin, canonical program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgekernelbench.ir.check import check_text
from edgekernelbench.suite import Workload
from edgekernelbench.suite.check import Effort, check_workload
from edgekernelbench.suite.find import find_workload
from edgekernelbench.suite.own.add import add
from edgekernelbench.suite.own.manifest import OwnTask
from edgekernelbench.suite.twin import run_twin
from tests.suite.own import models


def added(made: onnx.ModelProto, folder: Path, name: str = "m", **options) -> OwnTask:
    path = models.save(made, folder / f"{name}.onnx")
    return add(path, **options).manifest.tasks[0]


def specs(workload: Workload) -> list[tuple[str, str, tuple[int, ...], bool]]:
    return [(s.name, str(s.dtype), s.shape, s.const) for s in workload.input_specs]


@pytest.fixture
def cnn(tmp_path: Path) -> Workload:
    added(models.cnn(), tmp_path, "cnn", shapes={"input.1": (1, 3, 6, 8)})
    return find_workload("cnn")


def test_weights_are_const_inputs_under_names_that_a_kernel_can_write(cnn: Workload):
    assert specs(cnn) == [
        ("input_1", "f32", (1, 3, 6, 8), False),
        ("conv_weight", "f32", (5, 3, 3, 3), True),
        ("conv_bias", "f32", (5,), True),
        ("fc_weight", "f32", (7, 60), True),
        ("fc_bias", "f32", (7,), True),
    ]
    assert [s.shape for s in cnn.output_specs] == [(1, 7)]
    assert (cnn.level, cnn.family, cnn.domain, cnn.tolerance) == (3, "own", "own", "f32_graph")
    assert cnn.flops > 2 * 5 * 48 * 27 + 2 * 7 * 60
    assert cnn.bytes_min == sum(s.bytes for s in (*cnn.input_specs, *cnn.output_specs))


def test_redrawn_weights_stay_near_the_models_own(cnn: Workload):
    own = models.weights(5, 3, 3, 3)
    first, second = cnn.inputs(1, const_seed=5), cnn.inputs(2, const_seed=6)
    ratio = first["conv_weight"] / own
    assert 0.85 < ratio.min() < 0.95 < 1.05 < ratio.max() < 1.15
    assert not np.array_equal(first["conv_weight"], second["conv_weight"])
    assert np.array_equal(first["conv_weight"], cnn.inputs(9, const_seed=5)["conv_weight"])
    assert first["fc_bias"].any(), "zeros are redrawn too, or a kernel could leave them out"


def test_truth_is_computed_in_float64_and_the_runtime_agrees(cnn: Workload):
    inputs = cnn.inputs(3)
    truth = cnn.truth(inputs, cache=False)
    assert truth["output"].dtype == np.float64
    assert not np.array_equal(truth["output"], truth["output"].astype(np.float32))
    twin = cnn.twin(inputs)
    assert twin is not None
    assert [given.name for given in twin.graph.input] == ["input_1"]
    verdict = cnn.compare(run_twin(twin, inputs), truth)
    assert verdict.passed and verdict.worst_error < 0.1


def test_an_accepted_model_passes_the_suites_own_check(cnn: Workload):
    outcome = check_workload(cnn, Effort(seeds=2, compiled=False))
    assert not outcome.findings, outcome.findings
    assert "canonical_error" in outcome.figures


def test_the_statement_shows_the_operators(cnn: Workload):
    text = cnn.statement()
    assert "Conv(input_1, conv_weight, conv_bias; pads=[1, 1, 1, 1])" in text
    assert "kernel cnn(input_1: f32[1, 3, 6, 8], " in text
    assert "Sizes" not in text


def test_quantised_models(tmp_path: Path):
    task = added(models.quantised(), tmp_path)
    workload = task.workload
    assert workload.tolerance == "int8_requant" and workload.dtype == "s8"
    const = {name: dtype for name, dtype, _, const in specs(workload) if const}
    # Zero points that are all zero stay: no permutation would change them.
    assert const == {"wq": "s8", "sw": "f32", "bq": "s32", "sb": "f32"}
    first, second = workload.inputs(1), workload.inputs(2)
    assert not np.array_equal(first["wq"], second["wq"])
    assert np.array_equal(np.sort(first["wq"].ravel()), np.sort(second["wq"].ravel()))
    assert task.canonical and check_text(workload.canonical()).ok
    assert not check_workload(workload, Effort(seeds=2, compiled=False)).findings


def test_indices_are_drawn_in_the_range_that_the_graph_allows(tmp_path: Path):
    task = added(models.embedding(), tmp_path)
    assert task.ranges == {"ids": (0, 49)}
    drawn = task.workload.inputs(1)["ids"]
    assert drawn.dtype == np.int64 and drawn.min() >= 0 and drawn.max() <= 49
    assert len(set(drawn.ravel().tolist())) > 5
    assert task.canonical


def test_ranges_as_told(tmp_path: Path):
    path = models.save(models.embedding(), tmp_path / "m.onnx")
    task = add(path, ranges={"ids": (3, 4)}).manifest.tasks[0]
    assert set(task.workload.inputs(1)["ids"].ravel()) == {3, 4}


@pytest.mark.parametrize(
    ("made", "tolerance"),
    [
        (models.one("Relu", 40), "f32_elementwise"),
        (models.one("Erf", 40), "f32_transcendental"),
        (models.one("Softmax", 4, 10), "f32_softmax"),
        (models.one("Transpose", 5, 5), "exact_move"),
        (models.one("Not", 40, dtype=TensorProto.BOOL), "int_exact"),
        (models.one("Relu", 40, dtype=TensorProto.FLOAT16), "f16_elementwise"),
        (models.one("Relu", 40, dtype=TensorProto.DOUBLE), "f32_elementwise"),
    ],
)
def test_tolerance_by_operator(made: onnx.ModelProto, tolerance: str, tmp_path: Path):
    assert added(made, tmp_path).workload.tolerance == tolerance


def test_one_sum_has_its_length(tmp_path: Path):
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    tensors = {"w": models.weights(30, 4)}
    made = models.model([node], [models.value("x", [6, 30])], [models.value("y", [6, 4])], tensors)
    workload = added(made, tmp_path).workload
    assert (workload.tolerance, workload.accumulation) == ("f32_reduction", 30)
    assert workload.flops == 2 * 6 * 30 * 4


def test_shapes_axes_and_scales_of_sizes_are_fixed(tmp_path: Path):
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["big"], mode="nearest"),
        helper.make_node("Reshape", ["big", "shape"], ["flat"]),
        helper.make_node("Mul", ["flat", "gain"], ["y"]),
    ]
    tensors = {
        "scales": np.array([1, 1, 2, 2], np.float32),
        "shape": np.array([8, 9]),
        "gain": models.weights(9),
        "unused": models.weights(3),
    }
    inputs, outputs = [models.value("x", [1, 2, 3, 3])], [models.value("y", [8, 9])]
    workload = added(models.model(nodes, inputs, outputs, tensors), tmp_path).workload
    assert [name for name, *_, const in specs(workload) if const] == ["gain"]


def test_weights_in_constant_nodes_and_old_style_inputs(tmp_path: Path):
    w = helper.make_tensor("w", models.F32, [4, 3], models.weights(4, 3).ravel().tolist())
    nodes = [
        helper.make_node("Constant", [], ["w"], value=w),
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    inputs = [models.value("x", [5, 4]), models.value("b", [3])]
    made = models.model(nodes, inputs, [models.value("y", [5, 3])], {"b": models.weights(3)})
    workload = added(made, tmp_path).workload
    assert specs(workload) == [
        ("x", "f32", (5, 4), False),
        ("b", "f32", (3,), True),
        ("w", "f32", (4, 3), True),
    ]


def test_names_of_the_language_and_clashing_names_give_way(tmp_path: Path):
    nodes = [
        helper.make_node("Add", ["sum", "a.b"], ["a_b"]),
        helper.make_node("Mul", ["a_b", "a/b"], ["1"]),
    ]
    inputs = [models.value(name, [9]) for name in ("sum", "a.b", "a/b")]
    task = added(models.model(nodes, inputs, [models.value("1", [9])]), tmp_path, "for")
    workload = task.workload
    assert workload.id == "own_for"
    assert [s.name for s in workload.input_specs] == ["sum_", "a_b", "a_b_2"]
    assert workload.output_specs[0].name == "t_1"
    assert task.canonical


def test_what_the_compiler_cannot_lift_is_a_task_without_a_program(tmp_path: Path):
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    tensors = {"w": models.weights(1, 16, 3), "r": models.weights(1, 16, 4)}
    made = models.model(
        [node], [models.value("x", [5, 1, 3])], [models.value("y", [5, 1, 1, 4])], tensors
    )
    result = add(models.save(made, tmp_path / "m.onnx"))
    assert result.warnings and "LSTM" in result.warnings[0]
    workload = result.manifest.tasks[0].workload
    with pytest.raises(FileNotFoundError, match="LSTM"):
        workload.canonical()
    assert workload.tolerance == "f32_recurrence"
    assert workload.twin(workload.inputs(1)) is not None


def test_external_data_is_taken_in(tmp_path: Path):
    made = models.cnn()
    path = tmp_path / "cnn.onnx"
    onnx.save_model(
        made, str(path), save_as_external_data=True, location="cnn.bin", size_threshold=0
    )
    add(path, shapes={"input.1": (1, 3, 6, 8)})
    (tmp_path / "cnn.bin").unlink()
    assert find_workload("cnn").twin(find_workload("cnn").inputs(1)) is not None


def test_a_folder_is_a_suite(tmp_path: Path):
    folder = tmp_path / "blocks"
    folder.mkdir()
    models.save(models.one("Relu", 40), folder / "a-1.onnx")
    models.save(models.one("Tanh", 40), folder / "a.1.onnx")
    (folder / "notes.txt").write_text("not a model")
    result = add(folder)
    assert [t.workload.id for t in result.manifest.tasks] == ["blocks__a_1", "blocks__a_1_2"]
    assert find_workload("blocks__a_1_2").source == "a.1.onnx"


def test_a_named_dimension_is_bound_everywhere(tmp_path: Path):
    node = helper.make_node("Add", ["x", "y"], ["z"])
    inputs = [models.value("x", ["n", 3]), models.value("y", ["n", 3])]
    made = models.model([node], inputs, [models.value("z", ["n", 3])])
    workload = added(made, tmp_path, shapes={"x": (11, 3)}).workload
    assert [s.shape for s in workload.input_specs] == [(11, 3), (11, 3)]


def test_a_slice_at_the_end_is_part_of_the_program(tmp_path: Path):
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Slice", ["r", "from", "to", "axes"], ["y"]),
    ]
    tensors = {"from": np.array([0]), "to": np.array([5]), "axes": np.array([1])}
    made = models.model(nodes, [models.value("x", [4, 9])], [models.value("y", [4, 5])], tensors)
    assert added(made, tmp_path).canonical


def test_floats_and_integers_beside_each_other(tmp_path: Path):
    """Integers among a graph's floats are exact."""
    node = helper.make_node("TopK", ["x", "k"], ["values", "indices"])
    outputs = [models.value("values", [4, 3]), models.value("indices", [4, 3], TensorProto.INT64)]
    made = models.model([node], [models.value("x", [4, 9])], outputs, {"k": np.array([3])})
    workload = added(made, tmp_path).workload
    inputs = workload.inputs(1)
    truth = workload.truth(inputs, cache=False)
    right = {s.name: truth[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
    assert workload.compare(right, truth).passed
    assert not workload.compare({**right, "indices": right["indices"] + 1}, truth).passed


def quantised_floats() -> onnx.ModelProto:
    """The quantised convolution, its result dequantised."""
    made = models.quantised()
    made.graph.node.append(helper.make_node("DequantizeLinear", ["y", "sy", "zy"], ["z"]))
    del made.graph.output[:]
    made.graph.output.append(models.value("z", [1, 6, 7, 9]))
    return made


def only_a_scale() -> onnx.ModelProto:
    """An operator that rounds, and nothing that reads what it rounded."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("Cast", ["s"], ["t"], to=1),
        helper.make_node("Mul", ["x", "t"], ["y"]),
    ]
    return models.model(nodes, [models.value("x", [6, 9])], [models.value("y", [6, 9])])


def test_a_graph_that_rounds_on_its_way_is_allowed_a_step_if_it_shows(tmp_path: Path):
    workload = added(quantised_floats(), tmp_path).workload
    assert (workload.tolerance, workload.dtype) == ("f32_dynamic_quant", "f32")
    outcome = check_workload(workload, Effort(seeds=2))
    assert not outcome.findings, outcome.findings
    assert {"precision", "loose"} <= set(outcome.skipped)
    smooth = added(only_a_scale(), tmp_path, "n").workload
    assert smooth.tolerance == "f32_graph"


def test_a_class_that_is_told_overrules(tmp_path: Path):
    told = added(models.one("Erf", 40), tmp_path, tolerance="f32_elementwise").workload
    assert told.tolerance == told.definition.tolerance == "f32_elementwise"


@pytest.mark.parametrize("wide", [True, False], ids=["image", "sequence"])
def test_integer_convolutions_with_large_weights(wide: bool, tmp_path: Path):
    """Scales of channels; sums that saturate 16 bits, which the runtime must not do."""
    rng = np.random.default_rng(3)
    extents = [8, 9] if wide else [12]
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1] * (2 * len(extents)))
    tensors = {
        "sx": np.float32(0.02),
        "zx": np.uint8(3),
        "w": rng.choice(np.array([-127, 127], np.int8), (6, 4, *[3] * len(extents))),
        "sw": (0.01 * rng.uniform(0.5, 1, 6)).astype(np.float32) if wide else np.float32(0.008),
        "zw": np.int8(0),
        "sy": np.float32(0.4),
        "zy": np.uint8(130),
        "b": rng.integers(-5000, 5000, 6).astype(np.int32),
    }
    inputs = [models.value("x", [1, 4, *extents], TensorProto.UINT8)]
    outputs = [models.value("y", [1, 6, *extents], TensorProto.UINT8)]
    workload = added(models.model([node], inputs, outputs, tensors), tmp_path).workload
    assert workload.tolerance == "int8_requant"


def test_integer_convolutions_of_sequences_have_scales_of_channels():
    """ONNX Runtime makes an image of them, so there is nothing to compare with but arithmetic."""
    from edgekernelbench.suite.own.graph.operators import QLinearConv

    x = np.arange(6, dtype=np.uint8).reshape(1, 1, 6)
    w = np.array([[[1, 1]], [[1, -1]]], np.int8)
    one, none = np.float32(1), np.uint8(0)
    scales = np.array([1, 2], np.float32)
    y = QLinearConv.eval(x, one, none, w, scales, np.int8(0), one, np.uint8(100))
    assert y.dtype == np.uint8
    assert y.tolist() == [[[101, 103, 105, 107, 109], [98, 98, 98, 98, 98]]]


def test_integer_products_are_rounded_before_the_zero_point():
    from edgekernelbench.suite.own.graph.operators import QLinearMatMul

    a, b = np.array([[1], [3]], np.uint8), np.array([[1, 1]], np.int8)
    scales = np.array([0.5, 1], np.float32), np.array([1, 0.5], np.float32)
    none, one = np.uint8(0), np.float32(1)
    y = QLinearMatMul.eval(a, scales[0], none, b, scales[1], np.int8(0), one, np.uint8(7))
    assert y.tolist() == [[7, 7], [10, 9]]


def test_what_makes_a_task_worthless_is_told(tmp_path: Path):
    nodes = [
        helper.make_node("Mul", ["b", "tiny"], ["small"]),
        helper.make_node("Add", ["x", "small"], ["y"]),
        helper.make_node("Sub", ["x", "far"], ["left"]),
        helper.make_node("Relu", ["left"], ["z"]),
    ]
    tensors = {"tiny": np.float32(1e-8), "far": np.float32(2.5)}
    inputs = [models.value("x", [400]), models.value("b", [400])]
    outputs = [models.value("y", [400]), models.value("z", [400])]
    made = models.model(nodes, inputs, outputs, tensors)
    told = add(models.save(made, tmp_path / "m.onnx")).warnings
    assert any("redrawing input b leaves the old result right" in line for line in told), told
    assert any("of z is one value" in line for line in told), told


def test_a_statement_names_the_file_once(tmp_path: Path):
    workload = added(models.cnn(), tmp_path, "cnn", shapes={"input.1": (1, 3, 6, 8)}).workload
    assert workload.statement().count("cnn.onnx") == 1
    assert workload.provenance == f"file:{tmp_path / 'cnn.onnx'}"
