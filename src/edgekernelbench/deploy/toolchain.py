"""The C compilers of this machine, for the parts of a bundle that can be built beforehand."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from edgekernelbench.deploy.architecture import Architecture
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.opencl import loader_settings, private_caches

_SECONDS = 300


@dataclass(frozen=True, slots=True)
class CCompiler:
    """``command`` compiles and links for one architecture, ``archiver`` makes libraries."""

    command: tuple[str, ...]
    archiver: str
    version: str


def find_compiler(architecture: Architecture) -> CCompiler | None:
    """A C compiler for that machine, with its archiver; None if there is none."""
    wanted = (f"{architecture.triple}-gcc", f"{architecture.triple}-ar")
    candidates = [(("cc",), "ar"), (("gcc",), "ar")] if architecture.here else []
    for command, archiver in (*candidates, ((wanted[0],), wanted[1])):
        if which(command[0]) and which(archiver):
            said = _run((*command, "--version"), Path.cwd()).splitlines()
            return CCompiler(command, archiver, said[0] if said else command[0])
    return None


class LinkFailure(RuntimeError):
    """Machine code, wrapper and run time do not make a program: a bug of ours."""


def prebuild(
    compiler: CCompiler, folder: Path, kernel: str, constants: bool, flags: tuple[str, ...] = ()
) -> None:
    """Builds ``prebuilt/libKERNEL.a`` and the static program ``prebuilt/selftest`` of a bundle.

    Args:
        constants: whether it has any.
        flags: for the kernel's own source, where it is no machine code.

    Raises:
        UsageError: there is no static C library, so there is nothing that every device could run.
        LinkFailure: the parts do not fit together.
    """
    made = folder / "prebuilt"
    made.mkdir()
    c = (*compiler.command, "-std=gnu11", "-Wall", "-Iinclude", "-Isrc", "-O2")
    sources = [f"src/{kernel}.c", "src/ekb_runtime.c"]
    sources += [f"src/{kernel}_constants.S"] if constants else []
    objects = []
    for source in sources:
        objects.append(f"prebuilt/{Path(source).name}.o")
        _run((*c, "-c", source, "-o", objects[-1]), folder)
    code = f"lib/{kernel}.o"
    if flags:
        code = f"prebuilt/{kernel}_kernel.c.o"
        _run((*c, *flags, "-c", f"src/{kernel}_kernel.c", "-o", code), folder)
        objects.append(code)
    library = f"prebuilt/lib{kernel}.a"
    _run((compiler.archiver, "rcsD", library, *dict.fromkeys((*objects, code))), folder)
    tests = ("src/selftest.c", "src/golden.c")
    rest = (library, "-lm", "-pthread", "-Wl,--build-id=none", "-s", "-o", "prebuilt/selftest")
    try:
        _run((*c, *tests, "-static", *rest), folder)
    except UsageError as error:
        try:
            _run((*c, *tests, *rest), folder)
        except UsageError as other:
            raise LinkFailure(other.message) from other
        raise UsageError("there is no static C library", error.message) from error
    for name in objects:
        (folder / name).unlink()


def _run(command: tuple[str, ...], folder: Path) -> str:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False,
            env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{command[0]}: {error}", "see that it works") from error
    if done.returncode:
        said = done.stderr.strip()[-1000:] or "no message"
        raise UsageError(f"{shlex.join(command)}: {said}", "see that this compiler works")
    return done.stdout


@dataclass(frozen=True, slots=True)
class SelfTest:
    """How the self-test ended; ``log`` is what it printed."""

    passed: bool
    log: str


def run_selftest(folder: Path, architecture: Architecture, seconds: int = 600) -> SelfTest:
    """Runs a bundle's prebuilt program, in an emulator where this is another machine.

    Raises:
        UsageError: there is no such program, or no emulator, or no end to it.
    """
    program = folder / "prebuilt" / "selftest"
    if not program.exists():
        raise UsageError(
            "the self-test cannot be run: there is no prebuilt program",
            f"install {architecture.triple}-gcc (Debian: gcc-{architecture.triple})",
        )
    emulator: tuple[str, ...] = ()
    if not architecture.here:
        found = which(architecture.emulator)
        if found is None:
            raise UsageError(
                f"the self-test cannot be run: no {architecture.emulator}",
                "install it (Debian: qemu-user), or run `make selftest` on the device",
            )
        emulator = (found,)
    try:
        done = subprocess.run(
            (*emulator, "./prebuilt/selftest"), cwd=folder, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the self-test takes more than {seconds} s", "run it alone") from error
    return SelfTest(done.returncode == 0, done.stdout + done.stderr)


def run_on_device(folder: Path, target: Target, seconds: int = 600) -> SelfTest:
    """Builds a copy of an OpenCL bundle as its device would, and runs its self-test here.

    Raises:
        UsageError: the device is not here, a tool is missing, or there is no end to it.
    """
    device = target.opencl
    if device is None:
        raise UsageError(
            f"the self-test cannot be run: {target.name} is no device of this machine",
            "run `make selftest` where it is",
        )
    for tool in ("make", "cc"):
        if which(tool) is None:
            raise UsageError(f"the self-test cannot be run: no {tool}", "install gcc and make")
    if find_library("OpenCL") is None and "EKB_OPENCL_LIBRARY" not in os.environ:
        raise UsageError(
            "the self-test cannot be run: no libOpenCL.so.1",
            "install it (Debian: ocl-icd-libopencl1), or name one in EKB_OPENCL_LIBRARY",
        )
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-selftest-") as place:
        copy = Path(place) / "bundle"
        shutil.copytree(folder, copy)
        settings = {**loader_settings(), **private_caches(place)}
        settings["EKB_OPENCL_DEVICE"] = f"{device.platform}: {device.name}"
        try:
            done = subprocess.run(
                ("make", "-s", "selftest"), cwd=copy, capture_output=True, text=True,
                timeout=seconds, check=False, env={**os.environ, **settings},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise UsageError(
                f"the self-test takes more than {seconds} s", "run it alone"
            ) from error
    return SelfTest(done.returncode == 0, done.stdout + done.stderr)
