"""The leaderboard in a real browser: sorting by mouse and keyboard, both widths, both schemes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.report.board.page import board_page
from edgekernelbench.report.board.sections import sections_of
from edgekernelbench.report.board.submissions import read_submissions
from edgekernelbench.suite import load_suite
from tests.report.browser import UNNAMED, assert_contrast, chromium, opened
from tests.report.synthetic import records, write

FEW = load_suite().subset("quick")
SKILLS = {"leka": 0.9, "tuner": 0.6, "direct-with-a-name-that-is-rather-long": 0.3}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    for agent, skill in SKILLS.items():
        write(folder / "runs" / agent, records(agent, FEW, skill=skill, model="openai/some-model"))
    write(folder / "runs" / "elsewhere", records("tuner", FEW, target="opencl"))
    found = read_submissions([folder / "runs", folder / "nowhere"])
    file = folder / "leaderboard.html"
    file.write_text(board_page(sections_of(found.submissions), found.problems), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_reaches_beyond_the_window_and_wide_tables_scroll(
    browser: Any, page: Path, width: int
) -> None:
    with opened(browser, page, width) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        wide = tab.evaluate(
            "[...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth - e.clientWidth)"
        )
        assert width > 1000 or max(wide) > 100


def test_runs_names_stay_while_their_figures_scroll(browser: Any, page: Path) -> None:
    with opened(browser, page, 390) as tab:
        left = "document.querySelector('.pinned tbody th').getBoundingClientRect().left"
        tab.evaluate("document.querySelector('.pinned').scrollLeft = 400")
        frame = tab.evaluate("document.querySelector('.pinned').getBoundingClientRect().left")
        assert tab.evaluate(left) == pytest.approx(frame, abs=1)


def test_columns_sort_by_the_mouse_and_the_keyboard(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        table = tab.locator("table.sortable").first

        def column(number: int) -> list[str]:
            cells = table.locator(f"tbody tr > :nth-child({number})")
            return cells.evaluate_all("(all) => all.map((one) => one.dataset.value)")

        assert column(1) == ["1", "2", "3"]
        heading = table.locator("th", has_text="Correct@1")
        heading.locator("button").click()
        shares = [float(value) for value in column(4)]
        assert shares == sorted(shares, reverse=True)
        assert heading.get_attribute("aria-sort") == "descending"
        tab.keyboard.press("Enter")
        assert [float(value) for value in column(4)] == sorted(shares)
        assert table.locator("th[aria-sort]").count() == 1
        name = table.locator("th", has_text="run").locator("button")
        name.focus()
        tab.keyboard.press("Space")
        assert column(2) == sorted(SKILLS)


def test_cells_without_a_value_come_last_both_ways(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        table = tab.locator("table.sortable").first
        cell = "[...document.querySelectorAll('table.sortable tbody tr')][1].cells[2].dataset.value"
        tab.evaluate(f"{cell} = ''")
        for _ in range(2):
            table.locator("th", has_text="best").first.locator("button").click()
            last = table.locator("tbody tr").last.locator("td").nth(1)
            assert last.get_attribute("data-value") == ""


def test_everything_is_named_for_those_who_cannot_see_it(browser: Any, page: Path) -> None:
    with opened(browser, page) as tab:
        assert tab.evaluate(UNNAMED) == []
        assert tab.locator("table:not(:has(th[scope=col]))").count() == 0
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_both_schemes(browser: Any, page: Path, scheme: str) -> None:
    with opened(browser, page) as tab:
        assert_contrast(tab, scheme)
