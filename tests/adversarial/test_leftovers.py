"""Processes that are never there for long: each starts the next, in a session of its own, and ends.
Whoever looks for them and kills what he finds comes too late for most."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil
import pytest

from edgekernelbench.evaluator import landlock
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.llm.local import LocalSandbox
from tests.adversarial.comets import BEAT, COMETS, SOURCE
from tests.evaluator.fakes import MACHINERY


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("comets")
    (folder / "comets.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-o", "comets", "comets.c"], cwd=folder, check=True)
    return (folder / "comets").read_bytes()


@pytest.fixture
def beating(tmp_path: Path) -> Iterator[int]:
    file = tmp_path / BEAT
    file.write_bytes(bytes(4096))
    with file.open("rb") as opened:
        yield opened.fileno()


def beats(file: int) -> int:
    """How many there were so far."""
    return int.from_bytes(os.pread(file, 8, 0), "little")


def processes_below(pid: int) -> int:
    """Those that have ended and of which nobody has taken notice included; of those that come and
    go meanwhile, some."""
    parents: dict[int, int] = {}
    for listed in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            parents[listed] = psutil.Process(listed).ppid()
    below = {pid}
    while found := {child for child, parent in parents.items() if parent in below} - below:
        below |= found
    return len(below) - 1


def test_none_outlives_a_local_sandbox(program: bytes) -> None:
    if landlock.version() < 6:
        pytest.skip("this system's Landlock does not keep signals apart")
    box = LocalSandbox()
    try:

        async def start() -> int:
            await box.write_file("comets", program)
            await box.write_file(BEAT, bytes(4096))
            file = os.open(box.root / "work" / BEAT, os.O_RDONLY)
            await box.exec(["chmod", "+x", "comets"])
            assert (await box.exec(["./comets", BEAT])).success
            return file

        file = anyio.run(start)
        time.sleep(0.2)
        assert beats(file) > COMETS, "they are on their way"
        assert processes_below(os.getpid()) < 10 * COMETS, "and leave no numbers taken"
    finally:
        box.close()
    before = beats(file)
    time.sleep(0.5)
    assert beats(file) == before
    os.close(file)


def test_none_outlives_a_build(program: bytes, tmp_path: Path, beating: int) -> None:
    (tmp_path / "comets").write_bytes(program)
    (tmp_path / "comets").chmod(0o755)
    server = ForkServer(MACHINERY.servers["compile"])
    try:
        limits = Limits(processes=True, writes=True)
        worker = server.start("tests.adversarial.comets:launch", {}, limits, tmp_path)
        assert worker.reply(20.0, 1 << 10) == {"launched": True}
        worker.close()
        before = beats(beating)
        assert before > COMETS, "they were on their way"
        time.sleep(0.5)
        assert beats(beating) == before
    finally:
        server.close()
