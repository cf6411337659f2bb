"""What no task can be made of is refused in one line that names the place, and nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.add import add
from tests.suite.own import models
from tests.suite.own.models import F32, model, one, value


def refused(path: Path, home: Path, **options) -> UsageError:
    with pytest.raises(UsageError) as caught:
        add(path, **options)
    error = caught.value
    assert "\n" not in error.message and error.help and "\n" not in error.help
    assert str(path) in error.message or "--name" in error.message
    assert store.names() == () and not list((home / "suite").glob("*"))
    return error


def two(kind: str, *, dtype: int = F32, **attributes: object) -> onnx.ModelProto:
    """A Relu called ``first`` and an operator called ``second``."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="first"),
        helper.make_node(kind, ["r"], ["y"], name="second", **attributes),
    ]
    return model(nodes, [value("x", [8])], [value("y", [8], dtype)])


def newer() -> onnx.ModelProto:
    made = one("Relu", 8)
    made.opset_import[0].version = onnx.defs.onnx_opset_version() + 1
    return made


def newer_file_format() -> onnx.ModelProto:
    made = one("Relu", 8)
    made.ir_version = onnx.IR_VERSION + 1
    return made


def no_inputs() -> onnx.ModelProto:
    node = helper.make_node("Relu", ["w"], ["y"])
    return model([node], [], [value("y", [8])], {"w": models.weights(8)})


def no_outputs() -> onnx.ModelProto:
    made = one("Relu", 8)
    del made.graph.output[:]
    return made


def sequence_output() -> onnx.ModelProto:
    node = helper.make_node("SequenceConstruct", ["x"], ["y"])
    made = model([node], [value("x", [8])], [])
    made.graph.output.append(helper.make_tensor_sequence_value_info("y", F32, [8]))
    return made


def string_input() -> onnx.ModelProto:
    node = helper.make_node("Equal", ["x", "x"], ["y"])
    inputs, outputs = [value("x", [8], TensorProto.STRING)], [value("y", [8], TensorProto.BOOL)]
    return model([node], inputs, outputs, opset=19)


def bfloat_input() -> onnx.ModelProto:
    return one("Relu", 8, dtype=TensorProto.BFLOAT16)


def unused_input() -> onnx.ModelProto:
    made = one("Relu", 8)
    made.graph.input.append(value("left.over", [3]))
    return made


def cancelled_input() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Sub", ["b", "b"], ["zero"]),
        helper.make_node("Add", ["x", "zero"], ["y"]),
    ]
    return model(nodes, [value("x", [8]), value("b", [8])], [value("y", [8])])


def constant_output() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["w"], ["z"])]
    outputs = [value("y", [8]), value("z", [3])]
    return model(nodes, [value("x", [8])], outputs, {"w": models.weights(3)})


def unknown_integers() -> onnx.ModelProto:
    node = helper.make_node("Add", ["steps", "steps"], ["y"])
    return model(
        [node], [value("steps", [8], TensorProto.INT64)], [value("y", [8], TensorProto.INT64)]
    )


def too_much_work() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "z"], ["y"])
    inputs = [value("x", [1200, 1200]), value("z", [1200, 1200])]
    return model([node], inputs, [value("y", [1200, 1200])])


def too_large() -> onnx.ModelProto:
    return one("Relu", 9000, 9000)


def wrong_shapes() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model([node], [value("x", [4, 5])], [value("y", [4, 3])], {"w": models.weights(6, 3)})


def counting() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("NonZero", ["r"], ["y"])]
    return model(nodes, [value("x", [40])], [value("y", [1, "n"], TensorProto.INT64)])


def sparse() -> onnx.ModelProto:
    made = one("Relu", 8)
    tensor = made.graph.sparse_initializer.add()
    tensor.values.name = "thin"
    return made


@pytest.mark.parametrize(
    ("make", "told", "help"),
    [
        (
            models.cnn,
            r"input 'input\.1' has no static shape: \[N, 3,",
            "--shape input.1=1,3",
        ),
        (lambda: two("Fancy", domain="my.ops"), "Fancy node 'second' is of domain 'my.ops'", "cut"),
        (lambda: two("Unheard"), "Unheard", "export"),
        (lambda: two("Bernoulli"), "'second' draws random numbers", "inference"),
        (newer, "opset .*knows up to", "older"),
        (newer_file_format, "IR version", "older"),
        (no_inputs, "no inputs", "at least one"),
        (no_outputs, "no outputs", "export"),
        (sequence_output, "'y' is a sequence", "cut"),
        (string_input, "'x' is of dtype string", "f16, f32"),
        (bfloat_input, "'x' is of dtype bfloat16", "f16, f32"),
        (unused_input, "no output depends on input 'left.over'", "remove"),
        (cancelled_input, "no output depends on input 'b'", "remove"),
        (constant_output, "output 'z' depends on no input", "remove"),
        (unknown_integers, "s64 input 'steps'", "--range steps=LOW,HIGH"),
        (lambda: one("Log", 8), "output 'y' has NaN", "--range"),
        (too_much_work, "3.5 G operations", "extract_model"),
        (too_large, "MiB of tensors", "extract_model"),
        (wrong_shapes, "shapes do not fit", "--shape"),
        (sparse, "'thin' is sparse", "dense"),
        (counting, "output 'y' has no static shape.*NonZero", "fixed"),
    ],
)
def test_models(
    make: Callable[[], onnx.ModelProto], told: str, help: str, tmp_path: Path, home: Path
):
    made = make()
    if "domain" in told:
        made.opset_import.append(helper.make_opsetid("my.ops", 1))
    error = refused(models.save(made, tmp_path / "m.onnx"), home)
    import re

    assert re.search(told, error.message), error.message
    assert help in error.help, error.help


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a model at all, but a text of some length\n" * 20,
        b"\x08\x08",
        models.cnn().SerializeToString()[:-200],
        models.cnn().SerializeToString()[:100],
    ],
    ids=["empty", "text", "header", "end cut off", "beginning"],
)
def test_files_that_are_no_models(data: bytes, tmp_path: Path, home: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    error = refused(path, home)
    assert "not a" in error.message and "again" in error.help


def test_external_data_that_is_missing(tmp_path: Path, home: Path):
    path = tmp_path / "m.onnx"
    onnx.save_model(
        models.cnn(), str(path), save_as_external_data=True, location="w.bin", size_threshold=0
    )
    (tmp_path / "w.bin").unlink()
    error = refused(path, home)
    assert "'conv.weight' lies in 'w.bin'" in error.message


def test_external_data_elsewhere_is_not_read(tmp_path: Path, home: Path):
    made = models.cnn()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    error = refused(models.save(made, tmp_path / "m.onnx"), home)
    assert "/etc/passwd" in error.message


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"shapes": {"input.1": (1, 3, 6)}}, "has 4 dimensions"),
        ({"shapes": {"input.1": (1, 4, 6, 8)}}, "fixes 3 where that says 4"),
        ({"shapes": {"input.1": (1, 3, 6, 8), "mask": (1,)}}, "no input is called 'mask'"),
        (
            {"shapes": {"input.1": (1, 3, 6, 8)}, "ranges": {"label": (0, 1)}},
            "no input is called 'label'",
        ),
    ],
)
def test_shapes_and_ranges_that_do_not_fit(options: dict, told: str, tmp_path: Path, home: Path):
    path = models.save(models.cnn(), tmp_path / "m.onnx")
    assert told in refused(path, home, **options).message


@pytest.mark.parametrize("bounds", [(0.5, 3), (-300, 4)])
def test_ranges_of_integers(bounds: tuple[float, float], tmp_path: Path, home: Path):
    path = models.save(one("Neg", 8, dtype=TensorProto.INT8), tmp_path / "m.onnx")
    error = refused(path, home, ranges={"x": bounds})
    assert "--range x=" in error.message and "-128 to 127" in error.help


def test_an_index_out_of_range(tmp_path: Path, home: Path):
    path = models.save(models.embedding(), tmp_path / "m.onnx")
    assert "the reference fails" in refused(path, home, ranges={"ids": (0, 5000)}).message


@pytest.mark.parametrize("name", ["quick", "own", "matmul_nt", "matmul_nt__01", "a-b", "for", "1"])
def test_names_that_are_taken_or_none(name: str, tmp_path: Path, home: Path):
    refused(models.save(one("Relu", 8), tmp_path / "m.onnx"), home, name=name)


def test_why_a_name_cannot_be(tmp_path: Path, home: Path):
    path = models.save(one("Relu", 8), tmp_path / "m.onnx")
    for name, told in (
        ("relu", "a function of the kernel language"),
        ("for", "a word of the kernel language"),
        ("matmul_nt", "'matmul_nt' is a pattern of the packaged suite"),
        ("quick", "is a subset"),
        ("a-b", "not a name"),
    ):
        assert told in refused(path, home, name=name).message


def test_a_name_of_another_own_suite(tmp_path: Path):
    path = models.save(one("Relu", 8), tmp_path / "m.onnx")
    add(path)
    with pytest.raises(UsageError, match="already") as caught:
        add(path)
    assert "ekb suite remove m" in caught.value.help and "--replace" in caught.value.help
    assert add(path, tolerance="f32_graph", replace=True).manifest.name == "m"
    assert store.read("m").tasks[0].workload.tolerance == "f32_graph"
    with pytest.raises(UsageError):
        add(models.save(no_inputs(), path), replace=True)
    assert store.names() == ("m",), "what cannot be added replaces nothing"
    models.save(one("Relu", 8), path)
    assert add(path, name="n").manifest.name == "n"


@pytest.mark.parametrize("name", ["missing.onnx", "m.pt", "folder", "folder.onnx"])
def test_paths(name: str, tmp_path: Path, home: Path):
    path = tmp_path / name
    if name == "m.pt":
        path.write_bytes(b"x")
    elif name != "missing.onnx":
        path.mkdir()
    refused(path, home)


def test_one_bad_model_of_a_folder_refuses_all(tmp_path: Path, home: Path):
    folder = tmp_path / "blocks"
    folder.mkdir()
    models.save(one("Relu", 8), folder / "a.onnx")
    bad = models.save(no_inputs(), folder / "b.onnx")
    with pytest.raises(UsageError) as caught:
        add(folder)
    assert str(bad) in caught.value.message
    assert store.names() == () and not list((home / "suite").glob("*"))


def test_executors_that_differ_name_the_node(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    from edgekernelbench.suite.own.graph import operators

    class Tanh(operators.OpRun):
        op_domain = ""

        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (np.tanh(x) + 0.5,)

    monkeypatch.setattr(operators, "OPERATORS", [*operators.OPERATORS, Tanh])
    path = models.save(two("Tanh"), tmp_path / "m.onnx")
    assert "differ, first at Tanh node 'second'" in refused(path, home).message
