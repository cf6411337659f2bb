"""The CUDA compiler of this machine: where it is, and which architectures it knows."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.errors import UsageError

PASSED_ON = ("CUDA_HOME", "CUDA_PATH")
"""Variables that say where the toolkit is."""

_ASK_SECONDS = 60
GET = (
    "install the CUDA toolkit and put nvcc in the PATH or set CUDA_HOME, "
    "or pip install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-runtime nvidia-nvvm"
)


@dataclass(frozen=True, slots=True)
class Toolkit:
    """``version`` as nvcc says it; ``architectures`` it makes machine code for (``sm_90``)."""

    nvcc: str
    version: str
    architectures: tuple[str, ...]


def find_toolkit() -> Toolkit | None:
    """The first toolkit whose nvcc answers: ``$CUDA_HOME``, the PATH, the usual folder, packages
    of this Python."""
    return next((t for place in _places() if (t := _asked(str(place)))), None)


def toolkit_for(arch: str) -> Toolkit:
    """The toolkit, which must know an architecture.

    Raises:
        UsageError: there is none, or it does not.
    """
    toolkit = find_toolkit()
    if toolkit is None:
        raise UsageError("CUDA code is compiled by nvcc, which is missing", GET)
    if arch not in toolkit.architectures:
        known = ", ".join(toolkit.architectures)
        raise UsageError(
            f"nvcc {toolkit.version} does not know the architecture {arch}",
            f"it knows {known}: install a toolkit of the device's time, and set CUDA_HOME",
        )
    return toolkit


def _places() -> Iterator[Path]:
    for variable in PASSED_ON:
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / "nvcc"
    found = shutil.which("nvcc")
    if found is not None:
        yield Path(found)
    yield Path("/usr/local/cuda/bin/nvcc")
    spec = importlib.util.find_spec("nvidia")
    for folder in () if spec is None else (spec.submodule_search_locations or ()):
        yield from sorted(Path(folder).glob("*/bin/nvcc"), reverse=True)


@functools.cache
def _asked(nvcc: str) -> Toolkit | None:
    version = _answer(nvcc, "--version")
    named = re.search(r"release (\d+\.\d+)", version)
    known = re.findall(r"^sm_\w+$", _answer(nvcc, "--list-gpu-code"), re.MULTILINE)
    return Toolkit(nvcc, named.group(1), tuple(known)) if named and known else None


def _answer(nvcc: str, question: str) -> str:
    """What it prints; nothing where it cannot be run."""
    try:
        done = subprocess.run(
            [nvcc, question], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
