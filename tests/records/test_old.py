"""What older states of the package wrote is read, scored, printed again and taken up for ever."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings
from edgekernelbench.records.read import RECORDS, SETTINGS, find_records
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.runs.order import RunConfig
from edgekernelbench.runs.run import Attempts, Silent, run
from edgekernelbench.scores.compare import compare
from edgekernelbench.scores.score import score
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.model import Target

HERE = Path(__file__).parents[1] / "data" / "records"
RUNS = sorted(path.parent for path in HERE.glob(f"*/{RECORDS}"))
NAMES = [run.name for run in RUNS]


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{number}]")
    else:
        yield place, value


def test_every_shape_has_its_line_in_the_readme() -> None:
    text = (HERE / "README.md").read_text()
    assert NAMES and all(f"`{name}`" in text for name in NAMES)


@pytest.mark.parametrize("folder", RUNS, ids=NAMES)
def test_nothing_of_an_old_record_is_lost_when_it_is_printed_again(folder: Path) -> None:
    loaded = find_records(folder)
    lines = (folder / RECORDS).read_text().splitlines()
    # Only samples of their runs are kept.
    assert all("have no record" in problem for problem in loaded.problems)
    assert len(loaded.records) == len(lines)
    for record, line in zip(loaded.records, lines, strict=True):
        again = record.model_dump_json()
        kept = dict(_leaves(json.loads(again)))
        assert dict(_leaves(json.loads(line))).items() <= kept.items()
        assert Record.model_validate_json(again) == record


@pytest.mark.parametrize("folder", RUNS, ids=NAMES)
def test_old_records_are_scored_and_compared(folder: Path) -> None:
    records = find_records(folder).records
    result = score(records, (1, 2), memory_cap=1 << 30)
    assert result["attempts"] == len(records) == sum(result["statuses"].values())
    json.dumps(result, allow_nan=False)
    if result["n"]:
        assert compare(records, records)["correct_at"]["1"]["difference"] == 0
    for more in ([], ["--json"]):
        assert CliRunner().invoke(app, ["score", str(folder), *more]).exit_code == 0


class _Agent:
    """Stands for the agent of a finished run."""

    needs_canonical = False

    def __init__(self, stored: dict[str, Any]) -> None:
        self.name = stored["agent"]
        self.options = stored["agent_options"]


NOBODY: Any = None
"""The evaluator of a run of which nothing is evaluated."""


def _config(stored: dict[str, Any], **changed: Any) -> RunConfig:
    """The run's settings as this package knows them."""
    agent: Any = _Agent(stored)
    workloads = load_suite().workloads
    fields: dict[str, Any] = {
        "agent": agent,
        "model": stored["model"],
        "target": Target.model_validate(stored["target"]),
        "workloads": tuple(workloads[name] for name in stored["workloads"]),
        "subset": stored["subset"],
        "limits": Spent.model_validate(stored["limits"]),
        "epochs": stored["epochs"],
        "seed": stored["seed"],
        "settings": EvalSettings.model_validate(stored["settings"]),
    }
    return RunConfig(**fields | changed)


def _copied(folder: Path, to: Path) -> tuple[Path, dict[str, Any]]:
    shutil.copytree(folder, to)
    return to, json.loads((to / SETTINGS).read_text())


@pytest.mark.parametrize("folder", RUNS, ids=NAMES)
def test_an_old_run_is_taken_up_under_its_own_settings(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgekernelbench.runs.run.build_ahead", lambda *_: ())
    there, stored = _copied(folder, tmp_path / folder.name)
    before = (there / RECORDS).read_bytes()
    with Attempts.open(_config(stored), there, True, NOBODY, Silent()) as attempts:
        records = attempts.records()
        left = {(workload.id, epoch) for workload, epoch in attempts.todo}
    assert records == list(find_records(folder).records)
    assert (there / RECORDS).read_bytes() == before
    plan = {(w, e) for w in stored["workloads"] for e in range(stored["epochs"])}
    assert left == plan - {(r.task.workload, r.epoch) for r in records}


@pytest.mark.parametrize("folder", RUNS, ids=NAMES)
def test_under_other_settings_it_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    there, stored = _copied(folder, tmp_path / folder.name)
    target = Target.model_validate(stored["target"])
    other = _config(stored, target=target.model_copy(update={"workspace_bytes": 12345}))
    with pytest.raises(UsageError) as caught:
        run(other, there, True, NOBODY, Silent())
    there_told = stored["target"].get("workspace_bytes")
    assert f"(target.workspace_bytes: {there_told} there, 12345 now)" in caught.value.message
    assert "\n" not in caught.value.message


def test_settings_that_this_package_does_not_know_are_not_dropped(tmp_path: Path) -> None:
    there, stored = _copied(RUNS[0], tmp_path / "run")
    changed = {**stored, "target": {**stored["target"], "antigravity": True}}
    (there / SETTINGS).write_text(json.dumps(changed))
    with pytest.raises(UsageError, match=r"target\.antigravity: True there, None now"):
        run(_config(stored), there, True, NOBODY, Silent())
