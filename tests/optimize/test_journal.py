"""The state of an optimisation survives what ends it, and is never mixed with another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.optimize.journal import STATE, Begun, Finished, Found, Granted, Journal

_ARGUMENTS = {"model": "abc", "budget": 3, "shapes": {"x": [1, 2]}}


def test_steps_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with Journal.open(folder, _ARGUMENTS) as journal:
        journal.add(Granted(part="a", evaluations=3))
        journal.add(Found(part="a", kernel_hash="0" * 64, median_us=2.5))
    with Journal.open(folder, _ARGUMENTS) as journal:
        assert journal.events == [
            Begun(arguments=_ARGUMENTS),
            Granted(part="a", evaluations=3),
            Found(part="a", kernel_hash="0" * 64, median_us=2.5),
        ]


def test_a_half_written_last_line_is_set_aside(tmp_path: Path) -> None:
    with Journal.open(tmp_path, _ARGUMENTS) as journal:
        journal.add(Granted(part="a", evaluations=3))
    state = tmp_path / STATE
    whole = state.read_bytes()
    state.write_bytes(whole + b'{"step":"found","part":"a","ker')
    with Journal.open(tmp_path, _ARGUMENTS) as journal:
        assert len(journal.events) == 2
        journal.add(Finished())
    assert state.read_bytes() == whole + b'{"step":"finished"}\n'
    assert (tmp_path / "state.partial").read_bytes().startswith(b'{"step":"found"')


def test_other_arguments_are_refused_with_what_differs(tmp_path: Path) -> None:
    Journal.open(tmp_path, _ARGUMENTS).close()
    with pytest.raises(UsageError, match="budget: 3 there, 4 now") as raised:
        Journal.open(tmp_path, {**_ARGUMENTS, "budget": 4})
    assert "-o" in raised.value.help
    Journal.open(tmp_path, _ARGUMENTS).close()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        Journal.open(tmp_path, _ARGUMENTS)
    assert [child.name for child in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(UsageError, match="a file"):
        Journal.open(tmp_path / "thesis.tex", _ARGUMENTS)


@pytest.mark.parametrize("line", [b"{}", b"not json", b'{"step":"cut"}', b'{"step":"other"}'])
def test_a_line_that_is_no_step_is_named(tmp_path: Path, line: bytes) -> None:
    Journal.open(tmp_path, _ARGUMENTS).close()
    with (tmp_path / STATE).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(UsageError, match=f"{STATE}:2: not a step"):
        Journal.open(tmp_path, _ARGUMENTS)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        Journal.open(tmp_path, _ARGUMENTS),
        pytest.raises(UsageError, match="another process"),
    ):
        Journal.open(tmp_path, _ARGUMENTS)


def test_what_has_done_nothing_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with Journal.open(folder, _ARGUMENTS) as journal:
        (folder / "tasks").mkdir()
        journal.discard("tasks")
    assert not folder.exists()
    with Journal.open(folder, _ARGUMENTS) as journal:
        journal.add(Granted(part="a", evaluations=3))
        journal.discard("tasks")
    assert (folder / STATE).exists()
