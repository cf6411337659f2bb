"""Names of own suites: each can be found again, and typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.find import find_workload
from edgekernelbench.suite.own.add import add
from edgekernelbench.suite.own.names import MAX_NAME, suite_name
from tests.suite.own.test_python import SIMPLE, write


@pytest.mark.parametrize(
    ("default", "name"),
    [
        ("model", "model"),
        ("my model-2", "my_model_2"),
        ("relu", "own_relu"),
        ("where", "own_where"),
        ("a__b_", "a_b"),
        ("3d", "suite_3d"),
        ("é", "suite"),
        ("n" * 300, "n" * MAX_NAME),
    ],
)
def test_names_made_of_file_names(default: str, name: str):
    assert suite_name(None, default) == name == suite_name(name, "")


@pytest.mark.parametrize("given", ["relu_", "a__b", "_a", "3d", "é", "", "a/b", "..", "n" * 300])
def test_names_that_are_none(given: str):
    with pytest.raises(UsageError) as caught:
        suite_name(given, "")
    assert caught.value.message.startswith("--name ") and len(caught.value.message) < 200


def test_a_file_named_like_a_word_is_found_again(tmp_path: Path):
    manifest = add(write(tmp_path, SIMPLE, "relu.py")).manifest
    assert manifest.name == "own_relu"
    for task in manifest.tasks:
        assert find_workload(task.workload.id) == task.workload
