"""Runs a kernel in Oclgrind: a process of its own, whose environment names the log.

``python -m tests.lowering.run_grind FILE [N | any]``: without the N-th barrier, if N is given;
``any``: whatever its results are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from edgekernelbench.compilers.tvm.compiler import compile_module
from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
from edgekernelbench.compilers.tvm.device.oclgrind import Report, reports, settings
from edgekernelbench.evaluator.checked import checker_device
from edgekernelbench.ir import core
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.gpu import device as gpu_device
from edgekernelbench.targets.gpus import opencl_target

from .support import compare, draw_inputs, load_text, must_lower


def watched(
    text: str, folder: Path, without: int | None = None, compared: bool = True
) -> tuple[Report, ...]:
    """What Oclgrind reports while a kernel runs. Its results must be right if it is whole, unless
    they are not ``compared``."""
    file, log = folder / "kernel.ekir", folder / "oclgrind.log"
    file.write_text(text, encoding="utf-8")
    gpu = opencl_target().gpu
    assert gpu is not None
    environment = {**os.environ, **settings(gpu, str(log))}
    del environment["OCLGRIND_CHECK_API"]  # the bindings ask for more than it knows
    command = [sys.executable, "-m", "tests.lowering.run_grind", str(file)]
    command += [] if without is None else [str(without)]
    command += [] if compared else ["any"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return reports(log.read_text(encoding="utf-8")) if log.exists() else ()


def without_barrier(number: int) -> Callable[[list[nest.Stmt], core.Var], list[nest.Stmt]]:
    """What places barriers, but for one."""
    place = gpu_device.place_barriers

    def placed(body: list[nest.Stmt], thread: core.Var) -> list[nest.Stmt]:
        seen = count()

        def pruned(body: nest.Stmt) -> nest.Stmt:
            match body:
                case nest.Barrier():
                    return nest.Seq(()) if next(seen) == number else body
                case nest.For():
                    inner = pruned(body.body)
                    return nest.For(body.var, body.lo, body.extent, body.kind, inner)
                case nest.Seq():
                    return nest.Seq(tuple(map(pruned, body.body)))
                case _:
                    return body

        return [pruned(statement) for statement in place(body, thread)]

    return placed


def main(file: str, *how: str) -> None:
    for number in (word for word in how if word != "any"):
        gpu_device.place_barriers = without_barrier(int(number))
    kernel, program = load_text(Path(file).read_text(encoding="utf-8"))
    module = must_lower(kernel, program, opencl_target()).module
    assert module is not None
    inputs = draw_inputs(program)
    folder = Path(file).parent
    built = compile_module(module, program, opencl_target(), folder)
    assert built.artifact is not None, built.diagnostics
    got = LoadedDeviceKernel(folder, checker_device()).run_apart(inputs, inputs)
    if not how:
        want = interpret(program, inputs, "declared")
        for tensor in program.outputs:
            compare(got[tensor.name], want[tensor.name], tensor.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
