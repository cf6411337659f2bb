"""Models that are valid enough to be read, and would hang, crash or mislead."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.check import Effort, check_workload
from edgekernelbench.suite.find import find_workload
from edgekernelbench.suite.own import verify
from edgekernelbench.suite.own.add import add
from edgekernelbench.suite.own.graph.functions import MAX_NODES
from tests.suite.own import models
from tests.suite.own.models import model, one, value
from tests.suite.own.test_refusals import refused

I64, BOOL = TensorProto.INT64, TensorProto.BOOL


def loop(trips: int | None, body: str = "Tanh", known: bool = True) -> onnx.ModelProto:
    """``x`` through ``body`` again and again.

    Args:
        trips: how often; None for ever.
        known: the number is a constant and not computed.
    """
    inner = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node(body, ["state"], ["next"]),
        ],
        "body",
        [value("i", [], I64), value("go", [], BOOL), value("state", [8])],
        [value("go_on", [], BOOL), value("next", [8])],
    )
    tensors = {"go0": np.array(True)}
    nodes = []
    count = ""
    if trips is not None:
        count = "n" if known else "m"
        tensors["n"] = np.array(trips, np.int64)
        if not known:
            nodes.append(helper.make_node("Abs", ["n"], ["m"]))
    nodes.append(helper.make_node("Loop", [count, "go0", "x"], ["y"], body=inner))
    return model(nodes, [value("x", [8])], [value("y", [8])], tensors)


def test_a_short_loop_is_a_task(tmp_path: Path):
    made = add(models.save(loop(5), tmp_path / "m.onnx")).manifest.tasks[0].workload
    assert made.flops >= 5 * 8


@pytest.mark.parametrize("trips", [10**10, 2**63 - 1])
def test_trips_of_a_loop_are_counted(trips: int, tmp_path: Path, home: Path):
    error = refused(models.save(loop(trips), tmp_path / "m.onnx"), home)
    assert "G operations" in error.message


@pytest.mark.parametrize(("trips", "known"), [(None, True), (10**15, False)])
def test_a_loop_without_end_is_stopped(
    trips: int | None, known: bool, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(verify, "REFERENCE_S", 0.3)
    error = refused(models.save(loop(trips, known=known), tmp_path / "m.onnx"), home)
    assert "takes more than 0.3 s" in error.message


def test_an_output_without_axes(tmp_path: Path):
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    path = models.save(model([node], [value("x", [8, 9])], [value("y", [])]), tmp_path / "m.onnx")
    add(path)
    workload = find_workload("m")
    truth = workload.truth(workload.inputs(1))
    assert truth["y"].shape == () == workload.output_specs[0].shape
    assert workload.truth(workload.inputs(1))["y"] == truth["y"]
    findings = check_workload(workload, Effort(seeds=1, small_only=True)).findings
    assert not [f for f in findings if f.rule == "row"]


def test_an_input_without_axes(tmp_path: Path):
    node = helper.make_node("Mul", ["x", "s"], ["y"])
    inputs = [value("x", [8, 9]), value("s", [])]
    add(models.save(model([node], inputs, [value("y", [8, 9])]), tmp_path / "m.onnx"))
    drawn = find_workload("m").inputs(1)
    assert drawn["s"].shape == () and drawn["s"].dtype == np.float32


def empty() -> onnx.ModelProto:
    node = helper.make_node("Slice", ["x", "from", "to"], ["y"])
    ends = {"from": np.array([0]), "to": np.array([0])}
    return model([node], [value("x", [8])], [value("y", [0])], ends)


def test_an_output_without_elements(tmp_path: Path, home: Path):
    error = refused(models.save(empty(), tmp_path / "m.onnx"), home)
    assert "output 'y' has no elements: [0]" in error.message


# ---------------------------------------------------------------- functions
def calling(*bodies: tuple[str, list[str]]) -> onnx.ModelProto:
    """A model that calls the first of functions that each call others one after the other."""
    made = one("Relu", 8)
    made.graph.node[0].op_type, made.graph.node[0].domain = bodies[0][0], "own.ops"
    for name, callees in bodies:
        steps = ["x", *(f"t{i}" for i in range(len(callees) - 1)), "y"]
        nodes = [
            helper.make_node(
                callee,
                [steps[i]],
                [steps[i + 1]],
                domain="" if callee == "Tanh" else "own.ops",
            )
            for i, callee in enumerate(callees)
        ]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own.ops", 1)]
        made.functions.append(helper.make_function("own.ops", name, ["x"], ["y"], nodes, opsets))
    made.opset_import.append(helper.make_opsetid("own.ops", 1))
    return made


def test_functions_are_inlined(tmp_path: Path):
    made = calling(("F", ["G", "G"]), ("G", ["Tanh"]))
    workload = add(models.save(made, tmp_path / "m.onnx")).manifest.tasks[0].workload
    assert "Tanh" in workload.statement() and "2 operators" in workload.definition.formula


@pytest.mark.parametrize(
    "make",
    [
        lambda: calling(("F", ["F"])),
        lambda: calling(("F", ["G"]), ("G", ["F"])),
        lambda: calling(("F", ["Tanh", "G"]), ("G", ["H", "Tanh"]), ("H", ["Tanh", "G"])),
    ],
)
def test_functions_that_call_each_other_in_a_circle(
    make: Callable[[], onnx.ModelProto], tmp_path: Path, home: Path
):
    assert "calls itself" in refused(models.save(make(), tmp_path / "m.onnx"), home).message


def test_functions_that_grow_without_measure(tmp_path: Path, home: Path):
    rows = [(f"F{i}", [f"F{i + 1}"] * 2) for i in range(40)]
    made = calling(*rows, ("F40", ["Tanh"]))
    error = refused(models.save(made, tmp_path / "m.onnx"), home)
    assert f"{2**40} nodes" in error.message and str(MAX_NODES) in error.help


# ---------------------------------------------------------------- external data
def external(folder: Path, **entries: str) -> Path:
    """A model whose weights lie in ``w.bin``, with entries of their places replaced."""
    path = folder / "m.onnx"
    onnx.save_model(
        models.embedding(), str(path), save_as_external_data=True, location="w.bin",
        size_threshold=0,
    )  # fmt: skip
    made = onnx.load(str(path), load_external_data=False)
    for entry in made.graph.initializer[0].external_data:
        entry.value = entries.get(entry.key, entry.value)
    return models.save(made, path)


def test_external_data_is_read(tmp_path: Path):
    assert add(external(tmp_path)).manifest.tasks


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ({"offset": "abc"}, "invalid literal"),
        ({"offset": "-5"}, "non-negative"),
        ({"offset": "99999999"}, "offset"),
        ({"length": "-1"}, "non-negative"),
        ({"length": "9" * 30}, "length"),
        ({"location": "w\0.bin"}, "null"),
        ({"location": "circle"}, "circle|loop"),
        ({"location": "."}, "not there"),
        ({"location": "../home"}, "not there"),
        ({"location": "/dev/zero"}, "not there"),
        ({"location": "link"}, "not there"),
        ({"location": ""}, "not there"),
    ],
)
def test_places_of_external_data(entries: dict[str, str], told: str, tmp_path: Path, home: Path):
    path = external(tmp_path, **entries)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "link").symlink_to("/dev/zero")
    assert re.search(told, refused(path, home).message)


# ---------------------------------------------------------------- files, shapes
@pytest.mark.parametrize("name", ["m.onnx", "m.py"])
def test_files_without_end(name: str, tmp_path: Path, home: Path):
    (tmp_path / name).symlink_to("/dev/zero")
    assert "neither a file nor a folder" in refused(tmp_path / name, home).message
    os.mkfifo(tmp_path / f"pipe_{name}")
    assert "neither a file nor a folder" in refused(tmp_path / f"pipe_{name}", home).message


def test_a_pipe_among_models(tmp_path: Path):
    folder = tmp_path / "blocks"
    folder.mkdir()
    os.mkfifo(folder / "a.onnx")
    with pytest.raises(UsageError, match=r"a\.onnx: not a regular file"):
        add(folder)


def test_shapes_beyond_measure(tmp_path: Path, home: Path):
    path = models.save(one("Relu", "N", 8), tmp_path / "m.onnx")
    assert "too large" in refused(path, home, shapes={"x": (10**20 - 1, 8)}).message


def test_the_shape_that_is_suggested_can_be_given(tmp_path: Path, home: Path):
    path = models.save(one("Relu", -1, 8), tmp_path / "m.onnx")
    assert "--shape x=1,8" in refused(path, home).help
    assert add(path, shapes={"x": (1, 8)}).manifest.tasks


def test_long_names(tmp_path: Path):
    long = "n" * 200
    path = models.save(one("Tanh", 8), tmp_path / f"{long}.onnx")
    assert len(add(path).manifest.name) < 99
    folder = tmp_path / "blocks"
    folder.mkdir()
    for end in "ab":
        models.save(one("Tanh", 8), folder / f"{long}{end}.onnx")
    ids = {task.workload.id for task in add(folder).manifest.tasks}
    assert len(ids) == 2 and max(map(len, ids)) < 99
