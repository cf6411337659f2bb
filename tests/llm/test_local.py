"""The local sandbox: what is started and left in it is gone afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import psutil
import pytest

from edgekernelbench.evaluator import landlock
from edgekernelbench.llm.local import LocalSandbox

# Away from its session, its environment, its parent and its standard streams.
DAEMON = "env -i setsid sh -c 'sleep 600 </dev/null >/dev/null 2>&1 & echo $!'"


def inside(work: Callable[[LocalSandbox], Awaitable[None]]) -> LocalSandbox:
    """A sandbox in which some work was done, closed."""
    box = LocalSandbox()
    try:
        anyio.run(work, box)
    finally:
        box.close()
    return box


def gone(pid: int, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not psutil.pid_exists(pid)


def test_files_and_daemons_do_not_outlive_it() -> None:
    pids: list[int] = []

    async def work(box: LocalSandbox) -> None:
        await box.write_file("a/b.txt", "text")
        started = await box.exec(["sh", "-c", f"touch $HOME/x $TMPDIR/y; {DAEMON}"])
        pids.append(int(started.stdout))
        assert psutil.pid_exists(pids[0]), "it outlives its command"

    box = inside(work)
    assert gone(pids[0], 0.0) and not box.root.exists()


def test_folders_do_not_outlive_it_however_deep_or_closed() -> None:
    async def work(box: LocalSandbox) -> None:
        deep = "i=0; while [ $i -lt 1500 ]; do mkdir d; cd -P d; i=$((i+1)); done"
        made = await box.exec(["sh", "-c", f"mkdir -p c/c; chmod 0 c; {deep}"])
        assert made.success

    assert not inside(work).root.exists()


def test_nothing_outlives_a_killed_run() -> None:
    code = f"""
import anyio
from edgekernelbench.evaluator import landlock
from edgekernelbench.llm.local import LocalSandbox
box = LocalSandbox()
started = anyio.run(box.exec, ["sh", "-c", {DAEMON!r}])
print(int(started.stdout), box.root, flush=True)
input()
"""
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    pid, root = run.stdout.readline().split()
    assert psutil.pid_exists(int(pid)) and Path(root).is_dir()
    run.kill()
    run.communicate()
    assert gone(int(pid))
    deadline = time.monotonic() + 30
    while Path(root).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(root).exists()


def test_commands_see_no_keys_and_not_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")

    async def work(box: LocalSandbox) -> None:
        environment = (await box.exec(["env"])).stdout
        assert "secret" not in environment and f"HOME={box.root}/home" in environment
        assert not (await box.exec(["sh", "-c", "command -v ekb"])).success

    inside(work)


def test_commands_end_as_they_say() -> None:
    async def work(box: LocalSandbox) -> None:
        result = await box.exec(["sh", "-c", "cat; pwd; echo no >&2; exit 3"], input="yes\n")
        assert (result.returncode, result.success) == (3, False)
        assert result.stdout == f"yes\n{box.root}/work\n" and result.stderr == "no\n"
        assert (await box.exec(["sh", "-c", "kill -9 $$"])).returncode == -9
        missing = await box.exec(["no-such-program"])
        assert missing.returncode == 127 and "No such file" in missing.stderr
        counted = await box.exec(["wc", "-c"], input="x" * (3 << 20))
        assert int(counted.stdout) == 3 << 20
        long = await box.exec(["sh", "-c", "head -c 12000000 /dev/zero; echo end"])
        assert len(long.stdout) == 10 << 20 and long.stdout.endswith("end\n")

    inside(work)


def test_a_command_ends_with_its_time() -> None:
    async def work(box: LocalSandbox) -> None:
        with pytest.raises(TimeoutError):
            await box.exec(["sh", "-c", "echo $$ > pid; exec sleep 600"], timeout=2)
        pid = int(await box.read_file("pid"))
        for _ in range(200):
            if not psutil.pid_exists(pid):
                break
            await anyio.sleep(0.05)
        assert not psutil.pid_exists(pid)

    inside(work)


def test_what_lies_in_a_files_place_leads_the_writer_nowhere(tmp_path: Path) -> None:
    if not landlock.version():
        pytest.skip("this system has no Landlock")
    outside = tmp_path / "outside"

    async def work(box: LocalSandbox) -> None:
        await box.exec(["ln", "-s", str(outside), "link"])
        await box.exec(["ln", "-s", str(tmp_path), "folder"])
        for file in ("link", "folder/outside", "folder/new/outside", "."):
            with pytest.raises(OSError, match=r"Permission denied|Is a directory"):
                await box.write_file(file, "text")
        await box.write_file("-n", b"\xff\0")
        assert await box.read_file("-n", text=False) == b"\xff\0"

    inside(work)
    assert list(tmp_path.iterdir()) == []


def test_only_regular_files_are_read() -> None:
    async def work(box: LocalSandbox) -> None:
        await box.exec(["sh", "-c", "mkfifo pipe; mkdir folder; printf '\\377' > bytes"])
        for name in ("pipe", "folder", "missing"):
            with pytest.raises(OSError):
                await box.read_file(name)
        with pytest.raises(UnicodeDecodeError):
            await box.read_file("bytes")

    inside(work)
