"""The device lock, and what is left when the parent dies."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from edgekernelbench.evaluator.folders import sweep
from edgekernelbench.evaluator.model import Evaluation
from tests.evaluator.fakes import FakeTask, make_evaluator

_PARENT = """
import sys
from pathlib import Path
from tests.evaluator.fakes import FakeTask, make_evaluator
with make_evaluator(Path(sys.argv[1]), run_s=60) as evaluator:
    print("ready", flush=True)
    evaluator.evaluate("loop", FakeTask())
"""


def _descendants(parent: psutil.Process) -> list[psutil.Process]:
    """Servers and workers; not the compiler's passing helpers."""
    found = []
    for process in parent.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "zygote" in " ".join(process.cmdline()):
                found.append(process)
    return found


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_nothing_survives_the_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert parent.stdout is not None and parent.stdout.readline() == b"ready\n"
    described = psutil.Process(parent.pid)
    deadline = time.monotonic() + 30
    # Both servers and the looping kernel's process.
    while len(_descendants(described)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    children = _descendants(described)
    assert len(children) >= 3
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert all(_is_zombie(p) for p in alive)


def test_the_device_is_used_by_one_at_a_time_and_waiting_is_not_counted(tmp_path: Path) -> None:
    results: list[Evaluation] = []
    warm, held = threading.Barrier(3), threading.Event()

    def work() -> None:
        with make_evaluator(tmp_path) as evaluator:
            evaluator.warm()
            warm.wait(60)
            held.wait(60)
            results.append(evaluator.evaluate("correct", FakeTask()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    warm.wait(60)
    with make_evaluator(tmp_path) as holder, holder.device_lock():
        held.set()
        time.sleep(1.0)
    for thread in threads:
        thread.join()
    assert [r.status for r in results] == ["correct", "correct"]
    first, second = sorted(results, key=lambda r: r.lock_wait_seconds)
    assert first.lock_wait_seconds > 0.8
    # The second also waits for the first, which holds the device for its whole evaluation.
    assert second.lock_wait_seconds > first.lock_wait_seconds + first.timings["measure"]


def test_what_a_dead_process_left_is_removed_however_deep_or_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end every later command, at its first temporary folder."""
    folder, mine = tmp_path / "edgekernelbench-00", tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("precious")
    (tmp_path / "edgekernelbench-00.lock").touch()
    (folder / "closed/inner").mkdir(parents=True)
    (folder / "link").symlink_to(mine)
    (folder / "closed/inner/link").symlink_to(mine)
    (folder / "closed").chmod(0)
    monkeypatch.chdir(folder)
    for _ in range(1500):
        os.mkdir("d")  # noqa: PTH102
        os.chdir("d")
    os.chdir(tmp_path)
    assert sweep(tmp_path) == 1
    assert not folder.exists() and (mine / "file").read_text() == "precious"
