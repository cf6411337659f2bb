"""One compile server for all bundles of a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgekernelbench.deploy import compile_server
from edgekernelbench.evaluator.forkserver import ForkServer


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    started = compile_server()
    yield started
    started.close()
