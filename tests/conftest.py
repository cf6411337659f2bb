"""Tests that measure have a second try: the machine may have been busy with something else.

What fails once is printed (``-rR``), so that it can be looked at; what fails twice is a failure.
Tests that measure nothing have one try.
"""

from __future__ import annotations

from pathlib import Path

import pytest

MEASURING = frozenset(
    (
        "adversarial",
        "agents",
        "benchmarks",
        "cli",
        "e2e",
        "evaluator",
        "fuzz",
        "llm",
        "optimize",
        "runs",
    )
)
_TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(_TESTS).parts[0] in MEASURING:
            item.add_marker(pytest.mark.flaky(reruns=1))
