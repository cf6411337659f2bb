"""The sandbox ``local``: a folder and a process tree on this host, both gone afterwards.

What it keeps apart: files below its folder (home and temporary files are there too), the
environment (an allow-list, so no keys), and every process that is started in it, daemons included.
Where the system has Landlock, nothing outside of the folder can be changed, and no process outside
gets a signal; where it has seccomp, none is limited or slowed down. What it does not: the agent
runs as the same user, reaches the network and reads every file that this user reads, this package
among them. Attempts in it are recorded as not isolated.
"""

from __future__ import annotations

import errno
import json
import os
import pwd
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import anyio
import anyio.to_thread
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)

from edgekernelbench.evaluator.folders import scratch_folder
from edgekernelbench.llm.warden import READY

LOCAL = "edgekernelbench-local"
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME", "SHELL")
_TOOLS_FOLDER = "INSPECT_SANDBOX_TOOLS_DIR"
"""Inspect's own tools read it; two sandboxes on one host must not share it."""
_ENDING_S = 20.0
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from edgekernelbench.llm.warden import main; main(sys.argv[2])"
)
_WRITING = 'mkdir -p -- "$(dirname -- "$0")" && exec cat > "$0"'
_WRITING_S = 60


@sandboxenv(name=LOCAL)
class LocalSandbox(SandboxEnvironment):
    """One sample's folder and processes. See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.root = scratch_folder("agent")
        for name in ("work", "home", "tmp"):
            (self.root / name).mkdir()
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._warden = subprocess.Popen(
                [sys.executable, "-s", "-E", "-c", _BOOT, json.dumps(sys.path), str(self.root)],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self.environment(),
                start_new_session=True,
            )
        self._control = own
        if own.recv(16) != READY:
            raise SandboxUnavailableError("the process above a sandbox's does not start")

    # ------------------------------------------------------------ life
    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        return {"default": await anyio.to_thread.run_sync(cls)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: Any,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        with anyio.CancelScope(shield=True):
            for environment in environments.values():
                await anyio.to_thread.run_sync(environment.as_type(LocalSandbox).close)

    def close(self) -> None:
        """Kills every process and removes every file. May be called again.

        Raises:
            subprocess.TimeoutExpired: the processes do not end.
        """
        self._control.close()
        self._warden.wait(_ENDING_S)

    # ------------------------------------------------------------ commands
    def environment(self) -> dict[str, str]:
        """What a command finds in its environment."""
        return {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            "PATH": search_path(),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            _TOOLS_FOLDER: str(self.root / "tools"),
        }

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """See `SandboxEnvironment.exec`; output is cut to its last part. ``user`` can only be the
        one that this process runs as."""
        _refuse_other_user(user)
        data = input.encode() if isinstance(input, str) else input or b""
        request = {
            "command": cmd,
            "folder": str(self._resolve(cwd or ".")),
            "environment": {**self.environment(), **(env or {})},
        }
        kept = (bytearray(), bytearray())
        with self._started(request) as running:
            for pipe in running[:3]:
                os.set_blocking(pipe.fileno(), False)
            with anyio.fail_after(timeout):
                async with anyio.create_task_group() as group:
                    group.start_soon(_feed, running.stdin, data)
                    group.start_soon(_collect, running.stdout, kept[0])
                    group.start_soon(_collect, running.stderr, kept[1])
                    await anyio.wait_readable(running.reply)
                    group.cancel_scope.cancel()  # a daemon may hold the pipes open for ever
                code = running.reply.recv(16)
            _drain(running.stdout, kept[0])
            _drain(running.stderr, kept[1])
        if not code:
            raise SandboxUnavailableError("the sandbox's processes are gone")
        out, err = (bytes(text).decode(errors="replace") for text in kept)
        return ExecResult(int(code) == 0, int(code), out, err)

    @contextmanager
    def _started(self, request: dict[str, Any]) -> Iterator[_Running]:
        """A command that runs until it ends or the block does."""
        ends = [os.pipe() for _ in range(3)]
        theirs = (ends[0][0], ends[1][1], ends[2][1])
        reply, other = socket.socketpair()
        running = _Running(FileIO(ends[0][1], "w"), FileIO(ends[1][0]), FileIO(ends[2][0]), reply)
        try:
            try:
                message = json.dumps(request).encode()
                socket.send_fds(self._control, [message], [*theirs, other.fileno()])
            except OSError as error:
                raise SandboxUnavailableError(f"the sandbox takes no command: {error}") from error
            finally:
                other.close()
                for descriptor in theirs:
                    os.close(descriptor)
            yield running
        finally:
            for end in running:
                end.close()

    # ------------------------------------------------------------ files
    def _resolve(self, file: str) -> Path:
        return self.root / "work" / file

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """See `SandboxEnvironment.write_file`. A command of the sandbox writes: what an agent may
        have left in the file's place leads this process nowhere.

        Raises:
            OSError: it cannot be written.
            TimeoutError: nor does that become known, as of a pipe that nobody reads.
        """
        command = ["sh", "-c", _WRITING, str(self._resolve(file))]
        done = await self.exec(command, contents, env={"LC_ALL": "C"}, timeout=_WRITING_S)
        if not done.success:
            said = done.stderr.strip()[-200:]
            full = os.strerror(errno.ENOSPC) in said
            raise OSError(errno.ENOSPC if full else errno.EACCES, said, file)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """See `SandboxEnvironment.read_file`."""
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        read = partial(read_regular, self._resolve(file), limit, self.root)
        data = await anyio.to_thread.run_sync(read)
        return data.decode() if text else data


def search_path() -> str:
    """Where commands are looked for: the caller's PATH without this package's own programs."""
    own = str(Path(sys.executable).parent)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder != own)


def read_regular(path: Path, limit: int, below: Path) -> bytes:
    """The content of a regular file. An agent may have left something else in its place: a pipe
    that would hold the reader up, or a link to what this process reads and the agent does not,
    its environment with the model's key for instance.

    Raises:
        OSError: it cannot be read, is no regular file, or does not lie in the folder ``below``.
        OutputLimitExceededError: it is longer than ``limit``.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(f"{path.name} is no regular file")
        # Asked of what has been opened: a name may come to mean something else at any time.
        if not Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(below.resolve()):
            raise PermissionError(f"{path.name} lies outside of the sandbox")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OutputLimitExceededError(f"{limit} bytes", None)
    return data


def _refuse_other_user(user: str | None) -> None:
    if user is None:
        return
    try:
        uid = int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        uid = -1
    if uid != os.geteuid():
        raise SandboxUserUnsupportedError(f"commands cannot run as {user!r} in a local sandbox")


# ---------------------------------------------------------------- pipes
class _Running(NamedTuple):
    """This side's ends of a command's pipes, and where its exit code is told."""

    stdin: FileIO
    stdout: FileIO
    stderr: FileIO
    reply: socket.socket


async def _feed(pipe: FileIO, data: bytes) -> None:
    """Writes all of it, or as much as the command wants, and closes the pipe."""
    try:
        while data:
            await anyio.wait_writable(pipe)
            data = data[pipe.write(data[: 1 << 16]) or 0 :]
    except BrokenPipeError:
        pass
    pipe.close()


async def _collect(pipe: FileIO, kept: bytearray) -> None:
    await anyio.wait_readable(pipe)
    while _drain(pipe, kept):
        await anyio.wait_readable(pipe)


def _drain(pipe: FileIO, kept: bytearray) -> bool:
    """Reads what is there; whether more may come."""
    while data := pipe.read(1 << 16):
        kept += data
        excess = len(kept) - SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        if excess > 0:
            del kept[:excess]
    return data is None
