"""Own suites as they lie on disk, and as others name them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.suite import load_suite
from edgekernelbench.suite.find import find_subset, find_workload
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.add import add
from tests.suite.own import models


@pytest.fixture
def added(tmp_path: Path) -> str:
    return add(models.save(models.one("Tanh", 40), tmp_path / "mine.onnx")).manifest.name


def test_own_tasks_are_named_and_never_counted(added: str):
    before = load_suite().stats()
    assert find_workload("mine").id == "mine"
    assert [w.id for w in find_subset("own")] == [w.id for w in find_subset("own:mine")] == ["mine"]
    assert before["workloads"] == len(find_subset("all")) == 650
    assert "mine" not in load_suite().workloads


def test_naming_a_packaged_workload_reads_no_own_suite(added: str, home: Path):
    (home / "suite/mine/suite.json").write_text("{")
    assert find_workload("add__01").id == "add__01"
    assert len(find_subset("quick")) > 0
    with pytest.raises(UsageError, match="unknown workload"):
        find_workload("add__99")


def test_loading_an_own_suite_imports_no_toolchain(added: str):
    program = (
        "import sys;"
        "from edgekernelbench.suite.find import find_subset;"
        "assert [w.id for w in find_subset('own')] == ['mine'];"
        "heavy = {'tvm', 'onnx', 'onnxruntime', 'scipy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda text: text[: len(text) // 2], "suite.json: "),
        (lambda text: text.replace('"version": 1', '"version": 2'), "version"),
        (lambda text: text.replace('"tolerance": "f32', '"tolerance": "f99'), "tolerance"),
        (lambda text: text.replace('"mine.onnx"', '"../../secret.onnx"'), "file"),
        (lambda text: text.replace('"name": "mine"', '"name": "other"'), "names itself 'other'"),
    ],
)
def test_a_damaged_suite_says_so_and_can_be_removed(added: str, damage, told: str, home: Path):
    file = home / "suite/mine/suite.json"
    file.write_text(damage(file.read_text()))
    for ask in (lambda: find_workload("mine"), lambda: find_subset("own")):
        with pytest.raises(UsageError) as caught:
            ask()
        assert told in caught.value.message and str(file) in caught.value.message
    store.remove("mine")
    assert find_subset("own") == ()


def test_removing(added: str, home: Path):
    store.remove("mine")
    assert not list((home / "suite").iterdir())
    with pytest.raises(UsageError, match="unknown workload"):
        find_workload("mine")
    with pytest.raises(UsageError, match="no own suite 'mine'"):
        store.remove("mine")


@pytest.mark.parametrize("name", ["own:other", "own:", "owned", "own:../mine"])
def test_unknown_subsets(added: str, name: str):
    with pytest.raises(UsageError):
        find_subset(name)


def test_near_names_of_own_tasks_are_suggested(added: str):
    with pytest.raises(UsageError) as caught:
        find_workload("mine_")
    assert "mine" in caught.value.help


def test_without_own_suites_the_subset_is_empty():
    assert find_subset("own") == ()


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EDGEKERNELBENCH_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot be written"):
        add(models.save(models.one("Tanh", 40), tmp_path / "mine.onnx"))


def test_of_two_commands_at_once_the_slower_is_told(tmp_path: Path, home: Path):
    with pytest.raises(UsageError, match="there is an own suite 'mine' already"):  # noqa: SIM117
        with store.staged("mine") as folder:
            (folder / "late").write_text("")
            add(models.save(models.one("Tanh", 40), tmp_path / "mine.onnx"))
    assert find_workload("mine").id == "mine"
    assert [f.name for f in (home / "suite").iterdir()] == ["mine"]


def test_what_killed_commands_left_is_swept(home: Path):
    program = (
        "import os, signal, sys, time\n"
        "from edgekernelbench.suite.own import store\n"
        "with store.staged('mine') as folder:\n"
        "    print(folder, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    os.utime(folder, (0, 0))
    store.sweep()
    assert folder.is_dir(), "its command is at work"
    process.kill()
    process.communicate()
    store.sweep()
    assert not folder.exists() and not list((home / "suite").iterdir())


def test_what_is_new_is_not_swept(home: Path):
    folder = home / "suite" / ".adding-x"
    folder.mkdir(parents=True)
    store.sweep()
    assert folder.is_dir()
