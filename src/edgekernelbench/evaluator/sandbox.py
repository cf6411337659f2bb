"""What a child may do, set by the child itself before it touches anything of a candidate's.

Linux only. Limits of memory, time, files and cores come from ``setrlimit``; network, new
processes and signals to others are closed by a seccomp filter, which needs no privilege and
binds every thread and descendant. What the system refuses is reported, never passed over.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


class Limits(BaseModel):
    """What one child may use.

    Attributes:
        memory_bytes: address space beyond what the child starts with; None is unlimited.
        cpu_seconds: processor time of all its threads together; None is unlimited.
        file_bytes: size of any file it writes.
        open_files: descriptors.
        processes: whether it may start other processes (a compiler calls the linker).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    file_bytes: int = 256 << 20
    open_files: int = 256
    processes: bool = False


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


# ---------------------------------------------------------------- seccomp
@dataclass(frozen=True, slots=True)
class _Abi:
    """System call numbers of one architecture; -1 where it has none."""

    audit: int
    seccomp: int
    socket: int
    clone: int
    clone3: int
    tgkill: int
    denied: tuple[int, ...]
    forks: tuple[int, ...]


# denied: kill, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo, ptrace, process_vm_writev,
# pidfd_send_signal, pidfd_open, unshare, setns, mount, bpf, perf_event_open, keyctl, io_uring_setup
_ABIS = {
    "x86_64": _Abi(
        audit=0xC000003E, seccomp=317, socket=41, clone=56, clone3=435, tgkill=234,
        denied=(62, 200, 129, 297, 101, 311, 424, 434, 272, 308, 165, 321, 298, 250, 425),
        forks=(57, 58, 59, 322),
    ),
    "aarch64": _Abi(
        audit=0xC00000B7, seccomp=277, socket=198, clone=220, clone3=435, tgkill=131,
        denied=(129, 130, 138, 240, 117, 271, 424, 434, 97, 268, 40, 280, 241, 219, 425),
        forks=(221, 281),
    ),
}  # fmt: skip

_EPERM, _ENOSYS = 1, 38
_AF_UNIX = 1
_CLONE_THREAD = 0x00010000
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_X32_CALLS = 0x40000000
_NR, _ARCH, _ARG0 = 0, 4, 16


def isolate(processes: bool) -> str | None:
    """Closes network and signals to others for this process and all it starts, for good.

    Args:
        processes: leave it the right to start processes.

    Returns:
        None when done, else why the system does not allow it.
    """
    abi = _ABIS.get(platform.machine())
    if abi is None:
        return f"no system call table for {platform.machine()}"
    try:
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _install(abi, _filter(abi, processes))
    except OSError as error:
        return f"seccomp: {error.strerror}"
    return None


def _filter(abi: _Abi, processes: bool) -> list[tuple[int, int, int, int]]:
    """The BPF program: (code, jump if true, jump if false, operand) a step."""
    deny = (_RET, 0, 0, _ERRNO | _EPERM)
    steps = [
        (_LOAD, 0, 0, _ARCH),
        (_JEQ, 1, 0, abi.audit),
        deny,  # a foreign calling convention would be numbered otherwise
        (_LOAD, 0, 0, _NR),
        (_JGE, 0, 1, _X32_CALLS),
        deny,
    ]
    forbidden = abi.denied + (() if processes else abi.forks)
    for number in forbidden:
        steps += [(_JEQ, 0, 1, number), deny]
    steps += [
        (_JEQ, 0, 4, abi.socket),
        (_LOAD, 0, 0, _ARG0),
        (_JEQ, 1, 0, _AF_UNIX),
        deny,
        (_RET, 0, 0, _ALLOW),
    ]
    if not processes:
        # clone3 hides its flags in memory; without it the C library falls back to clone.
        steps += [
            (_JEQ, 0, 1, abi.clone3),
            (_RET, 0, 0, _ERRNO | _ENOSYS),
            (_JEQ, 0, 4, abi.clone),
            (_LOAD, 0, 0, _ARG0),
            (_JSET, 1, 0, _CLONE_THREAD),
            deny,
            (_RET, 0, 0, _ALLOW),
            # abort() and raise() send signals to this process, which is all they may do.
            (_JEQ, 0, 3, abi.tgkill),
            (_LOAD, 0, 0, _ARG0),
            (_JEQ, 1, 0, os.getpid()),
            deny,
        ]
    steps.append((_RET, 0, 0, _ALLOW))
    return steps


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _install(abi: _Abi, steps: list[tuple[int, int, int, int]]) -> None:
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    program = _Program(len(steps), code)
    libc = ctypes.CDLL(None, use_errno=True)
    # SPEC_ALLOW: without it some kernels slow a filtered process down, which would be timed.
    set_filter, spec_allow = 1, 4
    if libc.syscall(abi.seccomp, set_filter, spec_allow, ctypes.byref(program)) != 0:
        code_ = ctypes.get_errno()
        raise OSError(code_, os.strerror(code_))
