"""The page in a real browser: no error, filters, tabs, a task, its trajectory; at both widths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.evaluator.conditions import Noise
from edgekernelbench.records.read import text_key
from edgekernelbench.records.schema import Step
from edgekernelbench.report.entries import read_entries
from edgekernelbench.report.page import report_page
from edgekernelbench.suite import load_suite
from tests.factories import baseline, correct, performance, record
from tests.report.browser import UNNAMED, assert_contrast, chromium, opened
from tests.report.synthetic import records, write

FEW = load_suite().subset("quick")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    runs = [write(folder / agent, records(agent, FEW)) for agent in ("tuner", "leka")]
    file = folder / "report.html"
    file.write_text(report_page(read_entries(runs)), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_reaches_beyond_the_window(browser: Any, page: Path, width: int) -> None:
    for at in ("", "#task-0-1"):
        with opened(browser, page, width, at) as tab:
            assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_filters_narrow_the_table_and_can_be_cleared(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        rows = tab.locator("#task-table tbody tr")
        everything = rows.count()
        assert everything == min(len(FEW), 100)
        tab.select_option("#filter-outcome", "slow")
        slow = rows.count()
        assert 0 < slow < everything
        assert tab.locator("#task-table .outcome.slow").count() == slow
        tab.fill("#filter-text", FEW[0].id)
        tab.select_option("#filter-outcome", "")
        assert rows.count() == 1
        assert tab.locator("#tasks-count").inner_text().startswith(f"1 of {len(FEW)}")
        tab.fill("#filter-text", "no such thing")
        assert rows.count() == 0
        tab.click("#filter-clear")
        assert rows.count() == everything


def test_columns_sort_both_ways(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:

        def speedups() -> list[float]:
            cells = tab.locator("#task-table tbody tr td:nth-last-child(2)").all_inner_texts()
            return [float(cell[:-1]) for cell in cells if cell != "–"]

        tab.click("[data-key=speedup]")
        assert speedups() == sorted(speedups())
        tab.click("[data-key=speedup]")
        assert speedups() == sorted(speedups(), reverse=True)
        assert tab.locator("th[aria-sort=descending]").inner_text() == "over best"


def test_runs_are_tabs_for_the_mouse_and_the_keyboard(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        assert tab.is_visible("#run-0") and not tab.is_visible("#run-1")
        tab.click("#tab-1")
        assert tab.is_visible("#run-1") and not tab.is_visible("#run-0")
        assert "#task-1-" in tab.locator("#task-table a").first.get_attribute("href")
        tab.keyboard.press("ArrowLeft")
        assert tab.is_visible("#run-0") and tab.evaluate("document.activeElement.id") == "tab-0"


def test_a_task_opens_and_leads_back(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.select_option("#filter-outcome", "slow")
        tab.locator("#task-table a").first.click()
        tab.wait_for_selector("#task h1")
        assert not tab.is_visible("#overview")
        headings = tab.locator("#task h2").all_inner_texts()
        assert {"Times", "Kernel", "What it became", "Trajectory", "The bill"} <= set(headings)
        assert "acc0[i: M, j: N]" in tab.locator("#task pre").first.inner_text()
        assert tab.locator("#task .strip circle").count() > 48
        steps = tab.locator(".timeline > li")
        assert steps.count() >= 2
        assert steps.first.get_attribute("class") in ("compute", "schedule", "memory")
        tab.click("#task .back")
        tab.wait_for_selector("#tasks", state="visible")
        assert not tab.is_visible("#task")


def test_why_a_baseline_is_ahead_and_what_disturbed_are_told(browser: Any, tmp_path: Path) -> None:
    notes = ("the canonical program takes 18 times as long",)
    rival = baseline(0.5, 0.4).model_copy(update={"route": "ONNX twin", "notes": notes})
    found = correct("k__01", {"tvm": rival}, "tvm")
    noise = Noise(seconds=1.0, causes=("other processes took 80% of the processors",), widening=1.7)
    timed = performance().model_copy(update={"noise": noise})
    folder = write(
        tmp_path / "run",
        [record("k__01", found.model_copy(update={"performance": timed}))],
    )
    file = tmp_path / "page.html"
    file.write_text(report_page(read_entries([folder])), encoding="utf-8")
    with opened(browser, file, at="#task-0-0") as tab:
        tab.wait_for_selector("#task h1")
        told = tab.locator("#task").inner_text()
        assert f"ONNX twin; {notes[0]}" in told
        assert "80% of the processors; intervals 1.70 times wider" in told


def test_diagnostics_of_a_failure_are_shown(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        tab.select_option("#filter-outcome", "invalid_ir")
        tab.locator("#task-table a").first.click()
        tab.wait_for_selector("#task .finding")
        assert "E301" in tab.locator("#task .finding").inner_text()


def test_prompts_and_hostile_words_are_shown_as_they_are(browser: Any, tmp_path: Path) -> None:
    words = "</pre></script><img src=x onerror=document.title='taken'>\n\n" + "long " * 60
    step = Step(action="ask", seconds=1.0, prompt=text_key(words), reason=words)
    found = record("k__01", correct("k__01", {"tvm": baseline(2.0, 1.9)}, "tvm"))
    folder = write(
        tmp_path / "run",
        [found.model_copy(update={"kernel": words, "trajectory": (step,)})],
        [words],
    )
    file = tmp_path / "page.html"
    file.write_text(report_page(read_entries([folder])), encoding="utf-8")
    with opened(browser, file, at="#task-0-0") as tab:
        tab.wait_for_selector("#task h1")
        tab.locator("summary", has_text="Prompt").click()
        shown = tab.locator("#task details[open] pre")
        assert shown.last.inner_text().strip() == words.strip()
        assert tab.locator("#task img").count() == 0 and tab.title() != "taken"


def test_everything_is_named_for_those_who_cannot_see_it(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        assert tab.evaluate(UNNAMED) == []
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_both_schemes(browser: Any, page: Path, scheme: str) -> None:
    with opened(browser, page) as tab:
        assert_contrast(tab, scheme)
