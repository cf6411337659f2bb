"""The leaderboard: what stands together and in which order, what is told of each run's
verification, and that a folder that is no run keeps no other from being shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import BaselineResult, Environment, EvaluationStatus
from edgekernelbench.records.read import RECORDS, SETTINGS
from edgekernelbench.records.schema import Record
from edgekernelbench.report.board.page import board_page
from edgekernelbench.report.board.sections import Section, sections_of
from edgekernelbench.report.board.submissions import read_submissions
from edgekernelbench.runs.seal import FILE, keep
from edgekernelbench.runs.submission import digest_of
from edgekernelbench.runs.verify import Again, Verdict, Verification
from edgekernelbench.suite import load_suite
from tests.factories import baseline, correct, performance, record
from tests.report.synthetic import records, write

QUICK = load_suite().subset("quick")


def attempt(task: int, speedup: float | None, agent: str = "tuner") -> Record:
    """At task ``k__0N``, ``speedup`` times as fast as its only baseline; None: no kernel."""
    name = f"k__{task:02}"
    if speedup is None:
        return record(name, agent=agent)
    rivals = {"tvm": baseline(speedup, speedup * 0.95)}
    return record(name, correct(name, rivals, "tvm"), agent=agent)


def run(folder: Path, speedups: Sequence[float | None], agent: str = "tuner") -> Path:
    return write(folder, [attempt(n, s, agent) for n, s in enumerate(speedups)])


def board(*folders: Path) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    found = read_submissions(folders)
    return sections_of(found.submissions), found.problems


def order(section: Section) -> list[tuple[int | None, str]]:
    return [(place.rank, place.submission.entry.name) for place in section.places]


def test_fast_over_the_best_baseline_decides_then_correct(tmp_path: Path) -> None:
    run(tmp_path / "slow", [0.5, 0.5, 0.5, 0.5])
    run(tmp_path / "few", [2.0, None, None, None])
    run(tmp_path / "fast", [2.0, 2.0, None, None])
    run(tmp_path / "same", [2.0, 0.5, None, None])
    run(tmp_path / "like", [0.5, 2.0, None, None])
    (section,), problems = board(tmp_path)
    assert problems == ()
    assert order(section) == [(1, "fast"), (2, "like"), (2, "same"), (4, "few"), (5, "slow")]


def test_losing_attempts_gains_no_place(tmp_path: Path) -> None:
    """A task that is lost to the harness, or has no baseline to beat, is none the less lost."""
    run(tmp_path / "whole", [2.0, 2.0, 0.5, 0.5])
    won = [attempt(0, 2.0)]
    lost = [record(f"k__{n:02}", status=EvaluationStatus.INFRA_ERROR) for n in (1, 2, 3)]
    write(tmp_path / "chosen", won + lost)
    alone = [record(f"k__{n:02}", correct(f"k__{n:02}", {}, None)) for n in (1, 2, 3)]
    write(tmp_path / "alone", won + alone)
    (section,), _ = board(tmp_path)
    assert order(section) == [(1, "whole"), (2, "alone"), (3, "chosen")]
    shown = {place.submission.entry.name: place.submission.row for place in section.places}
    assert shown["chosen"]["fast_at"]["best"]["value"] == 1.0, "the share itself stays"


def test_the_figures_are_those_of_ekb_score_with_counts_and_intervals(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records("tuner", QUICK, model="m"))
    sections, _ = board(folder)
    page = board_page(sections, ())
    done = CliRunner().invoke(app, ["score", str(folder), "--json"])
    scored = json.loads(done.stdout)
    assert sections[0].title == "The quick subset on llvm"
    cells = [scored["correct_at"]["1"], *(at["1.0"] for at in scored["fast_at"].values())]
    for cell in cells:
        assert f"{100 * cell['value']:.1f} %" in page and f"{cell['count']}/{cell['n']}" in page
        assert f"{100 * cell['low']:.0f}–{100 * cell['high']:.0f} %" in page
    assert f"{scored['spent']['tokens']:,.0f}" in page and "tuner · m" in page


def _task(**update: Any) -> Callable[[Record], Record]:
    return lambda r: r.model_copy(update={"task": r.task.model_copy(update=update)})


def _evaluated(**update: Any) -> Callable[[Record], Record]:
    def changed(one: Record) -> Record:
        if one.evaluation is None:
            return one
        return one.model_copy(update={"evaluation": one.evaluation.model_copy(update=update)})

    return changed


def _timed(**update: Any) -> Callable[[Record], Record]:
    return _evaluated(performance=performance().model_copy(update=update))


OTHERS: dict[str, Callable[[Record], Record]] = {
    "tolerances version 7": _task(tolerance_version=7),
    "target": _task(target="opencl"),
    "processor": _evaluated(environment=Environment(cpu="Cortex-A76", system="Linux", threads=2)),
    "number of threads 4": _timed(threads=4),
    "cache state cold": _timed(cache_state="cold"),
    "timer": _timed(timer="device"),
    "baselines in best tvm, ort": _evaluated(
        baselines={"tvm": baseline(2.0, 1.9), "ort": baseline(3.0, 2.9)}
    ),
    "tasks": lambda r: r.model_copy(
        update={"id": "x", "task": r.task.model_copy(update={"workload": "other__01"})}
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_was_not_judged_alike_stands_apart(what: str, tmp_path: Path) -> None:
    here = _evaluated(environment=Environment(cpu="AMD EPYC", system="Linux", threads=2))
    one = here(attempt(0, 2.0))
    write(tmp_path / "a", [one])
    write(tmp_path / "b", [one.model_copy(update={"agent": "leka"})])
    write(tmp_path / "c", [OTHERS[what](one)])
    sections, problems = board(tmp_path)
    assert problems == ()
    assert [[name for _, name in order(s)] for s in sections] == [["a", "b"], ["c"]]
    titles = [section.title for section in sections]
    assert titles[0] != titles[1]
    if what not in ("target", "tasks"):
        assert what in titles[1]


def test_a_run_without_a_correct_kernel_contradicts_nothing(tmp_path: Path) -> None:
    run(tmp_path / "a", [2.0, 2.0])
    run(tmp_path / "none", [None, None])
    (section,), _ = board(tmp_path)
    assert order(section) == [(1, "a"), (2, "none")]


def test_agents_that_were_not_isolated_are_marked_and_unranked(tmp_path: Path) -> None:
    run(tmp_path / "plain", [2.0, 0.5])
    loose = [attempt(n, 9.0, "codex").model_copy(update={"isolated": False}) for n in (0, 1)]
    write(tmp_path / "loose", loose)
    sections, _ = board(tmp_path)
    assert order(sections[0]) == [(1, "plain"), (None, "loose")]
    assert "agent not isolated, unranked" in board_page(sections, ())


def test_a_run_that_nothing_came_of_is_unranked(tmp_path: Path) -> None:
    run(tmp_path / "plain", [2.0])
    write(tmp_path / "lost", [record("k__00", status=EvaluationStatus.PROVIDER_ERROR)])
    sections, _ = board(tmp_path)
    assert order(sections[0]) == [(1, "plain"), (None, "lost")]
    page = board_page(sections, ())
    assert "1 of 1 attempts without a verdict" in page and "nan" not in page


def test_every_entry_is_held_against_the_leader(tmp_path: Path) -> None:
    for name, speed in (("a", 4.0), ("b", 2.0), ("c", None)):
        run(tmp_path / name, [speed] * 8)
    sections, _ = board(tmp_path)
    pairs = {pair.name: pair.result for pair in sections[0].paired}
    assert order(sections[0])[0] == (1, "a") and set(pairs) == {"b", "c"}
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "c"), str(tmp_path / "a"), "--json"])
    assert json.loads(json.dumps(pairs["c"])) == json.loads(done.stdout)
    page = board_page(sections, ())
    assert "Each against a, paired by task" in page and "-100.0 points" in page


# ---------------------------------------------------------------- verification
def sealed(folder: Path, verdict: Verdict, agrees: bool | None = True) -> None:
    again = Again(
        attempt="k__00|llvm|tuner|0", claimed=EvaluationStatus.CORRECT,
        found=(EvaluationStatus.CORRECT,), agrees=agrees,
    )  # fmt: skip
    keep(folder, Verification(
        run="run", digest=digest_of(folder), package="0.1.0", date="2026-12-03T05:00:00+00:00",
        seed=1, tolerance=1.5, attempts=2, judged=2, findings=(), notes=(), again=(again,),
        times="", verdict=verdict,
    ))  # fmt: skip


def test_only_this_users_verdict_on_these_records_counts(tmp_path: Path) -> None:
    for name in ("mine", "none", "forged", "changed", "refuted", "open"):
        run(tmp_path / name, [2.0, 0.5], agent=name)
    sealed(tmp_path / "mine", "verified")
    sealed(tmp_path / "refuted", "refuted", agrees=False)
    sealed(tmp_path / "open", "open", agrees=None)
    (tmp_path / "forged" / FILE).write_text((tmp_path / "mine" / FILE).read_text()[:-30])
    sealed(tmp_path / "changed", "verified")
    with (tmp_path / "changed" / RECORDS).open("a") as file:
        file.write("\n")
    sections, _ = board(tmp_path)
    found = {p.submission.entry.name: p.submission.standing for p in sections[0].places}
    assert {name: one.word for name, one in found.items()} == {
        "mine": "verified", "none": "not verified", "forged": "not verified",
        "changed": "not verified", "refuted": "refuted", "open": "open",
    }  # fmt: skip
    assert found["mine"].date == "2026-12-03" and found["mine"].command == ""
    assert found["mine"].told == "1 of 1 judged again agree, of 2; statuses and speed-ups"
    assert "1 differ" in found["refuted"].told and "1 without a verdict" in found["open"].told
    assert found["none"].command == f"ekb verify {tmp_path / 'none'} --keep"
    assert "not of this user" in found["forged"].told and "changed since" in found["changed"].told
    assert order(sections[0])[-1] == (None, "refuted")


# ---------------------------------------------------------------- folders
def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["leaderboard", *map(str, arguments)])


def test_what_is_no_run_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    good = run(tmp_path / "good", [2.0, 0.5])
    broken, empty, begun = (tmp_path / name for name in ("broken", "empty", "begun"))
    for folder in (broken, empty, begun):
        folder.mkdir()
    (broken / RECORDS).write_text('{"version": 1\n[]\n\x00\n')
    (begun / SETTINGS).write_text("{}")
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / RECORDS).write_text('{"version": 99}\n')
    mixed = [attempt(0, 2.0), _timed(threads=4)(attempt(1, 2.0))]
    write(tmp_path / "mixed", mixed)
    page = tmp_path / "page.html"
    folders = (good, broken, empty, begun, newer, tmp_path / "mixed", tmp_path / "nowhere")
    done = invoke(*folders, "-o", page)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    for folder in folders[1:]:
        assert str(folder) in done.stderr.replace("\n", "") and str(folder) in text
    assert "record version 99" in text and "more than one number of threads" in text
    assert "1 entry in 1 section." in text and ">good<" in text


def test_no_run_at_all_is_one_line(tmp_path: Path) -> None:
    for arguments in ((), (tmp_path / "nowhere",), (tmp_path,)):
        done = invoke(*arguments, "-o", tmp_path / "page.html")
        assert isinstance(done.exception, UsageError)
        assert "\n" not in str(done.exception.message)
    assert not (tmp_path / "page.html").exists()


def test_a_run_that_is_reached_twice_or_copied_is_shown_once(tmp_path: Path) -> None:
    one, copy = run(tmp_path / "one", [2.0]), run(tmp_path / "two", [2.0])
    sections, problems = board(tmp_path, one, copy / RECORDS)
    assert len(sections) == 1 and len(sections[0].places) == 1
    assert [p for p in problems if "the same run as" in p] == [
        f"{copy}: the same run as {one}, shown once"
    ]


def test_a_run_of_several_agents_and_targets_has_an_entry_for_each(tmp_path: Path) -> None:
    found = [attempt(0, 2.0), attempt(0, 2.0, "leka"), _task(target="opencl")(attempt(1, 2.0))]
    write(tmp_path / "run", found)
    sections, _ = board(tmp_path)
    assert sorted(name for s in sections for _, name in order(s)) == [
        "run: leka", "run: tuner", "run: tuner (2)",
    ]  # fmt: skip


def test_json_has_what_the_page_has(tmp_path: Path) -> None:
    run(tmp_path / "a", [2.0, 0.5])
    run(tmp_path / "b", [0.5, None])
    done = invoke(tmp_path, "-o", tmp_path / "page.html", "--json")
    found = json.loads(done.stdout)
    rows = found["sections"][0]["rows"]
    assert [(row["rank"], row["name"]) for row in rows] == [(1, "a"), (2, "b")]
    assert rows[0]["fast_at"]["best"]["count"] == 1
    assert rows[0]["verification"]["verdict"] == "not verified"
    assert found["problems"] == []


def test_the_page_asks_nothing_of_anybody_and_stays_text(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    one = attempt(0, 2.0).model_copy(update={"agent": hostile, "model": hostile})
    sections, problems = board(write(tmp_path / "run", [one]))
    page = board_page(sections, (*problems, hostile))
    assert "<img src=x" not in page and "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 1
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)="(?!#|data:)""", page)


def test_an_absent_baseline_is_no_zero(tmp_path: Path) -> None:
    absent = BaselineResult(status="unavailable", scored=True, message="no twin")
    one = correct("k__00", {"ort": absent}, None)
    sections, _ = board(write(tmp_path / "run", [record("k__00", one)]))
    assert sections[0].facts["baselines in best"] == "none was measured"
    assert "None" not in re.sub(
        r"<(script|style).*?</\1>", "", board_page(sections, ()), flags=re.S
    )
