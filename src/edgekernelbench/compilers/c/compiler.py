"""The C toolchain behind the `Compiler` protocol: a source, and the system's C compiler."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from edgekernelbench.compilers.base import Artifact, BuildResult
from edgekernelbench.compilers.cost import check_size
from edgekernelbench.compilers.manifest import MANIFEST, make_manifest
from edgekernelbench.compilers.rules import INTERNAL, REJECTED, UNSUPPORTED_TARGET
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.targets.cc import CCompiler as Toolchain
from edgekernelbench.targets.cc import find_compiler, fitted, flags
from edgekernelbench.targets.model import Target

SOURCE, LIBRARY = "kernel.c", "kernel.so"


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
    from edgekernelbench.compilers.c.emit import source

    target = module.options.applied(target)
    if too_large := check_size(module, target.vector_bits):
        return BuildResult(None, too_large)
    try:
        text = source(module, program.name)
    except Exception as error:  # the nest is legal, so whatever is raised is our bug
        message = f"{type(error).__name__}: {error}"[:500]
        return BuildResult(None, (Diagnostic(INTERNAL, message),))
    (folder / SOURCE).write_text(text)
    command = (*toolchain.command, *flags(toolchain, target), "-shared", "-fPIC", "-o", LIBRARY,
               SOURCE, "-lm")  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        return BuildResult(None, (rejection(done.returncode, done.stderr, text, toolchain),))
    seconds = time.perf_counter() - started
    manifest = make_manifest(module, program, target, folder / LIBRARY, seconds)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
    return BuildResult(Artifact(folder, manifest))


_PLACE = re.compile(rf"^{re.escape(SOURCE)}:(\d+)(?::(\d+))?: (?:fatal )?error: (.*)$", re.MULTILINE)
_STAGES = re.compile(r"^\s*/\* (.+) \*/$")


def rejection(code: int, said: str, text: str, toolchain: Toolchain) -> Diagnostic:
    """What the compiler said, with the place in the generated source and the stage it is of."""
    lines = text.splitlines()
    found = _PLACE.search(said)
    if found is None:
        last = (said.strip().splitlines() or [f"it ended with status {code}"])[-1]
        return Diagnostic(REJECTED, f"{toolchain.command[0]}: {last}"[:500], None, (), (said[:2000],))
    number = int(found[1])
    stage = next((m[1] for k in range(min(number, len(lines)), 0, -1)
                  if (m := _STAGES.match(lines[k - 1]))), "")  # fmt: skip
    where = f"line {number} of {SOURCE}" + (f", in the nest of {stage}" if stage else "")
    excerpt = lines[number - 1].strip() if number <= len(lines) else ""
    help = ("nothing is wrong with the kernel; --target llvm, or another C compiler (CC), may do",)
    message = f"{where}: {found[3]}"[:500]
    return Diagnostic(REJECTED, message, None, help, (excerpt[:500], toolchain.identity))
