from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.suite.own import store


@pytest.fixture
def own_tasks(tmp_path: Path):
    """Own suites of a test lie in a folder of its own."""
    with store.placed(tmp_path / "tasks" / "suite"):
        yield tmp_path
