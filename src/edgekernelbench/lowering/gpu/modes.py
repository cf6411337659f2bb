"""How the loops of a program run on a GPU: which the host counts, and which a kernel.

A recurrence with little work a step runs in one block, whose threads share each step; one with
much work a step is counted by the host, which launches the kernels of each step. Iterations that
are independent get a thread each where they are narrow, else a block each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Loop, Node, Stage, Var
from edgekernelbench.lowering.access import work
from edgekernelbench.lowering.gpu.device import Level
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.nest import Mode
from edgekernelbench.lowering.plan import Nest, extents_of, own_axes

LIGHT_STEP = 400_000
"""Weighted operations of a stage in one step, up to which one block is faster than launches."""

NARROW = 32
"""Values of the widest stage, up to which an iteration is the work of one thread."""

HEAVY_ITERATION = 1 << 22


def loop_modes(
    nodes: Iterable[Node], level: Level = "host", stated: Mapping[str, Nest] | None = None
) -> dict[Var, Mode]:
    """The mode of each loop of a program.

    Args:
        stated: nests of the author's, by stage: blocks in a loop's body are launched by the host,
            threads share each iteration.
    """
    stated = stated or {}
    out: dict[Var, Mode] = {}
    for node in nodes:
        if isinstance(node, Loop):
            for loop in chain(node):
                out[loop.var] = _asked(node, level, stated) or _mode(node, level)
            last = chain(node)[-1]
            out |= loop_modes(last.body, inner_level(out[last.var], level), stated)
    return out


def inner_level(mode: Mode, level: Level) -> Level:
    """Where the body of a loop runs that stands at ``level``."""
    if mode == "threads":
        return "thread"
    return "block" if mode in ("block", "blocks") else level


def stage_levels(graph: Graph, modes: Mapping[Var, Mode]) -> dict[str, Level]:
    """Where each stage of a program runs."""
    out: dict[str, Level] = {}
    for name, place in graph.places.items():
        level: Level = "host"
        for loop in place.loops:
            level = inner_level(modes[loop.var], level)
        out[name] = level
    return out


def chain(loop: Loop) -> list[Loop]:
    """``each`` loops that hold nothing but the next one; they run as one."""
    out = [loop]
    while loop.kind == "each" and len(loop.body) == 1:
        inner = loop.body[0]
        if not isinstance(inner, Loop) or inner.kind != "each":
            break
        loop = inner
        out.append(loop)
    return out


def count_of(loop: Loop) -> int:
    return max(0, loop.hi - loop.lo)


def _asked(loop: Loop, level: Level, stated: Mapping[str, Nest]) -> Mode | None:
    """The mode that nests in the body ask for."""
    nests = [stated[stage.name] for _, stage in core.stages(loop.body) if stage.name in stated]
    kinds = {piece.kind for nest in nests for piece in nest.pieces}
    if not kinds & {"block", "thread"} or level == "thread":
        return None
    if level == "block":
        return "serial"
    if "block" in kinds:
        return "host"
    return "block" if loop.kind == "seq" else "blocks"


def _mode(loop: Loop, level: Level) -> Mode:
    body = chain(loop)[-1].body
    if level == "thread":
        return "serial"
    if loop.kind == "seq":
        return "serial" if level == "block" else _recurrence(body)
    if widest(body) <= NARROW:
        return "threads"
    if level == "block":
        return "serial"
    count = prod(count_of(one) for one in chain(loop))
    few = count < 16 and _effort(body) >= HEAVY_ITERATION
    return "host" if few else "blocks"


def _recurrence(body: tuple[Node, ...]) -> Mode:
    stages = sum(1 for _ in core.stages(body))
    return "block" if _effort(body) <= LIGHT_STEP * max(1, stages) else "host"


def widest(nodes: Iterable[Node]) -> int:
    """Values that the widest stage of a body could compute or read at once."""
    most = 1
    for node in nodes:
        if isinstance(node, Stage):
            most = max(most, prod(extents_of(node).values()))
        else:
            times = count_of(node) if node.kind == "each" else 1
            most = max(most, times * widest(node.body))
    return most


def results(nodes: Iterable[Node]) -> int:
    """Values that the widest stage of a body yields at once."""
    most = 1
    for node in nodes:
        if isinstance(node, Stage):
            most = max(most, prod(own_axes(node).values()))
        else:
            times = count_of(node) if node.kind == "each" else 1
            most = max(most, times * results(node.body))
    return most


def _effort(nodes: Iterable[Node]) -> int:
    """Weighted operations of one iteration of a body."""
    return sum(
        work(node) if isinstance(node, Stage) else count_of(node) * _effort(node.body)
        for node in nodes
    )
