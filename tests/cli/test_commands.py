"""The contract for scripts: JSON keys, exit codes, one-line errors without a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app, main
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.peaks import Peaks
from edgekernelbench.targets.registry import find_target
from tests.evaluator.test_plausible import PEAKS
from tests.factories import record

GOOD = """kernel k[N=8](x: f32[N]) -> (y: f32[N]) {
  compute { y[i] = x[i] * 2 }
}
"""
OUT_OF_BOUNDS = GOOD.replace("x[i] * 2", "x[i + 1]")
ILLEGAL_STEP = GOOD.rstrip().removesuffix("}") + "  schedule for cpu { loops y (i by 3, j) }\n}\n"


def _run(*args: str, stdin: str | None = None) -> tuple[int, str, Exception | None]:
    result = CliRunner().invoke(app, list(args), input=stdin)
    error = result.exception if isinstance(result.exception, Exception) else None
    return result.exit_code, result.output, error


def test_suite_stats_and_list() -> None:
    code, text, _ = _run("suite", "stats", "--json")
    stats = json.loads(text)
    assert code == 0
    assert stats["workloads"] == sum(stats["by_level"].values()) == sum(stats["by_family"].values())
    code, text, _ = _run("suite", "list", "--subset", "quick", "--json")
    rows = json.loads(text)
    assert len(rows) >= 12
    assert set(rows[0]) == {"workload", "pattern", "level", "family", "domain", "dtype"}
    assert {row["level"] for row in rows} == {1, 2, 3}


def _listed(*options: str) -> list[dict[str, str]]:
    code, text, _ = _run("suite", "list", *options, "--json")
    assert code == 0
    return json.loads(text)


def test_options_narrow_the_list_together() -> None:
    rows = _listed("--family", "matmul", "--level", "1", "--dtype", "f16")
    assert rows
    assert {(row["family"], row["level"], row["dtype"]) for row in rows} == {("matmul", 1, "f16")}
    names = [row["workload"] for row in _listed("--pattern", "softmax_last")]
    assert names == sorted(names) and names[0] == "softmax_last__01"
    assert len(_listed("--subset", "agent", "--level", "3")) < len(_listed("--level", "3"))


@pytest.mark.parametrize(
    ("options", "way_out"),
    [
        (("--family", "matmull"), "there are: matmul"),
        (("--level", "4"), "there are: 1, 2, 3"),
        (("--family", "matmul", "--dtype", "s8"), "there are: f16, f32"),
    ],
)
def test_a_list_of_nothing_says_what_there_is(options: tuple[str, ...], way_out: str) -> None:
    _, _, error = _run("suite", "list", *options)
    assert isinstance(error, UsageError)
    assert error.help.startswith(way_out)


@pytest.mark.parametrize("name", ["softmax_last_02", "softmax_last", "softmax_last__99"])
def test_suggestions_begin_with_the_first(name: str) -> None:
    _, _, error = _run("suite", "show", name)
    assert isinstance(error, UsageError)
    assert error.help.startswith("did you mean softmax_last__01, softmax_last__02")


def test_a_task_is_shown_with_its_provenance_once() -> None:
    code, text, _ = _run("suite", "show", "fc_autoencoder__02")
    assert code == 0
    assert text.count("provenance: file:mlcommons/tiny") == 1
    assert text.count("MLPerf Tiny FC-AutoEncoder, all windows") == 1
    assert "Of this workload: network from that file" in text


def test_a_canonical_program_is_printed_whole() -> None:
    code, text, _ = _run("suite", "canonical", "softmax_last__02")
    assert code == 0
    assert text.startswith("kernel softmax_last[")


@pytest.mark.parametrize("name", ["softmax_last_02", "nonsense"])
def test_unknown_workloads_name_the_way_out(name: str) -> None:
    _, _, error = _run("suite", "show", name)
    assert isinstance(error, UsageError)
    assert name in error.message
    assert error.help


def test_check_says_right_or_shows_the_place(tmp_path: Path) -> None:
    code, text, _ = _run("check", "-", stdin=GOOD)
    assert (code, "is right" in text) == (0, True)
    path = tmp_path / "bad.ekir"
    path.write_text(OUT_OF_BOUNDS)
    code, text, _ = _run("check", str(path))
    assert code == 1
    assert f"{path}:2:" in text
    assert "^" in text
    assert "rule:" in text
    code, text, _ = _run("check", str(path), "--json")
    assert code == 1
    found = json.loads(text)["diagnostics"][0]
    assert {"code", "rule", "message", "line", "column", "help"} <= set(found)


def test_check_with_a_target_looks_at_the_layers() -> None:
    code, text, _ = _run("check", "-", "--target", "llvm", stdin=ILLEGAL_STEP)
    assert code == 1
    assert "E4" in text


def test_explain_shows_the_nest() -> None:
    code, text, _ = _run("explain", "-", "--json", stdin=GOOD)
    result = json.loads(text)
    assert code == 0
    assert result["flops"] == 8
    assert result["io_bytes"] == 64
    assert result["nest"]


def test_devices_show_takes_the_target_by_position_or_by_option() -> None:
    texts = [_run("devices", "show", *args, "--json")[1] for args in ([], ["llvm"])]
    texts.append(_run("devices", "show", "--target", "llvm", "--json")[1])
    assert len(set(texts)) == 1 and json.loads(texts[0])["backend"] == "llvm"
    assert "name" in _run("devices", "show", "llvm")[1]
    _, _, error = _run("devices", "show", "llvm", "--target", "llvm")
    assert isinstance(error, UsageError)


def test_probe_tells_of_each_measurement_and_writes_a_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from edgekernelbench.evaluator import peaks

    def measure(_target: object, progress: Callable[[str, int, int], None]) -> Peaks:
        progress("triad 24 KiB", 0, 2)
        progress("sum 24 KiB", 1, 2)
        return PEAKS

    monkeypatch.setattr(peaks, "measure_peaks", measure)
    monkeypatch.setenv("EDGEKERNELBENCH_PROFILES", str(tmp_path))
    result = CliRunner().invoke(app, ["devices", "probe", "--json"])
    told = json.loads(result.stdout)
    assert told.pop("profile") == str(tmp_path / "probed-llvm.yaml")
    assert Peaks.model_validate(told) == PEAKS
    rated = find_target("probed-llvm").peaks
    assert {peak.of for peak in rated} >= {"bandwidth", "f32"} and rated[0].source == "measured"
    assert result.stderr.splitlines() == ["[1/2] triad 24 KiB", "[2/2] sum 24 KiB"]


@pytest.mark.parametrize(
    "args",
    [
        ["check", "nowhere.ekir"],
        ["check", "/"],
        ["eval", "-", "--workload", "nonsense"],
        ["eval", "-", "--workload", "gelu_erf__02", "--target", "toaster"],
        ["eval", "-", "--workload", "gelu_erf__02", "--sustained", "1"],
        ["eval", "-", "--workload", "gelu_erf__02", "--sustained", "nan"],
        ["run", "--agent", "nobody", "--out", "x"],
        ["run", "--subset", "nothing", "--out", "x"],
        ["run", "--workload", "nonsense", "--out", "x"],
        ["score", "nowhere"],
    ],
)
def test_commands_that_cannot_be_carried_out_exit_with_2_and_one_line(
    args: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["ekb", *args])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert "Traceback" not in text
    assert "help: " in text


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        '{"[/red]": 1, "version": 1}',
        '{"version": 1, "task": {"family": "\\ud800"}}',
        "garbage",
        "null",
    ],
)
def test_a_file_without_a_readable_record_is_refused_in_one_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.jsonl").write_text(line + "\n")
    monkeypatch.setattr("sys.argv", ["ekb", "score", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "holds no readable record" in capsys.readouterr().err


def test_names_in_records_are_not_markup(tmp_path: Path) -> None:
    text = record(family="[/red]").model_dump_json()
    (tmp_path / "records.jsonl").write_text(f"{text}\nbroken [/red]\n")
    code, output, error = _run("score", str(tmp_path))
    assert (code, error) == (0, None)
    assert "[/red]" in output


def test_an_unwritable_cache_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGEKERNELBENCH_CACHE", "/dev/null/x")
    monkeypatch.setattr("sys.argv", ["ekb", "eval", "-", "--workload", "gelu_erf__02"])
    monkeypatch.setattr("edgekernelbench.cli.evaluate.read_kernel", lambda _: GOOD)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "EDGEKERNELBENCH_CACHE" in capsys.readouterr().err


def test_code_for_an_architecture_that_is_not_here() -> None:
    """Compiled where an nvcc knows it, else with the reason why not."""
    for command in ("check", "explain"):
        code, text, _ = _run(command, "-", "--target", "cuda-sm_87", "--json", stdin=GOOD)
        found = json.loads(text)
        assert code == 0 and found["ok"]
        if found["not_compiled"]:
            assert not found["kernels"] and "nvcc" in found["not_compiled"]
        else:
            [bill] = found["kernels"]
            assert bill["name"] == "main_kernel" and bill["registers"] > 0


@pytest.mark.parametrize(
    ("target", "has"),
    [("c", "Kernel k"), ("opencl", "__kernel"), ("cuda-sm_87", "__global__")],
)
def test_generated_source_is_shown(target: str, has: str) -> None:
    code, text, _ = _run("explain", "-", "--target", target, "--source", stdin=GOOD)
    assert code == 0 and has in text and "y" in text


def test_llvm_gets_no_source() -> None:
    _, _, error = _run("explain", "-", "--source", stdin=GOOD)
    assert isinstance(error, UsageError) and "LLVM gets no source" in error.message
