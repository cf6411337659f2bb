from __future__ import annotations

import pytest

from .fakes import install


@pytest.fixture
def without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
