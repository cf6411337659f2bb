from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Own suites of each test lie in a folder of its own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("EDGEKERNELBENCH_HOME", str(folder))
    return folder
