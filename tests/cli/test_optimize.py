"""What `ekb optimize` refuses: one clear message each, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from tests.optimize.graphs import Net
from tests.suite.own.models import model, save, value, weights


def refused(*words: str) -> UsageError:
    result = CliRunner().invoke(app, ["optimize", *words])
    assert isinstance(result.exception, UsageError), (result.exception, result.output)
    return result.exception


def _relu(folder: Path) -> Path:
    net = Net()
    return save(net.model([4, 4], net("Relu", "x")), folder / "net.onnx")


def _text(folder: Path) -> Path:
    file = folder / "net.onnx"
    file.write_text("no model")
    return file


def _missing(folder: Path) -> Path:
    return folder / "net.onnx"


def _other_suffix(folder: Path) -> Path:
    return _relu(folder).rename(folder / "net.pb")


def _dynamic(folder: Path) -> Path:
    node = helper.make_node("Relu", ["x"], ["y"])
    shapes = [value("x", ["batch", 4])], [value("y", ["batch", 4])]
    return save(model([node], *shapes), folder / "net.onnx")


def _recurrent(folder: Path) -> Path:
    """A product, an LSTM, an activation."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("LSTM", ["a", "wx", "wh"], ["h"], name="/rnn/LSTM", hidden_size=3),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    held = {
        "w": weights(4, 4),
        "wx": weights(1, 12, 4),
        "wh": weights(1, 12, 3),
    }
    return save(
        model(nodes, [value("x", [5, 1, 4])], [value("y", [5, 1, 1, 3])], held), folder / "net.onnx"
    )


def _custom(folder: Path) -> Path:
    node = helper.make_node("Mine", ["x"], ["y"], name="/mine", domain="me")
    made = model([node], [value("x", [4])], [value("y", [4])], domain="me")
    return save(made, folder / "net.onnx")


def _external(folder: Path) -> Path:
    tensor = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    made = model([node], [value("x", [4, 4])], [value("y", [4, 4])])
    made.graph.initializer.append(tensor)
    onnx.save(
        made, folder / "net.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    (folder / "w.bin").unlink()
    return folder / "net.onnx"


def _huge(folder: Path) -> Path:
    net = Net()
    x = net("MatMul", "x", "x")
    return save(net.model([2048, 2048], x), folder / "net.onnx")


@pytest.mark.parametrize(
    ("make", "told", "way_out"),
    [
        (_missing, "there is no such file", "ONNX model"),
        (_text, "not an ONNX model", "export it again"),
        (_other_suffix, "not an .onnx file", "ONNX model"),
        (_dynamic, "has no static shape", "--shape x="),
        (_recurrent, "LSTM node '/rnn/LSTM'", "extract_model"),
        (_custom, "Mine node '/mine' is of domain", "standard ONNX operators"),
        (_external, "lies in 'w.bin', which is not there", "beside the model"),
        (_huge, "G operations; 3 G at most", "extract_model"),
    ],
)
def test_a_model_that_cannot_be_taken_is_named(
    make: Callable[[Path], Path], told: str, way_out: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    error = refused(str(make(tmp_path)), "-o", str(out))
    assert told in error.message and way_out in error.help
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--target", "toaster"), "toaster"),
        (("--target", "raspberry-pi-5"), "cannot be run here"),
        (("--agent", "tunner"), "unknown agent 'tunner'"),
        (("--agent", "repair"), "asks a model"),
        (("--agent-option", "x=1"), "takes no options"),
        (("--model", "openai/x"), "asks no model"),
        (("--budget", "0"), "no evaluation"),
        (("--shape", "x"), "not a shape"),
        (("--shape", "z=4,4"), "no input is called 'z'"),
        (("--tolerance", "loose"), "not a tolerance class"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    error = refused(str(_relu(tmp_path)), "-o", str(out), *words)
    assert told in error.message and error.help
    assert not out.exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "not empty" in refused(str(_relu(tmp_path)), "-o", str(out)).message
    assert [child.name for child in out.iterdir()] == ["notes.txt"]


def test_a_model_without_time_dimension_names_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    error = refused(str(_dynamic(tmp_path)), "-o", str(out), "--shape", "x=2,3")
    assert "the model fixes 4" in error.message
