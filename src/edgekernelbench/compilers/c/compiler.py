"""The C toolchain behind the `Compiler` protocol: a source, and the system's C compiler."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from edgekernelbench.compilers.base import Artifact, BuildResult
from edgekernelbench.compilers.cost import check_size
from edgekernelbench.compilers.elf import code_bytes
from edgekernelbench.compilers.manifest import MANIFEST, make_manifest
from edgekernelbench.compilers.rules import INTERNAL, REJECTED, UNSUPPORTED_TARGET
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.targets.cc import CCompiler as Toolchain
from edgekernelbench.targets.cc import find_compiler, find_cross_compiler, fitted, flags
from edgekernelbench.targets.model import Target

SOURCE, LIBRARY, OBJECT = "kernel.c", "kernel.so", "kernel.o"


class CCompiler:
    """Lowers a kernel to its loop program, prints that as C, and has the system's compiler make a
    shared library of it."""

    name = "c"

    def supports(self, target: Target) -> bool:
        return target.backend == "c"

    def compile(
        self, kernel: Kernel, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        """See `edgekernelbench.compilers.base.Compiler`.

        Raises:
            UsageError: there is no C compiler.
            OSError: it cannot be started, or the folder cannot be written.
        """
        if not self.supports(target):
            message = f"backend '{target.backend}' of target '{target.name}'"
            return BuildResult(None, (Diagnostic(UNSUPPORTED_TARGET, message),))
        from edgekernelbench.lowering.lower import lower

        started = time.perf_counter()
        toolchain = find_compiler()
        target = fitted(target, toolchain)
        lowered = lower(kernel, program, target)
        if lowered.module is None:
            return BuildResult(None, lowered.diagnostics)
        built = compile_module(lowered.module, program, target, folder, toolchain, started)
        return BuildResult(built.artifact, (*lowered.diagnostics, *built.diagnostics))


def compile_module(
    module: nest.Module,
    program: Program,
    target: Target,
    folder: Path,
    toolchain: Toolchain,
    started: float,
) -> BuildResult:
    """Builds a loop program into ``folder``: source, library and ``manifest.json``."""
    target = module.options.applied(target)
    if refused := write_source(module, target, folder, program.name):
        return BuildResult(None, (refused,))
    made = ("-shared", "-fPIC", "-o", LIBRARY, SOURCE, "-lm")
    if rejected := _run(toolchain, target, folder, made):
        return BuildResult(None, (rejected,))
    seconds = time.perf_counter() - started
    manifest = make_manifest(module, program, target, folder / LIBRARY, seconds)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
    return BuildResult(Artifact(folder, manifest))


def write_source(
    module: nest.Module, target: Target, folder: Path, title: str, symbol: str = "main"
) -> Diagnostic | None:
    """Writes the source of a loop program into ``folder``; why there is none, if so.

    Args:
        title: the kernel's name.
        symbol: the main function is ``__tvm_ffi_SYMBOL``.
    """
    from edgekernelbench.compilers.c.source import source

    if too_large := check_size(module, target.vector_bits):
        return too_large[0]
    try:
        text = source(module, title, (symbol, "prepack"))
    except Exception as error:  # the nest is legal, so whatever is raised is our bug
        return Diagnostic(INTERNAL, f"{type(error).__name__}: {error}"[:500])
    (folder / SOURCE).write_text(text)
    return None


def write_object(
    module: nest.Module, target: Target, folder: Path, title: str, symbol: str
) -> Diagnostic | None:
    """Writes the source of the main function alone, and where a compiler for the target's machine
    is here its object too; why there is none, if so."""
    target = module.options.applied(target)
    alone = replace(module, prepack=None, packed=())
    if refused := write_source(alone, target, folder, title, symbol):
        return refused
    toolchain = find_compiler() if target.mtriple is None else find_cross_compiler(target)
    return toolchain and _run(toolchain, target, folder, ("-c", "-o", OBJECT, SOURCE))


def object_bytes(module: nest.Module, target: Target, title: str) -> int | Diagnostic | None:
    """Machine code of a loop program, in bytes; None where no compiler for its machine is here."""
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-object-") as name:
        folder = Path(name)
        failure = write_object(module, target, folder, title, "main")
        if failure is not None:
            return failure
        file = folder / OBJECT
        return code_bytes(file) if file.exists() else None


def _run(
    toolchain: Toolchain, target: Target, folder: Path, made: tuple[str, ...]
) -> Diagnostic | None:
    command = (*toolchain.command, *flags(toolchain.machine, target), *made)
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    if not done.returncode:
        return None
    text = (folder / SOURCE).read_text()
    return rejection(done.returncode, done.stderr, text, toolchain)


_PLACE = re.compile(
    rf"^{re.escape(SOURCE)}:(\d+)(?::(\d+))?: (?:fatal )?error: (.*)$", re.MULTILINE
)
_STAGES = re.compile(r"^\s+/\* (.+) \*/$")


def rejection(code: int, said: str, text: str, toolchain: Toolchain) -> Diagnostic:
    """What the compiler said, with the place in the generated source and the stage it is of."""
    lines = text.splitlines()
    found = _PLACE.search(said)
    if found is None:
        last = (said.strip().splitlines() or [f"it ended with status {code}"])[-1]
        return Diagnostic(
            REJECTED, f"{toolchain.command[0]}: {last}"[:500], None, (), (said[:2000],)
        )
    number = int(found[1])
    stage = next((m[1] for k in range(min(number, len(lines)), 0, -1)
                  if (m := _STAGES.match(lines[k - 1]))), "")  # fmt: skip
    where = f"line {number} of {SOURCE}" + (f", in the nest of {stage}" if stage else "")
    excerpt = lines[number - 1].strip() if number <= len(lines) else ""
    help = ("nothing is wrong with the kernel; --target llvm, or another C compiler (CC), may do",)
    message = f"{where}: {found[3]}"[:500]
    return Diagnostic(REJECTED, message, None, help, (excerpt[:500], toolchain.identity))
