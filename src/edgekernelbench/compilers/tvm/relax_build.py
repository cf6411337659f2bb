"""Whole models through TVM's own default pipeline: what ``relax.build`` gives, no schedule.

The library holds bytecode for Relax's virtual machine and one compiled function per group of
operators that the pipeline fused; `relax_execute` runs it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.targets.model import Target

if TYPE_CHECKING:
    from onnx import ModelProto

LIBRARY = "model.so"


class RelaxInterface(BaseModel):
    """Names of the arrays of ``main``: graph inputs, then initializers, in call order; results."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inputs: tuple[str, ...]
    params: tuple[str, ...]
    outputs: tuple[str, ...]


def build_model(
    model: ModelProto, fixed: Collection[str], target: Target, folder: Path
) -> RelaxInterface | str:
    """Builds into ``folder``; the interface, or why the compiler cannot do it.

    Args:
        fixed: initializers that become part of the program where they are small; the others are
            arguments.
    """
    from tvm import relax

    from edgekernelbench.compilers.tvm.build import tvm_target
    from edgekernelbench.compilers.tvm.lift.model import (
        import_model,
        last_line,
        legalize,
    )
    from edgekernelbench.compilers.tvm.lift.reductions import sums_in_f16

    try:
        imported = import_model(model, fixed)
        if sums_in_f16(legalize(imported.module)):
            return "the compiler's own lowering sums in f16"
    except Refused as reason:
        return str(reason)
    try:
        executable = relax.build(imported.module, tvm_target(target))
        executable.export_library(str(folder / LIBRARY))
    except Exception as error:  # its exceptions have no common base
        return f"not built: {last_line(error)}"
    return RelaxInterface(
        inputs=imported.inputs,
        params=tuple(imported.params),
        outputs=tuple(output.name for output in model.graph.output),
    )
