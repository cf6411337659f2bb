"""The interpreter's entry."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret.compile import Compiler
from edgekernelbench.ir.interpret.depth import MAX_DEPTH, depth_of, room_for
from edgekernelbench.ir.interpret.frame import Frame, InterpretError
from edgekernelbench.ir.interpret.inputs import bind_inputs
from edgekernelbench.ir.interpret.numeric import Mode
from edgekernelbench.ir.interpret.run import Builder
from edgekernelbench.ir.interpret.storage import allocate, plan, stage_dtypes


def interpret(
    program: core.Program,
    inputs: Mapping[str, np.ndarray],
    mode: Mode = "f64",
    limit_s: float = float("inf"),
) -> dict[str, np.ndarray]:
    """Runs a verified program and returns its outputs by name.

    Integers are computed in their declared dtypes and wrap (also s32, whose overflow the language
    leaves undefined). NaN: ``min``, ``max`` and their reductions return NaN when any operand is
    NaN; ``argmax`` and ``argmin`` pass over NaN unless all elements are NaN. Float sums are
    added in no particular order.

    Args:
        inputs: one array for each declared input, of its shape and dtype. In mode ``f64`` a
            float input may also come as float64.
        mode: ``f64`` computes and stores floats in float64 whatever their declared dtype;
            ``declared`` computes each expression in its dtype and rounds stores to the tensor's.
        limit_s: seconds after which the run is given up, checked between pieces of work that
            take some milliseconds.

    Returns:
        Fresh arrays of the declared shapes: floats as float64 in mode ``f64``, all else in the
        declared dtypes.

    Raises:
        InterpretError: the inputs do not fit, or the program does what a verified one cannot
            (a read out of range, an integer division by zero), or takes longer than the limit.
    """
    if depth_of(program) > MAX_DEPTH:
        raise InterpretError(f"an expression is nested more than {MAX_DEPTH} deep")
    arrays = bind_inputs(program, inputs, mode)
    layout = plan(program)
    compiler = Compiler(mode, layout.storages)
    with room_for(program), np.errstate(all="ignore"):
        builder = Builder(compiler, layout)
        steps = [builder.node(node) for node in program.body]
        frame = Frame(len(compiler.slots), len(layout.storages))
        frame.deadline = monotonic() + limit_s
        for name, array in arrays.items():
            frame.keep(layout.storages[name].number, array)
        dtypes = stage_dtypes(program, mode)
        try:
            for step, defined, dead in zip(steps, layout.defined, layout.dead, strict=True):
                allocate(frame, layout, defined, dtypes)
                step(frame)
                for name in dead:
                    frame.keep(layout.storages[name].number, None)
        except MemoryError:
            raise InterpretError("the program needs more memory than there is") from None
    return {t.name: frame.store[layout.storages[t.name].number] for t in program.outputs}
