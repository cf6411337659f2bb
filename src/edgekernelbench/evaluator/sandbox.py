"""What a child may do, set by the child itself before it touches anything of a candidate's.

Linux only, and without privilege. Limits of memory, time, files and cores come from ``setrlimit``,
system calls are closed by seccomp, files by Landlock, and a fork server has a network of its own
with nothing in it. What the system refuses is reported, never passed over.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.evaluator import landlock
from edgekernelbench.evaluator.seccomp import close_calls

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


class Limits(BaseModel):
    """What one child may use.

    Attributes:
        memory_bytes: address space beyond what the child starts with; None is unlimited.
        cpu_seconds: processor time of all its threads together; None is unlimited.
        file_bytes: size of any file it writes.
        open_files: descriptors.
        processes: whether it may start other processes (a compiler calls the linker).
        lenient: it runs no code of a candidate's on the host's processor, but libraries and drivers
            of others, which bind threads to cores and ask daemons.
        writes: whether it may leave files, in the job's folder and a temporary one of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    file_bytes: int = 256 << 20
    open_files: int = 256
    processes: bool = False
    lenient: bool = False
    writes: bool = False


class Isolation(BaseModel):
    """What is not closed to a child, each with the system's reason; None where it is closed.

    Attributes:
        calls: network, other processes and the rest of what `seccomp` closes.
        files: all but programs, libraries and the job's own (`view`).
        network: a network namespace of its own, beside the filter.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: str | None = None
    files: str | None = None
    network: str | None = None

    def of_network(self) -> str:
        """For a record."""
        if self.calls is not None:
            return self.calls
        return "isolated" if self.network is None else f"isolated by seccomp alone: {self.network}"

    def of_files(self) -> str:
        """For a record."""
        return "isolated" if self.files is None else self.files


def apply(limits: Limits) -> None:
    """Binds the calling process. The parent's death kills it, too.

    Raises:
        OSError: if the system refuses one of them.
    """
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # When the machine's memory runs out, this process goes first and not its server.
    Path("/proc/self/oom_score_adj").write_text("1000")
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    if limits.cpu_seconds is not None:
        _limit(resource.RLIMIT_CPU, limits.cpu_seconds)
    if limits.memory_bytes is not None:
        _limit(resource.RLIMIT_AS, address_space() + limits.memory_bytes)


def address_space() -> int:
    """Bytes of address space that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def prctl(option: int, value: int) -> None:
    """``prctl(2)`` with one argument.

    Raises:
        OSError: as the system call.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def become_reaper() -> None:
    """Orphaned descendants become children of this process instead of init's."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


class _Action(ctypes.Structure):
    """``struct sigaction`` of the C libraries of Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * (128 // ctypes.sizeof(ctypes.c_ulong))),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_SA_NOCLDSTOP = 1


def ignore_stops() -> None:
    """This process, which has a handler for SIGCHLD, is told of children that end and no more of
    those that are stopped and go on: it would wake up with them, and take the processor.

    Raises:
        OSError: as the system call.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    action = _Action()
    ok = libc.sigaction(signal.SIGCHLD, None, ctypes.byref(action)) == 0
    action.flags |= _SA_NOCLDSTOP
    if not ok or libc.sigaction(signal.SIGCHLD, ctypes.byref(action), None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


# ---------------------------------------------------------------- isolation
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def leave_network() -> str | None:
    """Moves this process, and all that it will start, into a network with nothing in it. It must
    have one thread only.

    Returns:
        None when done, else why the system does not allow it.
    """
    # What is refused half-way would leave this process without a user: a child tries it first.
    pid = os.fork()
    if pid == 0:
        try:
            _enter_empty_network()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 1)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code != 0:
        return f"network namespace: {os.strerror(code)}"
    _enter_empty_network()
    return None


def _enter_empty_network() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return  # a privileged user needs no namespace of users
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def isolate(
    limits: Limits,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    lists: Sequence[str] = (),
) -> tuple[str | None, str | None]:
    """Closes files and system calls for this process and all it starts, for good.

    Args:
        limits: what it may do.
        reads, writes, lists: see `landlock.restrict`.

    Returns:
        Why calls are not closed, and why files are not; None for what is.
    """
    files = None
    try:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        drop_capabilities()
        landlock.restrict(reads, writes, lists)
    except OSError as error:
        files = str(error.strerror)
    return close_calls(limits.processes, limits.lenient), files


_CAPABILITY_VERSION = 0x20080522
_KEPT = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: root's programs may lie in another user's folder."""


def drop_capabilities() -> None:
    """Root, also that of a namespace, keeps nothing but the right to open files.

    Raises:
        OSError: as the system calls.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    held = ctypes.create_string_buffer(24)
    ok = libc.capget(header, held) == 0
    effective, permitted = struct.unpack("=6I", held.raw)[:2]
    kept = struct.pack("=6I", effective & _KEPT, permitted & _KEPT, 0, 0, 0, 0)
    if not ok or libc.capset(header, kept) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"capabilities: {os.strerror(code)}")
