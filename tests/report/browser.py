"""Chromium, where there is one; tests that need it say why they are skipped elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

UNNAMED = """() => [
  ...[...document.querySelectorAll('svg:not([aria-hidden]):not([aria-label])')],
  ...[...document.querySelectorAll('input, select')].filter((c) => !c.labels.length),
  ...[...document.querySelectorAll('button')].filter((b) => !b.textContent.trim()),
  ...[...document.querySelectorAll('[role=region]:not([aria-label]):not([aria-labelledby])')],
].map((e) => e.outerHTML.slice(0, 80))"""
"""What those who cannot see a page hear nothing of."""

CONTRAST = """() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.match(/\\d+/g).map(Number).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const probe = document.createElement('span'); document.body.append(probe);
  const of = (name) => { probe.style.color = `var(--${name})`; return light(getComputedStyle(probe).color); };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const names = ['ink', 'muted', 'link', 'blue', 'orange', 'green', 'red', 'purple', 'sky'];
  return Object.fromEntries(names.map((n) => [n, Math.min(ratio(of(n), of('paper')), ratio(of(n), of('panel')))]));
}"""  # noqa: E501


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


def assert_contrast(tab: Any, scheme: str) -> None:
    """Text and marks stand out from what is behind them, as WCAG asks (AA)."""
    tab.emulate_media(color_scheme=scheme)
    found = tab.evaluate(CONTRAST)
    assert all(found[name] >= 4.5 for name in ("ink", "muted", "link")), found
    assert all(ratio >= 3 for ratio in found.values()), found
