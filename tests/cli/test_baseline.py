"""``ekb baseline``: what scripts rely on, and refusals with a way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgekernelbench.baselines.packs import PACKS_VARIABLE
from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError


def run(*args: str) -> tuple[int, str, Exception | None]:
    result = CliRunner().invoke(app, ["baseline", *args])
    error = result.exception if isinstance(result.exception, Exception) else None
    return result.exit_code, result.output, error


@pytest.fixture(autouse=True)
def no_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PACKS_VARIABLE, str(tmp_path))


def test_list() -> None:
    code, text, _ = run("list", "--json")
    found = json.loads(text)
    assert code == 0
    assert set(found) == {"cpu", "device", "threads", "baselines", "packs"}
    assert {"tvm", "tvm-raw", "tvm-tuned", "ort"} <= {row["name"] for row in found["baselines"]}
    code, text, _ = run("list")
    assert code == 0 and "tvm-tuned" in text


def test_list_refuses_a_damaged_pack(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    _, _, error = run("list")
    assert isinstance(error, UsageError) and "bad.jsonl:1" in error.message and error.help


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--workload", "nonsense"), "nonsense"),
        (("--subset", "nonsense"), "nonsense"),
        (("--target", "nonsense"), "nonsense"),
        (("-o", "pack.txt"), "pack.txt"),
        (("-o", "/proc/nothing/pack.jsonl"), "cannot be written"),
    ],
)
def test_tune_refuses(arguments: tuple[str, ...], told: str) -> None:
    _, _, error = run("tune", *arguments)
    assert isinstance(error, UsageError) and told in error.message and error.help


def test_tune_refuses_to_extend_a_damaged_pack(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("{}\n")
    _, _, error = run("tune", "-o", str(path))
    assert isinstance(error, UsageError) and "bad.jsonl:1" in error.message
    assert path.read_text() == "{}\n"
