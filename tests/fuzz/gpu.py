"""Programs with random layers for GPUs: refused by an error of the layers, or right, in an executor
that watches every thread and on PoCL."""

from __future__ import annotations

import functools
import os
import random
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from edgekernelbench.ir import core
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.lowering import nest
from edgekernelbench.targets.model import Target
from tests.fuzz import draws
from tests.fuzz.compare import Truth, overflows
from tests.fuzz.draws import Arrays
from tests.fuzz.engine import Finding
from tests.fuzz.execute import refusal

_MOST_WATCHED = 1e4
"""Evaluations of a program that the executor is asked for: it is slow."""

_TOO_MANY_FOR_POCL = 3
"""Branches with barriers of which PoCL 3.0 runs only some, although all threads of a group take the
same ones: three `if (c) { ..; barrier(..); .. }` in a row, of conditions on the group's number, are
enough. Oclgrind runs the same source right."""


def layered(text: str, rng: random.Random) -> str:
    """The kernel with random layers, most often such as the lowering accepts."""
    from edgekernelbench.lowering.lower import lower
    from edgekernelbench.targets.gpus import opencl_target
    from tests.lowering.random_gpu_layers import random_gpu_layers

    if rng.random() < 0.9:  # PoCL has no halves
        text = re.sub(r"\bf16\b", "f32", text)
    kernel = parse(text).kernel
    program = None if kernel is None else elaborate(kernel).program
    if kernel is None or program is None:
        return text
    made = kernel
    for _ in range(rng.choice((1, 8, 24))):
        schedule, memory = random_gpu_layers(program, rng)
        made = with_layers(kernel, (schedule,), (memory,))
        try:
            if lower(made, program, opencl_target()).module is not None:
                break
        except Exception:  # the check of this very input will say so
            break
    return print_kernel(made)


def check_device_run(
    kernel: Kernel, program: core.Program, inputs: Arrays, tracked: bool = True
) -> str:
    """Outcome as `check_run` has it, with ``watched`` where the executor ran too.

    Raises:
        Finding: whatever is wrong.
    """
    from edgekernelbench.lowering.lower import lower

    target = _target()
    lowered = lower(kernel, program, target)
    if lowered.module is None:
        return f"refused {refusal(lowered.diagnostics)}"
    try:
        return _check(lowered.module, program, target, inputs, tracked)
    except Finding as found:
        defined = tracked or found.kind not in ("result differs", "loop program")
        if defined or not overflows(program, inputs):
            raise
        return "undefined: overflow"


@functools.cache
def _target() -> Target:
    """PoCL, or else what code can be generated for: then nothing runs but the executor."""
    from edgekernelbench.errors import UsageError
    from edgekernelbench.targets.gpus import opencl_target
    from edgekernelbench.targets.registry import find_target

    try:
        return find_target("opencl")
    except UsageError:
        return opencl_target()


def _check(
    module: nest.Module, program: core.Program, target: Target, inputs: Arrays, tracked: bool
) -> str:
    truth = Truth(program, inputs, tracked)
    watched = draws.work(program) <= _MOST_WATCHED
    if watched:
        truth.compare(_watched(module, program, inputs))
    halves = any(d.value in target.dtypes_missing for d in _dtypes(program))
    if halves or target.opencl is None:
        return "agrees, not run"
    with TemporaryDirectory(dir=_started(os.getpid())) as name:
        code, got = _on_device(module, program, target, inputs, Path(name))
    if code:
        return f"refused {code}"
    try:
        truth.compare(got)
    except Finding:
        if watched and _waiting_branches(module) >= _TOO_MANY_FOR_POCL:
            return "PoCL leaves out branches that wait"
        raise
    return "agrees"


def _waiting_branches(module: nest.Module) -> int:
    """Branches of conditions in which threads wait for each other, innermost ones."""
    bodies = [f.body for f in (module.main, module.prepack) if f is not None]
    conditions = [s for body in bodies for s in nest.statements(body) if isinstance(s, nest.If)]
    branches = [b for c in conditions for b in (c.then, c.other) if b is not None]
    return sum(_waits(branch) and not _waits_further_in(branch) for branch in branches)


def _waits(body: nest.Stmt) -> bool:
    return any(isinstance(inner, nest.Barrier) for inner in nest.statements(body))


def _waits_further_in(body: nest.Stmt) -> bool:
    return any(isinstance(s, nest.If) and _waits(s) for s in nest.statements(body))


def prepare() -> None:
    """Asks the drivers, in a process of their own, and makes the folder that all children use."""
    _target()
    _scratch()


@functools.cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="ekb-fuzz-")


@functools.cache
def _started(process: int) -> str:
    """A folder for this process. PoCL keeps its files where it was told to at first."""
    from edgekernelbench.targets.opencl import private_caches

    folder = Path(_scratch().name) / str(process)
    folder.mkdir()
    os.environ.update(private_caches(str(folder)))
    import pyopencl

    for platform in pyopencl.get_platforms():
        platform.get_devices()
    return str(folder)


def _dtypes(program: core.Program):
    yield from (t.dtype for t in (*program.inputs, *program.outputs))
    for _, stage in core.stages(program.body):
        yield stage.tensor.dtype
        yield from (node.dtype for node in core.walk(stage.expr))


def _watched(module: nest.Module, program: core.Program, inputs: Arrays) -> Arrays:
    """Raises: Finding: the loop program breaks its contract."""
    from tests.lowering.run_kernels import run_kernels
    from tests.lowering.run_nest import NestError

    tables = {table.tensor.name: table.array() for table in program.tables}
    outputs = {tensor.name for tensor in program.outputs}
    try:
        return run_kernels(module, {**inputs, **tables}, outputs)
    except NestError as error:
        raise Finding("loop program", str(error)) from error


def _on_device(
    module: nest.Module, program: core.Program, target: Target, inputs: Arrays, folder: Path
) -> tuple[str, Arrays]:
    """Outputs; or the code of the error where the compiler refuses."""
    from edgekernelbench.compilers.tvm.compiler import compile_module
    from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel

    assert target.opencl is not None
    built = compile_module(module, program, target, folder)
    if built.artifact is None:
        return refusal(built.diagnostics), {}
    return "", LoadedDeviceKernel(folder, target.opencl.choice).run_apart(inputs, inputs)
