"""One program lowered, compiled and run between guards, against the interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.targets.model import Target
from tests.fuzz.compare import Truth, overflows
from tests.fuzz.draws import Arrays, checked_access_by_access
from tests.fuzz.engine import Finding
from tests.fuzz.guards import SURPLUS, guarded, guarded_build

_LAYOUTS = ((True, 0xA5), (False, 0x3C))
"""Where buffers lie between their guards, and what they hold at first."""


def check_run(
    kernel: Kernel, program: core.Program, target: Target, inputs: Arrays, tracked: bool = True
) -> str:
    """Lowers, compiles, runs and compares. Outcome: ``agrees``, ``refused CODE`` or
    ``undefined: overflow``.

    Args:
        tracked: see `Truth`. A program that is not may also overflow signed integers, whose
            value the language leaves undefined: then a difference is no fault.

    Raises:
        Finding: whatever is wrong.
    """
    from edgekernelbench.lowering.lower import lower

    lowered = lower(kernel, program, target)
    if lowered.module is None:
        return f"refused {refusal(lowered.diagnostics)}"
    with TemporaryDirectory(prefix="ekb-fuzz-") as name:
        try:
            return _check(lowered.module, program, target, inputs, tracked, Path(name))
        except Finding as found:
            defined = tracked or found.kind not in ("result differs", "loop program")
            if defined or not overflows(program, inputs):
                raise
            return "undefined: overflow"


def _check(
    module: nest.Module,
    program: core.Program,
    target: Target,
    inputs: Arrays,
    tracked: bool,
    folder: Path,
) -> str:
    if checked_access_by_access(program):
        check_accesses(module, program, inputs)
    code, results = compiled(module, program, target, inputs, folder)
    if code:
        return f"refused {code}"
    truth = Truth(program, inputs, tracked)
    for got in results:
        truth.compare(got)
    return "agrees"


def compiled(
    module: nest.Module, program: core.Program, target: Target, inputs: Arrays, folder: Path
) -> tuple[str, list[Arrays]]:
    """Outputs of the code as users get it, and of that in which the stack is guarded, too; or the
    code of the error where the compiler refuses.

    Raises:
        Finding: as `build` and `run_guarded`, or only the second build is refused.
    """
    if code := build(module, program, target, folder):
        return code, []
    (folder / "all").mkdir()
    with guarded_build():
        if code := build(module, program, target, folder / "all"):
            raise Finding(f"{code} only where all buffers are guarded")
    got = run_guarded(folder, program, inputs)
    return "", [got, run_guarded(folder / "all", program, inputs, SURPLUS)]


# ---------------------------------------------------------------- refusals
def refusal(diagnostics: Iterable[Diagnostic]) -> str:
    """Code of the first error.

    Raises:
        Finding: no error, one that is the compiler's own, or of the wrong kind.
    """
    errors = [d for d in diagnostics if d.severity == "error"]
    if not errors:
        raise Finding("refused without a reason")
    for error in errors:
        if error.rule.code == "E699" or error.rule.code[:2] not in ("E4", "E5", "E6"):
            told = f"{error.message} {' '.join(error.notes)}"[:1500]
            raise Finding(f"internal {error.rule.code}", told)
        if not error.message:
            raise Finding(f"{error.rule.code} says nothing")
    return min(error.rule.code for error in errors)


def build(module: nest.Module, program: core.Program, target: Target, folder: Path) -> str:
    """Compiles into ``folder``; the code of the error where it is refused, else nothing.

    Raises:
        Finding: as `refusal`.
    """
    from edgekernelbench.compilers.tvm.compiler import compile_module

    built = compile_module(module, program, target, folder)
    return "" if built.artifact is not None else refusal(built.diagnostics)


# ---------------------------------------------------------------- runs
def check_accesses(module: nest.Module, program: core.Program, inputs: Arrays) -> None:
    """The loop program in an executor that checks bounds, initialisation and races.

    Raises:
        Finding: the loop program breaks its contract.
    """
    from tests.lowering.run_nest import NestError, run_module

    tables = {table.tensor.name: table.array() for table in program.tables}
    outputs = {tensor.name for tensor in program.outputs}
    try:
        run_module(module, {**inputs, **tables}, outputs)
    except NestError as error:
        raise Finding("loop program", str(error)) from error


def run_guarded(folder: Path, program: core.Program, inputs: Arrays, surplus: int = 0) -> Arrays:
    """Outputs, when runs on buffers at either guard give the same ones.

    Raises:
        Finding: something beside a buffer, or an input, was written, or runs differ.
    """
    seen: list[Arrays] = []
    for at_end, fill in _LAYOUTS:
        seen += _run(folder, program, inputs, (at_end, fill, surplus))
    for other in seen[1:]:
        for name, first in seen[0].items():
            if not np.array_equal(first, other[name], equal_nan=first.dtype.kind == "f"):
                raise Finding("runs differ", name)
    return seen[0]


def _run(
    folder: Path, program: core.Program, inputs: Arrays, layout: tuple[bool, int, int]
) -> list[Arrays]:
    """Outputs of two calls on the same buffers, the outputs filled differently before each."""
    from edgekernelbench.compilers.tvm import execute

    with guarded(*layout) as guards:
        arrays = {name: execute.aligned_copy(array) for name, array in inputs.items()}
        given = dict(arrays)
        consts = {t.name: arrays.pop(t.name) for t in program.inputs if t.const}
        outputs = {t.name: guards.empty(t.shape, t.dtype) for t in program.outputs}
        kernel = execute.LoadedKernel(folder)
        guards.attach(folder / kernel.manifest.library)
        call = kernel.bind(arrays, consts, outputs)
        seen = []
        for fill in (layout[1], layout[1] ^ 0xFF):
            for out in outputs.values():
                out.reshape(-1).view(np.uint8)[...] = fill
            call()
            seen.append({name: out.copy() for name, out in outputs.items()})
        if damage := guards.damage():
            raise Finding("guard written", damage)
        for name, array in given.items():
            if array.tobytes() != inputs[name].tobytes():
                raise Finding("input written", name)
        return seen
