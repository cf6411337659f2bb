"""`prefetch T in S.loop ahead N` lines of a memory layer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from edgekernelbench.ir import surface
from edgekernelbench.ir.core import Load, walk
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.caches import TensorNames
from edgekernelbench.lowering.directives.places import find_loop, nest_note
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.plan import Ahead, Plan

MAX_AHEAD = 1 << 16
_PARTICIPLES = {"vectorize": "vectorised", "unroll": "unrolled"}


@dataclass(frozen=True, slots=True)
class Wish:
    """One tensor of a line, names resolved: ``tensor`` is what the stage reads, ``label`` what
    the author calls it."""

    stage: str
    tensor: str
    label: str
    loop: str
    ahead: int
    span: Span


def read_prefetches(
    memory: surface.MemoryLayer | None,
    names: TensorNames,
    packed: Collection[str],
    numbers: Numbers,
    report: Report,
) -> tuple[Wish, ...]:
    """The prefetches of a layer.

    Args:
        packed: inputs that are read through the stage ``T.packed``.
    """
    found: dict[tuple[str, str], Wish] = {}
    for line in memory.lines if memory else ():
        if not isinstance(line, surface.PrefetchLine):
            continue
        ahead = numbers.step(line.ahead)
        if ahead is not None and ahead > MAX_AHEAD:
            message = f"{ahead} iterations ahead"
            report.error(rules.NUMBER, message, line.ahead.span, [f"at most {MAX_AHEAD}"])
        for ref in line.tensors:
            name = f"{ref.name}.packed" if ref.name in packed else ref.name
            if names.read_by(line.target, ref, name) is None:
                continue
            key = (line.target.name, name)
            if key in found:
                message = f"`{key[0]}` prefetches `{ref.name}` twice"
                report.error(rules.REPEATED_CACHE, message, ref.span, ["keep one"])
            found[key] = Wish(*key, ref.name, line.loop, min(ahead or 1, MAX_AHEAD), ref.span)
    return tuple(found.values())


def resolve_prefetches(
    wishes: Iterable[Wish], plan: Plan, broken: Collection[str], report: Report
) -> Mapping[str, tuple[Ahead, ...]]:
    """Finds the loops; refuses what could not be fetched ahead.

    Args:
        broken: stages whose `loops` line has errors.
    """
    out: dict[str, tuple[Ahead, ...]] = {}
    tree = Tree.of(plan)
    for wish in wishes:
        if wish.stage in plan.stages and wish.stage not in broken:
            depth = _depth(wish, plan, report)
            if depth is not None and _is_known(wish, tree, plan.graph, report):
                ahead = Ahead(wish.tensor, depth, wish.ahead, wish.label, wish.span)
                leader = plan.together.get(wish.stage, wish.stage)
                out[leader] = (*out.get(leader, ()), ahead)
    return out


def _depth(wish: Wish, plan: Plan, report: Report) -> int | None:
    target = plan.stages[wish.stage]
    depth = find_loop(wish.stage, wish.loop, wish.span, target, report)
    if depth is None:
        return None
    piece = target.pieces[depth]
    if piece.kind == "serial" and depth < target.first_shared and target.scatter is None:
        return depth
    reason = f"`{wish.loop}` of `{wish.stage}` is {_PARTICIPLES.get(piece.kind, piece.kind)}"
    if piece.kind == "serial":
        reason = f"`{wish.stage}` is a scatter: its loops run over what lands, not what is read"
    message = f"{reason}: there is no later iteration to fetch for"
    serial = [p.name for p in target.pieces if p.kind == "serial"]
    help = [f"its serial loops are {', '.join(serial) or 'none'}"]
    report.error(rules.PREFETCH_LOOP, message, wish.span, help, [nest_note(target)])
    return None


def _is_known(wish: Wish, tree: Tree, graph: Graph, report: Report) -> bool:
    """Whether the addresses can be computed ahead of time."""
    if tree.homes.get(wish.tensor) is not None:
        message = f"`{wish.label}` is computed in the same nest, where it is needed"
        help = ["prefetch what it reads instead"]
        report.error(rules.PREFETCH_LOOP, message, wish.span, help)
        return False
    read = [x for x in loads(graph.stage(wish.stage).expr) if x.tensor.name == wish.tensor]
    inner = {
        node.tensor.name
        for load in read
        for index in load.indices
        for node in walk(index)
        if isinstance(node, Load) and node.tensor.name in graph.places
    }
    late = [n for n in sorted(inner) if _is_late(n, wish.stage, tree, graph)]
    if late:
        message = f"`{late[0]}` says which elements of `{wish.label}` are read, too late to tell"
        help = [f"leave `{late[0]}` unplaced, outside the loops of the program"]
        report.error(rules.PREFETCH_LOOP, message, wish.span, help)
    return not late


def _is_late(name: str, reader: str, tree: Tree, graph: Graph) -> bool:
    """Whether a stage is not yet complete when the nest of its reader begins."""
    if tree.homes.get(name) is not None or tree.root(name) == tree.root(reader):
        return True
    return bool(graph.places[name].loops)
