"""Chromium, where there is one; tests that need it say why they are skipped elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of playwright's, driving its own Chromium or the system's."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="needs a browser: pip install playwright, and Chromium"
    )
    with sync_api.sync_playwright() as playwright:
        found = [os.environ.get("CHROMIUM"), playwright.chromium.executable_path]
        found += [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
        path = next((p for p in found if p and Path(p).is_file()), None)
        if path is None:
            pytest.skip("needs a browser: apt-get install chromium, or playwright install chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, page: Path, width: int = 1280, at: str = "") -> Iterator[Any]:
    """A page that is ready; whatever its console or the network says at any time is an error."""
    tab = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: said.extend(
        [] if request.url.startswith(("file:", "data:", "blob:")) else [request.url]
    ))  # fmt: skip
    tab.goto(page.as_uri() + at)
    tab.wait_for_selector("html[data-ready=yes]")
    yield tab
    assert said == []
    tab.close()
