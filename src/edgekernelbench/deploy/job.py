"""What the compile child is asked for, and what runs in it.

The child gets the inputs as ``.npy`` files in its folder, and leaves the object, or the source of
one for a C compiler, the constants as
the kernel wants them, and the outputs that the compute layer yields on this machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.budget import Item
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.buildchild import Outcome, refusal, unfit_for
from edgekernelbench.evaluator.static import Interface, check_text
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering.nest import Module
from edgekernelbench.targets.model import Target

OBJECT, SOURCE, PROGRAM = "kernel.o", "kernel.c", "kernel.cl"
CONSTANTS = "constants.bin"
ALIGNMENT = 64


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Job(_Message):
    """``symbol``: of the function; ``cases``: how many sets of inputs lie in the folder."""

    text: str
    interface: Interface | None
    target: Target
    host: Target
    symbol: str
    cases: int


class Prepared(_Message):
    """An array that the kernel reads beside its inputs, and where it begins in `CONSTANTS`."""

    name: str
    offset: int


class Reply(_Message):
    """How it went; all but the first three are there when it is built."""

    outcome: Outcome
    message: str = ""
    diagnostics: tuple[dict[str, str | int | list[str] | list[int]], ...] = ()
    prepared: tuple[Prepared, ...] = ()
    budget: tuple[Item, ...] = ()
    llvm: int | None = None


def case_file(number: int, name: str) -> str:
    """Where an input of a case lies in the child's folder; case -1 are the constants."""
    return f"in{number}-{name}.npy"


def output_file(number: int, name: str) -> str:
    """Where the child leaves an output of a case."""
    return f"out{number}-{name}.npy"


# ---------------------------------------------------------------- in the child
def build(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Worker entry: payload is a `Job`, the reply a `Reply`."""
    reply = _build(Job.model_validate(payload), Path.cwd())
    wire.send(connection, reply.model_dump())


def _build(job: Job, folder: Path) -> Reply:
    checked = check_text(job.text, job.interface)
    if unfit := unfit_for(checked, job.target):
        return _refused(job, unfit[0], checked.diagnostics, unfit[1])
    assert checked.kernel is not None and checked.program is not None
    return _compile(job, checked.kernel, checked.program, folder, checked.diagnostics)


def _compile(
    job: Job, kernel: Kernel, program: Program, folder: Path, found: tuple[Diagnostic, ...]
) -> Reply:
    from edgekernelbench.compilers.budget import bill_of, over
    from edgekernelbench.compilers.manifest import MANIFEST, make_manifest
    from edgekernelbench.lowering.lower import lower

    if job.target.backend == "opencl":
        return _compile_for_device(job, kernel, program, folder, found)
    lowered = lower(kernel, program, job.target)
    found += lowered.diagnostics
    module = lowered.module
    if module is None:
        return _refused(job, refusal(lowered.diagnostics), found)
    failure = _write_code(module, program, job, folder)
    if failure is not None:
        return _refused(job, refusal((failure,)), (*found, failure))
    left = folder / OBJECT
    code = left if left.exists() else folder / SOURCE
    manifest = make_manifest(module, program, job.target, code, 0.0)
    (folder / MANIFEST).write_text(manifest.model_dump_json())
    budget = bill_of(manifest, job.target)
    if said := over(budget):
        return _refused(job, "over_budget", found, said)
    prepared = _prepare(module, program, job.host, folder)
    _run(replace(kernel, schedules=(), memories=()), program, job, folder)
    dicts = tuple(d.as_dict(job.text) for d in found)
    llvm = None if job.target.backend == "c" else _llvm()
    return Reply(outcome="built", diagnostics=dicts, prepared=prepared, budget=budget, llvm=llvm)


def _compile_for_device(
    job: Job, kernel: Kernel, program: Program, folder: Path, found: tuple[Diagnostic, ...]
) -> Reply:
    """Source and launches; the device itself is not asked, since it may be elsewhere."""
    from edgekernelbench.compilers.budget import bill_of, over
    from edgekernelbench.compilers.manifest import MANIFEST
    from edgekernelbench.compilers.tvm.compiler import TvmCompiler
    from edgekernelbench.deploy.opencl import packed_apart

    target = job.target.model_copy(update={"opencl": None})
    place = folder / "device"
    place.mkdir()
    built = TvmCompiler().compile(kernel, program, target, place)
    found += built.diagnostics
    if built.artifact is None:
        return _refused(job, refusal(built.diagnostics), found)
    manifest = built.artifact.manifest
    (place / manifest.library).rename(folder / PROGRAM)
    (place / MANIFEST).rename(folder / MANIFEST)
    budget = bill_of(manifest, target)
    if said := over(budget):
        return _refused(job, "over_budget", found, said)
    arrays = _load(program, folder, -1, const=True)
    for argument in manifest.arguments:
        if argument.name in manifest.tables:
            values = np.array(manifest.tables[argument.name], argument.dtype.numpy)
            arrays[argument.name] = values.reshape(argument.shape)
    prepared = _store({name: arrays[name] for name in packed_apart(manifest)}, folder)
    _run(replace(kernel, schedules=(), memories=()), program, job, folder)
    dicts = tuple(d.as_dict(job.text) for d in found)
    return Reply(outcome="built", diagnostics=dicts, prepared=prepared, budget=budget)


def _write_code(module: Module, program: Program, job: Job, folder: Path) -> Diagnostic | None:
    """Leaves the object, or the source of one in C; says what is wrong, if anything."""
    if job.target.backend == "c":
        from edgekernelbench.compilers.c.compiler import write_object as by_c

        return by_c(module, job.target, folder, program.name, job.symbol)
    from edgekernelbench.compilers.tvm.compiler import write_object

    return write_object(module, job.target, folder / OBJECT, job.symbol)


def _refused(job: Job, outcome: Outcome, found: tuple[Diagnostic, ...], message: str = "") -> Reply:
    dicts = tuple(d.as_dict(job.text) for d in found)
    return Reply(outcome=outcome, message=message, diagnostics=dicts)


def _llvm() -> int:
    from tvm.target import codegen

    major = codegen.llvm_version_major()
    if major is None:
        raise RuntimeError("TVM was built without LLVM")
    return int(major)


def _prepare(module: Module, program: Program, host: Target, folder: Path) -> tuple[Prepared, ...]:
    from edgekernelbench.compilers.tvm.compiler import pack_constants

    packing = folder / "packing"
    packing.mkdir()
    constants = _load(program, folder, -1, const=True)
    return _store(pack_constants(module, program, host, packing, constants), folder)


def _store(arrays: Mapping[str, np.ndarray], folder: Path) -> tuple[Prepared, ...]:
    found = []
    with (folder / CONSTANTS).open("wb") as out:
        for name, array in arrays.items():
            out.write(b"\0" * (-out.tell() % ALIGNMENT))
            found.append(Prepared(name=name, offset=out.tell()))
            out.write(array.tobytes())
    return tuple(found)


def _load(program: Program, folder: Path, number: int, const: bool) -> dict[str, np.ndarray]:
    names = [tensor.name for tensor in program.inputs if tensor.const == const]
    return {n: np.load(folder / case_file(number, n), allow_pickle=False) for n in names}


def _run(kernel: Kernel, program: Program, job: Job, folder: Path) -> None:
    """The compute layer by itself, on this machine: whether it is right is decided elsewhere."""
    from edgekernelbench.compilers.tvm.compiler import CompilerFailure, TvmCompiler
    from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty

    os.environ["TVM_NUM_THREADS"] = str(job.host.threads)
    place = folder / "plain"
    place.mkdir()
    built = TvmCompiler().compile(kernel, program, job.host, place)
    if built.artifact is None:
        raise CompilerFailure(built.diagnostics)
    loaded = LoadedKernel(place)
    constants = _load(program, folder, -1, const=True)
    for number in range(job.cases):
        inputs = _load(program, folder, number, const=False)
        outputs = {t.name: aligned_empty(t.shape, t.dtype) for t in program.outputs}
        loaded.bind({n: aligned_copy(a) for n, a in inputs.items()}, constants, outputs)()
        for name, array in outputs.items():
            np.save(folder / output_file(number, name), array)
