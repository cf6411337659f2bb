"""The TVM toolchain behind the `Compiler` protocol: CPUs, and devices of OpenCL and CUDA."""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.base import Artifact, BuildResult
from edgekernelbench.compilers.manifest import MANIFEST, make_manifest
from edgekernelbench.compilers.rules import INTERNAL, UNSUPPORTED_TARGET
from edgekernelbench.errors import UsageError
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.options import Options
from edgekernelbench.targets.model import Target

LIBRARY = "kernel.so"

_NAMES = ("main", "prepack")
"""Of the main function in the code, and of the one that packs constants."""


class TvmCompiler:
    """Lowers a kernel to its loop program, that to TIR, and that to a shared library, or to
    device kernels and a plan of launches."""

    name = "tvm"

    def supports(self, target: Target) -> bool:
        return target.backend in ("llvm", "opencl", "cuda")

    def compile(
        self, kernel: Kernel, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        """See `edgekernelbench.compilers.base.Compiler`."""
        if not self.supports(target):
            message = f"backend '{target.backend}' of target '{target.name}'"
            return BuildResult(None, (Diagnostic(UNSUPPORTED_TARGET, message),))
        from edgekernelbench.lowering.lower import lower

        started = time.perf_counter()
        lowered = lower(kernel, program, target)
        if lowered.module is None:
            return BuildResult(None, lowered.diagnostics)
        built = compile_module(lowered.module, program, target, folder, started)
        return BuildResult(built.artifact, (*lowered.diagnostics, *built.diagnostics))


def compile_module(
    module: nest.Module,
    program: Program,
    target: Target,
    folder: Path,
    started: float | None = None,
) -> BuildResult:
    """Builds a loop program into ``folder``: code and ``manifest.json``.

    Args:
        module: the loop program of ``program``.
        program: gives the interface: names, roles and values of tables.
        target: a target that `TvmCompiler` supports.
        folder: existing and empty.
        started: `time.perf_counter` when the compilation began, for the bill.

    Raises:
        OSError: if there is no linker, or the folder cannot be written.
        DeviceMissing, UsageError: if the device, or the compiler for it, is not there.
    """
    from edgekernelbench.compilers.cost import check_size

    started = time.perf_counter() if started is None else started
    target = module.options.applied(target)
    if too_large := check_size(module, target.vector_bits):
        return BuildResult(None, too_large)
    if target.backend != "llvm":
        return _compile_for_device(module, program, target, folder, started)
    try:
        _build_library(module, target, folder / LIBRARY)
    except OSError:  # no linker, no room: nothing that the kernel or the compiler could help
        raise
    except Exception as error:  # the nest is legal, so whatever the compiler raises is our bug
        return BuildResult(None, (internal_error(error),))
    manifest = make_manifest(
        module, program, target, folder / LIBRARY, time.perf_counter() - started
    )
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
    return BuildResult(Artifact(folder, manifest))


def _compile_for_device(
    module: nest.Module, program: Program, target: Target, folder: Path, started: float
) -> BuildResult:
    from edgekernelbench.compilers.tvm.device import build
    from edgekernelbench.compilers.tvm.device.bound import DeviceMissing
    from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

    functions = {"main": module.main, "prepack": module.prepack}
    names = {n: [t.name for t in f.params] for n, f in functions.items() if f is not None}
    try:
        emitted = emit_device_module(module, target.backend)
        built = build.build_device(emitted, names, target, folder)
    except (OSError, DeviceMissing, UsageError):  # nothing that the kernel could help
        raise
    except Exception as error:  # the nest is legal, so whatever the compiler raises is our bug
        return BuildResult(None, (internal_error(error),))
    if built.code is None:
        return BuildResult(None, built.diagnostics)
    seconds = time.perf_counter() - started
    manifest = make_manifest(module, program, target, folder / built.library, seconds)
    plans = built.code.plans
    shared = plans["main"].workspace_bytes  # after the compiler shared it
    facts = {"workspace_bytes": shared, "kernels": built.kernels}
    facts = manifest.facts.model_copy(update=facts)
    manifest = manifest.model_copy(update={"plans": plans, "facts": facts})
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
    return BuildResult(Artifact(folder, manifest))


def object_bytes(module: nest.Module, target: Target) -> int | Diagnostic | None:
    """Machine code of a loop program for a CPU that need not be this one's, in bytes: nothing is
    linked. None where the file's form does not tell; a diagnostic where the compiler fails."""
    from edgekernelbench.compilers.elf import code_bytes

    with tempfile.TemporaryDirectory(prefix="edgekernelbench-object-") as folder:
        file = Path(folder) / "kernel.o"
        try:
            failure = _write_object(module, target, file)
        except OSError as error:
            failure = internal_error(error)
        return code_bytes(file) if failure is None else failure


def write_object(module: nest.Module, target: Target, file: Path, symbol: str) -> Diagnostic | None:
    """Writes the machine code of the main function alone, as a relocatable object for a linker.

    Args:
        module: the loop program; it was lowered for ``target``.
        target: a CPU, which need not be this one.
        file: to be written.
        symbol: the function is called ``__tvm_ffi_SYMBOL``, of type ``TVMFFISafeCallType``.

    Returns:
        Why there is no code; None if all is well.
    """
    alone = replace(module, prepack=None, packed=())
    return _write_object(alone, target, file, (symbol, _NAMES[1]))


def _write_object(
    module: nest.Module, target: Target, file: Path, names: tuple[str, str] = _NAMES
) -> Diagnostic | None:
    from edgekernelbench.compilers.cost import check_size

    target = module.options.applied(target)
    if too_large := check_size(module, target.vector_bits):
        return too_large[0]
    try:
        _generate(module, target, names).write_to_file(str(file), "o")
    except OSError:  # no room: nothing that the kernel or the compiler could help
        raise
    except Exception as error:  # the nest is legal, so whatever the compiler raises is our bug
        return internal_error(error)
    return None


def pack_constants(
    module: nest.Module,
    program: Program,
    host: Target,
    folder: Path,
    constants: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """The arrays beside inputs and outputs that the main function reads: constants, packed ones,
    and tables. The packing runs here, whatever machine the module was lowered for.

    Args:
        module: the loop program.
        program: what ``module`` was lowered from.
        host: this machine.
        folder: existing and empty, for the code that packs.
        constants: the const inputs, in their declared dtypes and shapes.

    Raises:
        CompilerFailure: the code that packs cannot be built for this machine.
    """
    from edgekernelbench.compilers.tvm.execute import LoadedKernel

    nothing = nest.Function(module.main.name, module.main.params, nest.Seq(()))
    built = compile_module(replace(module, main=nothing, options=Options()), program, host, folder)
    if built.artifact is None:
        raise CompilerFailure(built.diagnostics)
    loaded = LoadedKernel(folder)
    loaded.set_constants(constants)
    return loaded.prepared()


class CompilerFailure(RuntimeError):
    """The compiler builds no code of ours for this machine: a bug. Has the diagnostics."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


def _build_library(module: nest.Module, target: Target, library: Path) -> None:
    from edgekernelbench.compilers.tvm import build

    build.link(_generate(module, target), library, target.mtriple)


def _generate(module: nest.Module, target: Target, names: tuple[str, str] = _NAMES) -> Any:
    """The LLVM module (a `tvm.runtime.Module`)."""
    from edgekernelbench.compilers.tvm import build, vectorizer
    from edgekernelbench.compilers.tvm.dots import required_features
    from edgekernelbench.compilers.tvm.emit import emit_module

    functions = (module.main, *(() if module.prepack is None else (module.prepack,)))
    options = (vectorizer.OFF,) if vectorizer.cuts_loop_variables(functions) else ()
    tvm_target = build.tvm_target(target, required_features(functions), options)
    lowered = build.lower(emit_module(module, names), tvm_target)
    return build.generate(lowered, tvm_target)


def internal_error(error: Exception) -> Diagnostic:
    """What the compiler raised, its last line as the message and the rest as notes."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    details = traceback.format_exception(error)[-1].strip()[-2000:]
    message = f"{type(error).__name__}: {last}"[:500]
    help = ("nothing is wrong with the kernel; a different schedule may avoid the failure",)
    return Diagnostic(INTERNAL, message, None, help, (details,))
