"""``ekb deploy``: exit codes, one JSON object, messages that name the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import kernel_hash
from tests.deploy.support import PLAIN
from tests.factories import correct, record


def _run(*args: str, stdin: str = PLAIN) -> tuple[int, str, Exception | None]:
    result = CliRunner().invoke(app, ["deploy", "-", *args], input=stdin)
    error = result.exception if isinstance(result.exception, Exception) else None
    return result.exit_code, result.stdout, error


def test_a_bundle(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "b"
    code, text, _ = _run("--target", "llvm", "-o", str(folder), "--selftest", "--json")
    told = json.loads(text)
    assert code == 0 and told["ok"] and told["selftest"] is True
    assert told["manifest"] == json.loads((folder / "manifest.json").read_text())


def test_a_kernel_that_is_not_right(tmp_path: Path) -> None:
    wrong = PLAIN.replace("x[i] * 2", "x[i + 1]")
    arguments = ("--target", "llvm", "-o", str(tmp_path / "b"))
    code, text, _ = _run(*arguments, "--json", stdin=wrong)
    told = json.loads(text)
    assert code == 1 and not told["ok"] and told["status"] == "invalid_ir"
    assert told["diagnostics"][0]["code"]
    code, text, _ = _run(*arguments, stdin=wrong)
    assert code == 1 and "-->" in text and "not deployed" in text
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--target", "raspberry-pi-6", "-o", "b"), "did you mean raspberry-pi-"),
        (("--target", "cuda-sm_87", "-o", "b"), "choose an OpenCL device, or a processor"),
        (("--target", "llvm", "-o", "."), "name a new folder with -o"),
        (("--target", "llvm", "-o", "b", "--workload", "none"), "ekb suite list"),
        (("--target", "llvm", "-o", "b", "--records", "nowhere"), "folder of an `ekb run`"),
        (("--target", "llvm", "-o", "b", "--constants", "no.npz"), "numpy.savez"),
    ],
)
def test_what_cannot_be_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _, _, error = _run(*arguments)
    assert isinstance(error, UsageError) and says in error.help
    assert list(tmp_path.iterdir()) == []


def test_measured_figures_come_from_records(tmp_path: Path) -> None:
    kernel = parse(PLAIN).kernel
    assert kernel is not None
    digest = kernel_hash(kernel)
    evaluation = correct("k__01", {}, None).model_copy(update={"kernel_hash": digest})
    assert evaluation.performance is not None
    measured = record("k__01", evaluation)
    run = tmp_path / "run"
    run.mkdir()
    (run / "records.jsonl").write_text(measured.model_dump_json() + "\n")
    arguments = ("--target", "llvm", "--records", str(run), "--json")
    code, text, _ = _run(*arguments, "-o", str(tmp_path / "b"))
    assert code == 0
    figures = json.loads(text)["manifest"]["measured"]
    assert figures["median_us"] == evaluation.performance.median_us
    _, _, error = _run(*arguments, "-o", str(tmp_path / "c"), stdin=PLAIN.replace("* 2", "* 3"))
    assert isinstance(error, UsageError) and "was not measured on 'llvm'" in error.message
