"""CUDA source to machine code by nvcc, and what its assembler says each kernel takes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.targets.toolkit import Toolkit

SOURCE = "kernel.cu"
CUBIN = "kernel.cubin"
SECONDS = 600
"""Longer than any limit on a build: whoever has one ends the process."""

# Divisions and roots are rounded correctly and small numbers kept. Products and sums may be fused,
# as everywhere: where they must not be, the source says so with an intrinsic.
_FLAGS = ("-cubin", "-O3", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=true", "-w")
_ENTRY = re.compile(r"Compiling entry function '(\w+)' for")


class CompilerRefused(Exception):
    """nvcc does not take a source; the text is what it printed."""


def compile_source(folder: Path, arch: str, toolkit: Toolkit) -> tuple[KernelBill, ...]:
    """Compiles ``SOURCE`` in a folder to ``CUBIN`` beside it; the bill of every kernel.

    Raises:
        CompilerRefused: it fails.
        OSError: it cannot be run.
    """
    words = [toolkit.nvcc, *_FLAGS, f"-arch={arch}", "-Xptxas", "-v", "-o", CUBIN, SOURCE]
    # Whoever ends this process ends it with its files: they are to lie where others are removed.
    places = {**os.environ, "TMPDIR": str(folder.resolve())}
    done = subprocess.run(
        words, cwd=folder, env=places, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode != 0:
        raise CompilerRefused(done.stderr.strip() or f"exit code {done.returncode}")
    return read_bills(done.stderr)


def read_bills(log: str) -> tuple[KernelBill, ...]:
    """What the assembler reports of each kernel (``ptxas -v``), in its order."""
    _, *parts = _ENTRY.split(log)
    names, reports = parts[::2], parts[1::2]
    return tuple(_bill(name, report) for name, report in zip(names, reports, strict=True))


def _bill(name: str, report: str) -> KernelBill:
    def number(pattern: str) -> int:
        found = re.search(pattern, report)
        return int(found.group(1)) if found else 0

    return KernelBill(
        name=name,
        registers=number(r"Used (\d+) registers"),
        shared_bytes=number(r"(\d+) bytes smem"),
        spilled_bytes=number(r"(\d+) bytes spill stores"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
    )
