"""The static report of a kernel on a target: what it does, what it moves, what bounds it."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel, ConfigDict

from edgekernelbench.analysis.code import DeviceCode
from edgekernelbench.analysis.roof import roof
from edgekernelbench.analysis.traffic import footprint_bytes, level_traffic
from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.compilers.budget import Item
from edgekernelbench.ir.core import Program
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.facts import function_facts
from edgekernelbench.lowering.nest import Module
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Peaks


class Level(BaseModel):
    """Traffic into one memory level in one call.

    Attributes:
        name: ``L1``, ``L2``, ... : what the level loads from the next one out.
        capacity: bytes it holds.
        bytes: estimated, see `analysis.traffic`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    capacity: int
    bytes: float


class Explanation(BaseModel):
    """Everything known of a kernel without running it. Bytes, operations, microseconds.

    Attributes:
        flops: arithmetic of one call; a multiply-add counts 2, ``max`` and ``min`` 1. Comparisons
            and selections count 0: most of them are borders, whose number the schedule decides.
        least_compute_us, least_memory_us: bounds by operations and by memory traffic, at the
            peaks; None where the peak is not known.
        roof_source: whose figures the peaks are, in words: ``measured``, ``of the vendor``.
        unmeasured: in words, which peak is missing and what to do about it; else empty.
        instructions: what the dot products of the nest are done with, ``name x lanes``, the most
            frequent in the text first.
        bound: which of the two is larger: ``compute`` or ``memory``.
        kernels: what each device kernel takes, where a compiler said so.
        not_compiled: why it did not.
        budget, over_budget: a line for each limit of the target, and what exceeds one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kernel: str
    target: str
    nest: str
    flops: float
    io_bytes: int
    footprint_bytes: float
    levels: tuple[Level, ...]
    packed_bytes: int
    workspace_bytes: int
    memory_limit_bytes: int
    operations_per_byte: float
    instructions: tuple[str, ...] = ()
    least_compute_us: float | None = None
    least_memory_us: float | None = None
    bound: str | None = None
    roof_source: str = ""
    unmeasured: str = ""
    kernels: tuple[KernelBill, ...] = ()
    not_compiled: str = ""
    code_bytes: int | None = None
    budget: tuple[Item, ...] = ()
    over_budget: str = ""


def explain(
    program: Program,
    module: Module,
    target: Target,
    peaks: Peaks | None,
    code: DeviceCode | None = None,
) -> Explanation:
    """Puts the static facts of a lowered kernel together.

    Args:
        peaks: of the target, to place the kernel on its roofline; None leaves that out.
        code: what a device's compiler makes of it.
    """
    code = code or DeviceCode()
    facts = function_facts(module.main)
    io = sum(tensor.bytes for tensor in (*program.inputs, *program.outputs))
    levels = level_traffic(module.main, target.cache_bytes)
    resident = footprint_bytes(module.main)
    outer = levels[-1].bytes if levels else resident
    bounds = roof(target, peaks, facts, outer, resident)
    bound = None
    if bounds.compute_s is not None and bounds.memory_s is not None:
        bound = "compute" if bounds.compute_s >= bounds.memory_s else "memory"
    return Explanation(
        kernel=program.name,
        target=target.name,
        nest=module.nest,
        flops=facts.flops,
        io_bytes=io,
        footprint_bytes=resident,
        levels=tuple(Level(name=v.name, capacity=v.capacity, bytes=v.bytes) for v in levels),
        packed_bytes=sum(tensor.bytes for tensor in module.packed),
        workspace_bytes=module.workspace_bytes,
        memory_limit_bytes=target.memory_bytes,
        operations_per_byte=facts.flops / max(1, io),
        instructions=_instructions(module.main.body),
        least_compute_us=None if bounds.compute_s is None else 1e6 * bounds.compute_s,
        least_memory_us=None if bounds.memory_s is None else 1e6 * bounds.memory_s,
        bound=bound,
        roof_source=bounds.source,
        unmeasured=bounds.missing,
        kernels=code.kernels,
        not_compiled=code.not_compiled,
        code_bytes=code.code_bytes,
        budget=code.budget,
        over_budget=code.over_budget,
    )


def _instructions(body: nest.Stmt) -> tuple[str, ...]:
    dots = (s for s in nest.statements(body) if isinstance(s, nest.Dot))
    found = Counter(f"{dot.instruction.name} x {dot.lanes}" for dot in dots)
    return tuple(name for name, _ in found.most_common())
