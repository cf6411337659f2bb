"""What a compiled loop program costs: operations of one call, bytes of its arrays."""

from __future__ import annotations

from edgekernelbench.compilers.base import StaticFacts
from edgekernelbench.ir.core import Program
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.facts import function_facts


def static_facts(
    module: nest.Module, program: Program, code_bytes: int | None, seconds: float
) -> StaticFacts:
    """The bill of a compiled loop program."""
    return StaticFacts(
        flops=function_facts(module.main).flops,
        io_bytes=sum(t.bytes for t in (*program.inputs, *program.outputs)),
        packed_bytes=sum(t.bytes for t in module.packed),
        workspace_bytes=module.workspace_bytes,
        code_bytes=code_bytes,
        compile_seconds=seconds,
        nest=module.nest,
    )
