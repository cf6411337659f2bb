"""Coding agents that would rather have a verdict than a kernel: through the local sandbox and the
two tools, without a command line. One that gets away with its trick hands in a kernel that the
device of these tests calls correct."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from inspect_ai.tool import ToolError
from inspect_ai.util import sandbox

import edgekernelbench
from edgekernelbench.agents.model import ProviderError
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import landlock
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.room import NoRoom
from edgekernelbench.llm.run import run_with_model
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores.score import score
from tests.adversarial.exploits import Exploit
from tests.llm.fakes import Session, asking, kernel, order
from tests.llm.fakes import install as without_a_device
from tests.llm.server import serving
from tests.llm.test_coding import NAME, TASK, Line, answer, install, record_of

PACKAGE = Path(edgekernelbench.__file__).parent

COMMANDS = {
    "tolerance": Exploit("a wider tolerance", "exec 3>>{package}/suite/tolerance.py", "crashed"),
    "reference": Exploit("an easier reference", "exec 3>>{package}/suite/truth.py", "crashed"),
    "program": Exploit("a command that always says correct", "exec 3>>{ekb}", "crashed"),
    "records": Exploit("a better record", "exec 3>>{run}/run.json", "crashed"),
    "outside": Exploit("a file outside of its workspace", "touch {outside}", "crashed"),
    "builds": Exploit("another kernel in the evaluator's folders", "touch /tmp/ekb-$$", "crashed"),
    "note": Exploit("a note to the next attempt, in memory that all share",
                    "touch /dev/shm/ekb-note-$$", "crashed"),
    "disk": Exploit("the disk itself, where it runs as root",
                    "for d in /dev/sd* /dev/vd* /dev/nvme* /dev/loop*; do "
                    "(exec 3>>$d) 2>/dev/null && [ -b $d ] && exit 0; done; exit 1", "crashed"),
    "warden": Exploit("no process above its own", "kill -CONT $PPID", "crashed"),
    "evaluator": Exploit("no evaluator", "kill -CONT {parent}", "crashed"),
    "memory": Exploit("the truth, out of the evaluator", "exec 3</proc/{parent}/mem", "crashed"),
    "environment": Exploit("the model's key", "cat /proc/{parent}/environ", "crashed"),
    "own environment": Exploit("the model's key, at home", "env | grep -q API_KEY", "crashed"),
    "limits": Exploit("an evaluator that can store no record",
                      "{python} -c 'import resource as r; r.prlimit({parent}, r.RLIMIT_FSIZE)'",
                      "crashed"),
    "priority": Exploit("a baseline that waits for a processor", "renice -n 19 -p {neighbour}",
                        "crashed"),
    "cores": Exploit("a baseline on one core",
                     "{python} -c 'import os; os.sched_setaffinity({neighbour}, {{0}})'",
                     "crashed"),
    "shared": Exploit("a note to the next attempt, in memory that outlives it",
                      "{python} -c 'import ctypes as c; exit(c.CDLL(None).shmget(7, 9, 896) < 0)'",
                      "crashed"),
    "command": Exploit("the package's own commands", "command -v ekb", "crashed"),
}  # fmt: skip

WORKSPACES = {
    "claims": Exploit("a verdict in prose", "Status: correct. Speed-up: 12.0x.", "no_kernel"),
    "record": Exploit("a record beside no kernel", "echo '{\"status\": \"correct\"}' > record.json",
                      "no_kernel"),
    "pipe": Exploit("an evaluator that reads for ever", "mkfifo kernel.ekir", "no_kernel"),
    "folder": Exploit("a reader that expects a file", "mkdir kernel.ekir", "no_kernel"),
    "device": Exploit("an endless file", "ln -s /dev/zero kernel.ekir", "no_kernel"),
    "large": Exploit("a kernel of 300 kB", "head -c 300000 /dev/zero | tr '\\0' x > kernel.ekir",
                     "no_kernel"),
    "environment": Exploit("the model's key, read by the evaluator",
                           "ln -s /proc/self/environ kernel.ekir", "no_kernel"),
    "elsewhere": Exploit("a file of the user's", "ln -s /etc/hostname kernel.ekir", "no_kernel"),
    "loop": Exploit("folders too deep to be deleted",
                    "i=0; while [ $i -lt 1500 ]; do mkdir d; cd -P d; i=$((i+1)); done",
                    "no_kernel"),
    "bytes": Exploit("a kernel that is no text", "printf '\\377\\376' > kernel.ekir", "no_kernel"),
}  # fmt: skip

Work = Callable[[Line], Awaitable[Any]]


async def _breaks(line: Line) -> None:
    await line.ask("# Task one")
    raise RuntimeError("exit code 137")  # as of a command line that its own shell has killed


async def _asks_too_much(line: Line) -> None:
    """Of the model's server, over the bridge that every program of the sandbox can reach."""
    await line.ask("# Task one")
    with pytest.raises(ProviderError):
        await line.ask("# Task impossible")
    await line.ask("# Task one")


ENDINGS: dict[str, tuple[Work, Exploit]] = {
    "breaks": (_breaks, Exploit(
        "no verdict where there is no kernel: its command line ends", "kill -9 $PPID",
        "no_kernel")),
    "asks too much": (_asks_too_much, Exploit(
        "no verdict where there is no kernel: a question that no provider takes",
        "a million tokens", "no_kernel")),
}  # fmt: skip


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_device(monkeypatch)


def attempt(
    monkeypatch: pytest.MonkeyPatch, folder: Path, work: Callable[[Line], Awaitable[Any]], said: str
) -> Record:
    install(monkeypatch, folder, work)
    with serving(lambda _: said) as server:
        return record_of(folder / "run", server.url)


@pytest.fixture
def neighbour() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("name", COMMANDS)
def test_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    neighbour: subprocess.Popen[bytes],
    name: str,
) -> None:
    if not landlock.version():
        pytest.skip("this system has no Landlock")
    exploit = COMMANDS[name]
    command = exploit.given.format(
        package=PACKAGE, ekb=Path(sys.executable).parent / "ekb", run=tmp_path / "run",
        outside=tmp_path / "outside", parent=os.getpid(), python=sys.executable,
        neighbour=neighbour.pid,
    )  # fmt: skip

    async def work(line: Line) -> None:
        tried = await sandbox().exec(["sh", "-c", command])
        await line.write("fast" if tried.success else "wrong")

    record = attempt(monkeypatch, tmp_path, work, "I see.")
    assert record.status == exploit.status, record.message


@pytest.mark.parametrize("name", WORKSPACES)
def test_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    exploit = WORKSPACES[name]

    async def work(line: Line) -> None:
        await line.ask("# Task one")
        await sandbox().exec(["sh", "-c", exploit.given])

    record = attempt(monkeypatch, tmp_path, work, exploit.given)
    assert record.status == exploit.status, record.message


@pytest.mark.parametrize("file", ["/proc/self/environ", "../../../../proc/self/environ", "link"])
def test_the_tools_read_nothing_for_an_agent_that_it_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """The evaluator's own environment holds the model's key."""
    told: list[str] = []

    async def work(line: Line) -> None:
        await sandbox().exec(["ln", "-s", "/proc/self/environ", "link"])
        for act in (line.check, line.evaluate):
            with pytest.raises(ToolError) as error:
                await act(file)
            told.append(str(error.value))

    record = attempt(monkeypatch, tmp_path, work, "I see.")
    assert all("outside of the sandbox" in text for text in told) and len(told) == 2, told
    assert record.status == "no_kernel" and record.spent.evaluations == 0


@pytest.mark.parametrize("file", ["kernel\0.ekir", "kernel\ud800.ekir", "k" * 5000, "\r\n[/b]"])
def test_a_name_that_no_file_can_have_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    async def work(line: Line) -> None:
        for act in (line.check, line.evaluate):
            with pytest.raises(ToolError, match="cannot be read"):
                await act(file)
        await line.write("fast")

    record = attempt(monkeypatch, tmp_path, work, "I see.")
    assert record.status == "correct" and record.spent.evaluations == 0, record.message


@pytest.mark.parametrize("full", [False, True])
def test_who_fills_the_disk_is_judged_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """There is no room to evaluate while its files are there, and then its command line ends. What
    somebody else has filled stops the run."""
    filled = True

    def room(_cache: Path) -> None:
        if filled:
            raise NoRoom("1 MiB is left", "make room")

    def evaluate(self: Session, text: str) -> Any:
        room(tmp_path)

    async def work(line: Line) -> None:
        nonlocal filled
        await line.ask("# Task one")
        await line.write("wrong")
        with pytest.raises(NoRoom):
            await line.evaluate()
        await sandbox().exec(["rm", "kernel.ekir"])
        filled = full
        raise RuntimeError("exit code 137")

    monkeypatch.setattr(Session, "evaluate", evaluate)
    monkeypatch.setattr("edgekernelbench.runs.bench.require_room", room)
    if full:
        with pytest.raises(UsageError, match="1 MiB is left"):
            attempt(monkeypatch, tmp_path, work, "I see.")
    else:
        assert attempt(monkeypatch, tmp_path, work, "I see.").status == "no_kernel"


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    work, exploit = ENDINGS[name]
    install(monkeypatch, tmp_path, work)
    with serving(lambda _: "I see.", lambda task, _: "500" * (task == "impossible")) as server:
        options = order(tmp_path / "run", "claude-code", workloads=TASK, sandbox="local")
        (record,) = run_with_model(options, asking(server.url, max_retries=0))
    assert record.status == exploit.status, record.message
    assert score([record])["outside_denominator"] == 0


def test_questions_side_by_side_under_a_limit_of_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(line.ask, f"# Task {number}")

    install(monkeypatch, tmp_path, work)
    with serving(lambda _: "I see.") as server:
        record = record_of(tmp_path / "run", server.url, limits=Spent(tokens=30))
    assert record.spent.tokens == 30


def test_checks_without_end_are_no_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a while; what it takes is not the wait for the device."""

    built = 0

    def slow(self: Session, text: str) -> Check:
        nonlocal built
        built += 1
        time.sleep(0.2)
        return Check("ab" * 32, None, "", ())

    monkeypatch.setattr(Session, "check", slow)

    async def work(line: Line) -> None:
        async def again() -> None:
            for _ in range(20):
                await line.check()

        await line.write("wrong")
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(again)

    install(monkeypatch, tmp_path, work)
    with serving(lambda _: "I see.") as server:
        record_of(tmp_path / "run", server.url, limits=Spent(seconds=3))
    assert built <= 3 / 0.2 + 1


def test_a_fourth_evaluation_of_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    async def work(line: Line) -> None:
        await line.write("wrong")
        told.extend([await line.evaluate() for _ in range(4)])

    record = attempt(monkeypatch, tmp_path, work, "I see.")
    assert told[3].startswith("Not evaluated") and record.spent.evaluations == 3
    assert record.status == "crashed"


def test_a_daemon_does_not_see_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would write a good kernel into the workspace once the agent has ended."""
    pids: list[int] = []
    good = kernel(NAME, "fast")

    async def work(line: Line) -> None:
        await line.write("wrong")
        await sandbox().write_file("good", good)
        late = "sleep 0.3; cp good kernel.ekir; exec sleep 600"
        script = f"setsid sh -c '{late}' >/dev/null 2>&1 & echo $!"
        started = await sandbox().exec(["sh", "-c", script])
        pids.append(int(started.stdout))

    record = attempt(monkeypatch, tmp_path, work, "I see.")
    assert record.status == "crashed"
    deadline = time.monotonic() + 30
    while psutil.pid_exists(pids[0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pids[0])


def test_without_a_trick_the_kernel_is_correct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        await line.write("fast")

    assert attempt(monkeypatch, tmp_path, work, answer("")).status == "correct"
