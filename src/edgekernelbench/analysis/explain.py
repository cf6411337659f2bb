"""The static report of a kernel on a target: what it does, what it moves, what bounds it."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel, ConfigDict

from edgekernelbench.analysis.code import DeviceCode
from edgekernelbench.analysis.traffic import footprint_bytes, level_traffic
from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.ir.core import Program
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.facts import Facts, function_facts
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
            measured peaks; None where the peak was not measured.
        unmeasured: in words, which peak is missing and what to do about it; else empty.
        instructions: what the dot products of the nest are done with, ``name x lanes``, the most
            frequent in the text first.
        bound: which of the two is larger: ``compute`` or ``memory``.
        kernels: what each device kernel takes, where a compiler said so.
        not_compiled: why it did not.
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
    unmeasured: str = ""
    kernels: tuple[KernelBill, ...] = ()
    not_compiled: str = ""


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
    compute_us = memory_us = bound = None
    if peaks is not None:
        seconds = _arithmetic_seconds(facts, peaks)
        compute_us = None if seconds is None else 1e6 * seconds
        outer = levels[-1].bytes if levels else footprint_bytes(module.main)
        resident = footprint_bytes(module.main)
        memory_us = 1e6 * outer / peaks.bytes_per_s(int(resident))
        if compute_us is not None:
            bound = "compute" if compute_us >= memory_us else "memory"
    return Explanation(
        kernel=program.name,
        target=target.name,
        nest=module.nest,
        flops=facts.flops,
        io_bytes=io,
        footprint_bytes=footprint_bytes(module.main),
        levels=tuple(Level(name=v.name, capacity=v.capacity, bytes=v.bytes) for v in levels),
        packed_bytes=sum(tensor.bytes for tensor in module.packed),
        workspace_bytes=module.workspace_bytes,
        memory_limit_bytes=target.memory_bytes,
        operations_per_byte=facts.flops / max(1, io),
        instructions=_instructions(module.main.body),
        least_compute_us=compute_us,
        least_memory_us=memory_us,
        bound=bound,
        unmeasured=_unmeasured(target, peaks, compute_us),
        kernels=code.kernels,
        not_compiled=code.not_compiled,
    )


def _arithmetic_seconds(facts: Facts, peaks: Peaks) -> float | None:
    """What the operations take at the peaks; None where the peak of one kind was not measured."""
    if not facts.dots:
        return facts.flops / peaks.flops_f32
    if peaks.ops_bytes is None:
        return None
    return (facts.flops - facts.dots) / peaks.flops_f32 + facts.dots / peaks.ops_bytes


def _unmeasured(target: Target, peaks: Peaks | None, compute_us: float | None) -> str:
    if target.backend != "llvm":
        return f"no peaks of {target.name}: they are measured of CPUs only"
    if peaks is None:
        return "the peaks of this host are not measured: run `ekb devices probe`"
    if compute_us is None:
        return "the peak of dot products of bytes is not measured: run `ekb devices probe`"
    return ""


def _instructions(body: nest.Stmt) -> tuple[str, ...]:
    dots = (s for s in nest.statements(body) if isinstance(s, nest.Dot))
    found = Counter(f"{dot.instruction.name} x {dot.lanes}" for dot in dots)
    return tuple(name for name, _ in found.most_common())
