"""Which system calls a process may make, by a seccomp filter: no privilege needed.

The filter binds every thread and descendant, for good. Closed for all children: the network, other
processes (signals, their memory, limits and scheduling, by which a neighbour could be slowed
down), what outlives a process (System V memory, keys), mounts and namespaces. Closed unless a
child must: starting processes; binding threads to cores and connecting to local daemons.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass

Step = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Abi:
    """System call numbers of one architecture.

    Attributes:
        denied: to everybody.
        neighbours: slow other processes down, or leave something behind; denied to everybody, too.
        forks: start a process.
        lenient: bind a thread to cores, connect.
        own: may only be about the calling process (first argument 0).
    """

    audit: int
    seccomp: int
    socket: int
    clone: int
    clone3: int
    tgkill: int
    denied: tuple[int, ...]
    neighbours: tuple[int, ...]
    forks: tuple[int, ...]
    lenient: tuple[int, ...]
    own: tuple[int, ...]


_SAME_EVERYWHERE = (
    424, 434, 438,  # pidfd_send_signal, pidfd_open, pidfd_getfd
    440, 448, 425,  # process_madvise, process_mrelease, io_uring_setup
    428, 429, 430, 432, 442,  # open_tree, move_mount, fsopen, fsmount, mount_setattr
)  # fmt: skip
_ABIS = {
    "x86_64": _Abi(
        audit=0xC000003E, seccomp=317, socket=41, clone=56, clone3=435, tgkill=234,
        denied=(
            *_SAME_EVERYWHERE,
            62, 200, 129, 297,  # kill, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo
            101, 310, 311,  # ptrace, process_vm_readv, _writev
            272, 308, 161, 155, 165, 166,  # unshare, setns, chroot, pivot_root, mount, umount
            304,  # open_by_handle_at
            321, 298, 323,  # bpf, perf_event_open, userfaultfd
        ),
        neighbours=(
            141, 142, 144, 314, 251,  # setpriority, sched_setparam, _scheduler, _attr, ioprio_set
            256, 279,  # migrate_pages, move_pages
            29, 30, 64, 68, 240,  # shmget, shmat, semget, msgget, mq_open
            248, 249, 250,  # add_key, request_key, keyctl
        ),
        forks=(57, 58, 59, 322), lenient=(203, 42), own=(302,),
    ),
    "aarch64": _Abi(
        audit=0xC00000B7, seccomp=277, socket=198, clone=220, clone3=435, tgkill=131,
        denied=(
            *_SAME_EVERYWHERE,
            129, 130, 138, 240,
            117, 270, 271,
            97, 268, 51, 41, 40, 39, 265,
            280, 241, 282,
        ),
        neighbours=(
            140, 118, 119, 274, 30,
            238, 239,
            194, 196, 190, 186, 180,
            217, 218, 219,
        ),
        forks=(221, 281), lenient=(122, 203), own=(261,),
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
_DENY: Step = (_RET, 0, 0, _ERRNO | _EPERM)


def close_calls(processes: bool, lenient: bool) -> str | None:
    """Installs the filter. `PR_SET_NO_NEW_PRIVS` must have been set.

    Args:
        processes: leave it the right to start processes.
        lenient: leave it the right to bind threads to cores and to connect to local daemons.

    Returns:
        None when done, else why the system does not allow it.
    """
    abi = _ABIS.get(platform.machine())
    if abi is None:
        return f"no system call table for {platform.machine()}"
    return _installed(abi, _filter(abi, processes, lenient))


def close_neighbours() -> str | None:
    """Installs a filter for programs that do as they like but for one thing: they slow no other
    process down, limit none, and leave nothing in memory for a later one.

    `PR_SET_NO_NEW_PRIVS` must have been set.

    Returns:
        None when done, else why the system does not allow it.
    """
    abi = _ABIS.get(platform.machine())
    if abi is None:
        return f"no system call table for {platform.machine()}"
    return _installed(abi, _neighbours_filter(abi))


def _installed(abi: _Abi, steps: Iterator[Step]) -> str | None:
    try:
        _install(abi, list(steps))
    except OSError as error:
        return f"seccomp: {error.strerror}"
    return None


def _neighbours_filter(abi: _Abi) -> Iterator[Step]:
    yield from _numbers(abi)
    yield from _denied(abi.neighbours)
    bind_thread = abi.lenient[0]
    for number in (*abi.own, bind_thread):
        yield from _only(number, 0)
    yield (_RET, 0, 0, _ALLOW)


def _filter(abi: _Abi, processes: bool, lenient: bool) -> Iterator[Step]:
    """The BPF program: (code, jump if true, jump if false, operand) a step."""
    yield from _numbers(abi)
    yield from _denied(abi.denied + abi.neighbours)
    yield from _denied((() if processes else abi.forks) + (() if lenient else abi.lenient))
    yield from _only(abi.socket, _AF_UNIX)
    for number in abi.own:
        yield from _only(number, 0)
    if not processes:
        # clone3 hides its flags in memory; without it the C library falls back to clone.
        yield (_JEQ, 0, 1, abi.clone3)
        yield (_RET, 0, 0, _ERRNO | _ENOSYS)
        yield from _judged(abi.clone, (_JSET, 1, 0, _CLONE_THREAD))
        # abort() and raise() send signals to this process, which is all they may do.
        yield from _only(abi.tgkill, os.getpid())
    yield (_RET, 0, 0, _ALLOW)


def _numbers(abi: _Abi) -> Iterator[Step]:
    """Loads the number of the call, as this architecture counts."""
    yield (_LOAD, 0, 0, _ARCH)
    yield (_JEQ, 1, 0, abi.audit)
    yield _DENY  # a foreign calling convention would be numbered otherwise
    yield (_LOAD, 0, 0, _NR)
    yield (_JGE, 0, 1, _X32_CALLS)
    yield _DENY


def _denied(numbers: tuple[int, ...]) -> Iterator[Step]:
    for number in numbers:
        yield (_JEQ, 0, 1, number)
        yield _DENY


def _only(number: int, value: int) -> Iterator[Step]:
    """One call, denied unless its first argument is ``value``."""
    return _judged(number, (_JEQ, 1, 0, value))


def _judged(number: int, test: Step) -> Iterator[Step]:
    """One call, decided by a test of its first argument that skips one step if it passes."""
    yield (_JEQ, 0, 4, number)
    yield (_LOAD, 0, 0, _ARG0)
    yield test
    yield _DENY
    yield (_RET, 0, 0, _ALLOW)


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
