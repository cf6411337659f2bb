"""The page: its figures are those of `ekb score --json`, its size and time have limits, and odd
input gives a sensible page."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.read import RECORDS, text_key
from edgekernelbench.records.schema import Step
from edgekernelbench.report.entries import read_entries
from edgekernelbench.report.pack import unpack
from edgekernelbench.report.page import LIMIT, report_page
from edgekernelbench.report.plots.axes import log_scale
from edgekernelbench.suite import load_suite
from tests.factories import baseline, correct, record
from tests.report.synthetic import records, write

OLD = sorted(
    path.parent for path in (Path(__file__).parents[1] / "data" / "records").glob(f"*/{RECORDS}")
)
FEW = load_suite().subset("quick")[:8]


def _data(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/octet-stream" id="{name}">(.*?)</script>', page)
    assert found is not None
    return unpack(found[1])


def _page(*folders: Path, **options: Any) -> str:
    return report_page(read_entries(folders), **options)


def _markup(page: str) -> str:
    return re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)


def _scored(folder: Path) -> Any:
    result = CliRunner().invoke(app, ["score", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_figures_are_those_of_ekb_score(tmp_path: Path) -> None:
    a = write(tmp_path / "a", records("tuner", FEW, epochs=3))
    b = write(tmp_path / "b", records("leka", FEW, model="m"))
    page = _page(a, b)
    entries = _data(page, "data")["entries"]
    assert [entry["name"] for entry in entries] == ["a", "b"]
    for entry, folder in zip(entries, (a, b), strict=True):
        assert json.loads(json.dumps(entry["score"])) == _scored(folder)


def test_shares_are_printed_as_scored_with_their_counts(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=FEW))
    page, scored = _page(folder), _scored(folder)
    fast = scored["fast_at"]["best"]["1.0"]
    for cell in (scored["correct_at"]["1"], fast, *(v["1.0"] for v in scored["fast_at"].values())):
        assert f"{100 * cell['value']:.1f} %" in page and f"{cell['count']}/{cell['n']}" in page
    shares = re.findall(r"<td>\d+\.\d %(.*)", page)
    assert len(shares) > 20
    assert all(re.match(r' <span class="count">\d+/\d+<', after) for after in shares)


def test_outcomes_of_tasks_add_up_to_the_scores(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=load_suite().subset("quick"), epochs=2))
    scored, entry = _scored(folder), _data(_page(folder), "data")["entries"][0]
    outcomes = [task["outcome"] for task in entry["tasks"]]
    assert outcomes.count("fast") == scored["fast_at"]["best"]["1.0"]["count"]
    right = sum(outcomes.count(name) for name in ("fast", "unsure", "slow", "no_baseline"))
    assert right == scored["correct_at"]["1"]["count"]
    assert len(outcomes) - outcomes.count("outside") == scored["n"]


def test_a_run_of_the_whole_suite_is_quick_and_small(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records())
    began = time.process_time()
    page = _page(folder)
    assert time.process_time() - began < 20
    assert len(page.encode()) < LIMIT
    assert len(_data(page, "details")["entries"][0]) == 650


def test_the_page_asks_nothing_of_the_network(tmp_path: Path) -> None:
    page = _page(write(tmp_path / "run", records(workloads=FEW)))
    assert "default-src 'none'" in page
    links = re.findall(r"""(?:src|href|action)="([^"]*)""", _markup(page))
    assert links and all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"@import|url\(|<iframe|<object|<embed|https?://(?!www\.w3\.org)", page)


def test_texts_that_a_stranger_wrote_stay_texts(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    one = correct("k__01", {"tvm": baseline(2.0, 1.9)}, "tvm")
    found = [
        record("k__01", one).model_copy(update={"kernel": hostile, "agent": hostile}),
        record("k__02").model_copy(update={"agent": hostile, "message": hostile}),
    ]
    page = _page(write(tmp_path / "run", found))
    assert "<img src=x" not in page and "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 3


def test_prompts_and_candidates_come_along_and_a_link_does_not(tmp_path: Path) -> None:
    prompt, secret = "Write a kernel.\n\n" + "x" * 200, "a secret of this machine"
    (tmp_path / "secret").write_text(secret)
    step = Step(action="ask", seconds=1.0, prompt=text_key(prompt), answer=text_key(secret))
    found = record("k__01").model_copy(update={"trajectory": (step,)})
    folder = write(tmp_path / "run", [found], [prompt])
    (folder / "texts" / f"{text_key(secret)}.md").symlink_to(tmp_path / "secret")
    details = _data(_page(folder), "details")
    assert prompt in "\n\n".join(details["texts"])
    assert secret not in json.dumps(details)


def test_what_does_not_fit_is_left_out_and_told(tmp_path: Path) -> None:
    noise = random.Random(0)
    text = "\n\n".join(noise.randbytes(400).hex() for _ in range(2000))
    step = Step(action="ask", seconds=1.0, prompt=text_key(text))
    found = record("k__01").model_copy(update={"trajectory": (step,)})
    folder = write(tmp_path / "run", [found], [text])
    whole, short = _page(folder), _page(folder, limit=100)
    assert len(whole) > 1_000_000 > len(short)
    assert "it holds no" not in whole
    assert "it holds no prompts, answers and patches;" in short


@pytest.mark.parametrize("folder", OLD, ids=[folder.name for folder in OLD])
def test_records_of_every_shape_have_a_page(folder: Path) -> None:
    entry = _data(_page(folder), "data")["entries"][0]
    assert entry["score"] == _scored(folder)


def test_old_and_new_records_stand_side_by_side_with_the_reason_not_to_compare(
    tmp_path: Path,
) -> None:
    new = write(tmp_path / "new", [record("k__01", correct("k__01", {}, None))])
    page = _page(new, *OLD)
    assert "Not compared: " in page and "runs of more than one tolerance version" in page


def test_a_folder_of_several_agents_becomes_an_entry_for_each(tmp_path: Path) -> None:
    for agent in ("tuner", "leka"):
        write(tmp_path / "both" / agent, records(agent, FEW))
    names = [entry["name"] for entry in _data(_page(tmp_path / "both"), "data")["entries"]]
    assert sorted(names) == ["both: leka", "both: tuner"]


def test_a_half_written_line_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=FEW))
    with (folder / RECORDS).open("a") as file:
        file.write('{"version": 1, "id": "k__')
    page = _page(folder)
    assert "Not everything in these folders" in page and f"{RECORDS}:9" in page


def test_a_run_with_nothing_correct(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=FEW, skill=0.0))
    page = _page(folder)
    assert "No correct kernel has a baseline" in page and "0.0 %" in page and "nan" not in page


def test_a_run_in_which_nothing_was_judged(tmp_path: Path) -> None:
    found = [record("k__01", status=EvaluationStatus.PROVIDER_ERROR)]
    page = _page(write(tmp_path / "run", found))
    assert "provider error" in page and "None" not in _markup(page)


def test_thousands_of_attempts_stay_below_the_limit(tmp_path: Path) -> None:
    workloads = list(load_suite().workloads.values())[:100]
    page = _page(write(tmp_path / "run", records(workloads=workloads, epochs=30)))
    assert len(page.encode()) < LIMIT
    assert len(_data(page, "data")["entries"][0]["tasks"]) == 100


def test_several_targets_have_a_matrix(tmp_path: Path) -> None:
    for target in ("llvm", "opencl"):
        write(tmp_path / "run" / target, records(workloads=FEW, target=target))
    page = _page(tmp_path / "run")
    assert "Over targets" in page and page.count('<th scope="col">opencl</th>') == 1


def test_the_command_writes_a_page_or_says_why_not(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=FEW[:1]))
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(folder), "-o", str(page)])
    assert done.exit_code == 0 and page.read_text().startswith("<!doctype html>")
    nowhere = CliRunner().invoke(app, ["report", str(folder), "-o", str(tmp_path / "no" / "x")])
    assert nowhere.exit_code != 0 and not (tmp_path / "no").exists()
    twice = CliRunner().invoke(app, ["report", str(folder), str(folder), "-o", str(page)])
    assert "named twice" in str(twice.exception)


def test_no_figure_of_a_record_stretches_a_plot_beyond_all_numbers() -> None:
    scale = log_scale([5e-324, 2.0, 1e308])
    assert 0.1 < scale.low < 2.0 < scale.high < 100.0
    assert scale.share(5e-324) == 0.0 and scale.share(1e308) == 1.0
