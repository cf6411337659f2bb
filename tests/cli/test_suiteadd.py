"""``ekb suite add`` and what is done with own tasks afterwards, from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app, main
from edgekernelbench.errors import UsageError
from edgekernelbench.suite.find import find_workload
from tests.suite.own import models

DOUBLE = """from edgekernelbench.tasks import task
@task(inputs='x:[N]:f32', outputs='y:[N]:f32', shapes=[{'N': 40}, {'N': 50}],
      tolerance='f32_elementwise')
def double(x):
    return 2 * x
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEKERNELBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def run(*args: str, code: int = 0, stdin: str | None = None) -> str:
    result = CliRunner().invoke(app, list(args), input=stdin)
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_model_is_added_and_its_canonical_program_is_correct(tmp_path: Path):
    models.save(models.cnn(), tmp_path / "cnn.onnx")
    text = run("suite", "add", "cnn.onnx", "--shape", "input.1=1,3,6,8")
    assert text.startswith("cnn: ") and "canonical program" in text
    rows = json.loads(run("suite", "list", "--subset", "own", "--json"))
    assert [(row["workload"], row["family"], row["domain"]) for row in rows] == [
        ("cnn", "own", "own")
    ]
    assert json.loads(run("suite", "stats", "--json"))["workloads"] == 650
    assert "Conv(input_1" in run("suite", "show", "cnn")
    program = run("suite", "canonical", "cnn")
    run("check", "-", "--workload", "cnn", stdin=program)
    result = json.loads(run("eval", "-", "--workload", "cnn", "--json", stdin=program))
    assert result["status"] == "correct"
    assert {"tvm", "ort"} <= {
        name for name, found in result["baselines"].items() if found["speedup"] is not None
    }
    run("suite", "remove", "cnn")
    assert json.loads(run("suite", "list", "--subset", "own", "--json")) == []


def test_json_and_warnings(tmp_path: Path):
    (tmp_path / "mine.py").write_text(DOUBLE)
    added = json.loads(run("suite", "add", "mine.py", "--name", "own_ones", "--json"))
    assert added["suite"] == "own_ones"
    assert [t["workload"] for t in added["tasks"]] == [
        "own_ones__double__01",
        "own_ones__double__02",
    ]
    assert [t["canonical"] for t in added["tasks"]] == [False, False]
    assert len(added["warnings"]) == 2
    assert "unknown number of operations" in run("suite", "show", "own_ones__double__01")


def test_own_tasks_are_checked_by_name_and_by_subset(tmp_path: Path):
    models.save(models.one("Tanh", 40), tmp_path / "mine.onnx")
    run("suite", "add", "mine.onnx")
    for chosen in (["mine"], ["--subset", "own"], ["--subset", "own:mine"]):
        outcome = json.loads(run("suite", "check", *chosen, "--small", "--jobs", "1", "--json"))
        assert outcome["workloads"] == 1 and outcome["findings"] == []


def test_the_name_of_an_own_suite(tmp_path: Path):
    (tmp_path / "mine.py").write_text(DOUBLE)
    run("suite", "add", "mine.py")
    run("suite", "add", "mine.py", "--replace")
    for name in ("mine", "mine__double", "own"):
        words = ["suite", "check", name, "--small", "--jobs", "1"]
        outcome = json.loads(run(*words, "--json"))
        assert outcome["workloads"] == 2 and outcome["findings"] == []
        assert outcome["skipped"]["independent"] == 2
    assert "0 of 2 workloads broken" in run(*words)
    with pytest.raises(UsageError, match="own suite, not a workload") as caught:
        find_workload("mine")
    assert "mine__double__01, mine__double__02" in caught.value.help
    words = ["run", "--subset", "own:mine", "--out", "x", "--evals", "1"]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError)
    assert "tuner needs a canonical program; none of the 2 tasks" in result.exception.message


@pytest.mark.parametrize(
    "args",
    [
        ["suite", "add", "nowhere.onnx"],
        ["suite", "add", "text.onnx"],
        ["suite", "add", "text.onnx", "--shape", "x=1,a"],
        ["suite", "add", "text.onnx", "--shape", "x=0,2"],
        ["suite", "add", "text.onnx", "--shape", "1,2"],
        ["suite", "add", "text.onnx", "--range", "x=3"],
        ["suite", "add", "text.onnx", "--range", "x=3,1"],
        ["suite", "add", "text.onnx", "--range", "x=0,inf"],
        ["suite", "add", "text.onnx", "--name", "no name"],
        ["suite", "add", "text.onnx", "--tolerance", "loose"],
        ["suite", "remove", "nothing"],
        ["suite", "check", "nothing"],
        ["suite", "list", "--subset", "own:nothing"],
        ["suite", "canonical", "lstm"],
        ["run", "--subset", "own", "--out", "x"],
    ],
)
def test_errors_are_two_lines_and_exit_code_2(
    args: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    (tmp_path / "text.onnx").write_text("no model")
    monkeypatch.setattr("sys.argv", ["ekb", *args])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and "help: " in captured.err
    assert "Traceback" not in captured.err
