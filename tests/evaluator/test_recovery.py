"""What is left of a process that was killed, and what goes on without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from edgekernelbench.evaluator import folders
from edgekernelbench.evaluator.evaluator import Evaluator
from tests.evaluator.fakes import FakeTask, make_evaluator

_OWNER = """
from edgekernelbench.evaluator.folders import scratch_folder
print(scratch_folder("kernel"), flush=True)
input()
"""


def start(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that owns a temporary folder."""
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    assert owner.stdout is not None
    return owner, Path(owner.stdout.readline().strip())


def test_folders_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    killed, left = start(tmp_path)
    living, kept = start(tmp_path)
    (left / "kernel.so").write_text("x")
    killed.kill()
    killed.wait()
    assert left.is_dir(), "nobody was there to remove it"
    assert folders.sweep(tmp_path) == 1
    assert not left.parent.exists() and kept.is_dir()
    living.communicate("\n")
    assert list(tmp_path.iterdir()) == [], "who ends by himself leaves nothing"


def test_what_others_put_there_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / "edgekernelbench-00.lock").symlink_to(precious)
    (tmp_path / "edgekernelbench-01.lock").touch()
    (tmp_path / "edgekernelbench-01").symlink_to(precious)
    (precious / "file").touch()
    os.mkfifo(tmp_path / "edgekernelbench-02.lock")
    folders.sweep(tmp_path)
    assert (precious / "file").exists()


def test_a_canary_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    with make_evaluator(tmp_path) as evaluator, evaluator.session(FakeTask()) as session:
        for _ in range(2):
            result = session.evaluate("correct")
            assert result.status == "correct", result.message
            (canary,) = evaluator.canary.pids
            os.kill(canary, signal.SIGKILL)


def kill_while_building(evaluator: Evaluator) -> threading.Thread:
    """Kills the compile server once, as soon as it has a build to do."""
    server = evaluator.builder._server

    def strike() -> None:
        while not server._workers:
            time.sleep(0.001)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)

    thread = threading.Thread(target=strike)
    thread.start()
    return thread


def test_a_killed_compile_server_is_begun_anew(tmp_path: Path) -> None:
    with make_evaluator(tmp_path) as evaluator:
        evaluator.warm()
        thread = kill_while_building(evaluator)
        result = evaluator.evaluate("correct", FakeTask())
        thread.join()
        assert result.status == "correct", result.message
        assert evaluator.builder._server.starts == 2


def test_building_baselines_does_not_count_against_the_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_evaluator(tmp_path, baselines=("good",), total_run_s=2.0) as evaluator:
        evaluator.warm()
        build = evaluator.builder.baseline

        def slow(*arguments: object) -> object:
            time.sleep(2.5)
            return build(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(evaluator.builder, "baseline", slow)
        result = evaluator.evaluate("correct", FakeTask())
    assert result.status == "correct", result.message
    assert result.baselines["good"].status == "measured"
