"""``place A, B in S.j0`` and ``inline A`` lines: what they refer to, and whether they can work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from edgekernelbench.ir.core import Loop
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.ir.words import did_you_mean
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.sequence import late_reads
from edgekernelbench.lowering.emit.order import Circular, body_order
from edgekernelbench.lowering.emit.tree import Tree
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.plan import Attach, Plan, StagePlan
from edgekernelbench.lowering.together import siblings

MAX_NESTED = 16


@dataclass(frozen=True, slots=True)
class Placement:
    """One stage of a `place` line, names resolved."""

    stage: str
    target: str
    loop: str
    span: Span


def nest_note(plan: StagePlan) -> str:
    """The nest of a stage as understood, on one line."""
    words = []
    for piece in plan.pieces:
        mark = "" if piece.kind == "serial" else f"{piece.kind} "
        step = "" if piece.last else f" by {piece.step}"
        words.append(f"{mark}{piece.name}{step}")
    if plan.scatter is not None:
        words.insert(plan.scatter.depth, f"scatter {plan.scatter.axis.name}")
    return f"loops of `{plan.stage.name}`: {', '.join(words) or 'none'}"


def resolve_loops(
    placements: Iterable[Placement],
    plans: Mapping[str, StagePlan],
    broken: Collection[str],
    graph: Graph,
    report: Report,
) -> dict[str, Attach]:
    """Finds the target loops; refuses what no arrangement could make work.

    ``broken`` stages have a `loops` line with errors: what their loops are is not known.
    """
    out: dict[str, Attach] = {}
    for place in placements:
        if graph.places[place.stage].body != graph.places[place.target].body:
            message = f"`{place.stage}` and `{place.target}` stand in different loop bodies"
            help = [f"place it in a stage of the same `seq` or `each` body as `{place.stage}`"]
            report.error(rules.NO_TARGET, message, place.span, help)
            continue
        if place.target in broken:
            continue
        depth = _find_loop(place, plans[place.target], report)
        if depth is not None:
            out[place.stage] = Attach(place.target, depth)
    _refuse_circles(out, placements, report)
    _refuse_depth(out, placements, report)
    return out


def _refuse_depth(
    attach: dict[str, Attach], placements: Iterable[Placement], report: Report
) -> None:
    """A stage in a loop of a stage in a loop of a stage ...: up to a fixed depth."""
    for place in placements:
        depth, name = 0, place.stage
        while name in attach:
            depth, name = depth + 1, attach[name].target
        if depth > MAX_NESTED:
            message = f"`{place.stage}` is placed {depth} deep"
            help = [f"place it in a loop of `{name}` instead"]
            report.error(rules.NESTED, message, place.span, help)


def find_loop(stage: str, loop: str, span: Span, target: StagePlan, report: Report) -> int | None:
    """The number of a loop of a stage, None after an error."""
    depth = target.piece_index(loop)
    if depth is None:
        names = [piece.name for piece in target.pieces]
        message = f"`{stage}` has no loop `{loop}`"
        known = ", ".join(names) or "none"
        close = did_you_mean(loop, names)
        pieces = [n for n in names if n.rstrip("0123456789") == loop]
        ways = [f"its loops are {known}"]
        if close or pieces:
            ways.insert(0, f"did you mean `{stage}.{close or pieces[0]}`?")
        report.error(rules.NO_TARGET, message, span, ways, [nest_note(target)])
    return depth


def _find_loop(place: Placement, target: StagePlan, report: Report) -> int | None:
    depth = find_loop(place.target, place.loop, place.span, target, report)
    names = [piece.name for piece in target.pieces]
    if depth is None:
        return None
    if target.scatter is not None:
        message = f"`{place.target}` is a scatter: nothing is computed or copied in its loops"
        help = [f"leave `{place.stage}` unplaced", f"or drop `scatter {target.scatter.axis.name}`"]
        report.error(rules.NO_TARGET, message, place.span, help, [nest_note(target)])
        return None
    if target.pieces[depth].kind == "vectorize":
        outer = names[depth - 1] if depth else None
        message = f"`{place.loop}` of `{place.target}` is vectorised: nothing can run inside it"
        help = [f"place it in `{place.target}.{outer}`"] if outer else []
        report.error(rules.NO_TARGET, message, place.span, help)
        return None
    kind = target.pieces[0].kind
    fused = [k for k, p in enumerate(target.pieces) if p.kind == kind in ("parallel", "block")]
    last = max(fused, default=depth)
    if depth < last:
        message = f"the {kind} loops of `{place.target}` run as one: `{place.loop}` is not alone"
        help = [f"place it in `{place.target}.{names[last]}`", f"or mark only `{place.loop}`"]
        report.error(rules.NO_TARGET, message, place.span, help)
        return None
    return depth


def _refuse_circles(
    attach: dict[str, Attach], placements: Iterable[Placement], report: Report
) -> None:
    """Reports each circle once, and drops its members."""
    spans = {place.stage: place.span for place in placements}
    for name in list(attach):
        seen = [name]
        while seen[-1] in attach and attach[seen[-1]].target not in seen:
            seen.append(attach[seen[-1]].target)
        if seen[-1] in attach and attach[seen[-1]].target == name:
            circle = " in ".join(f"`{n}`" for n in [*seen, name])
            help = [f"leave `{seen[-1]}` unplaced: it then has the outermost nest"]
            report.error(rules.CIRCULAR, f"placed in a circle: {circle}", spans[name], help)
            for member in seen:
                del attach[member]


def _feeding(tree: Tree, target: str, inside: set[str]) -> set[str]:
    """The stages of ``inside`` that the target or a stage that consumes it there reads, directly
    or through each other."""
    known = {*tree.group(target), *(name for name in inside if tree.consumes(target, name))}
    waiting = list(known)
    while waiting:
        new = (set(tree.graph.producers(waiting.pop())) & inside) - known
        known |= new
        waiting += new
    return known


@dataclass(slots=True)
class PlaceChecker:
    """Checks resolved placements against the dependences of the program."""

    plan: Plan
    spans: Mapping[str, Span]
    report: Report

    def run(self) -> None:
        tree = Tree.of(self.plan)
        for name in self.plan.attach:
            self._related(tree, name)
        if not self.report.has_errors:
            self._order(tree)
        if not self.report.has_errors:
            self._sequence(tree)

    def _related(self, tree: Tree, name: str) -> None:
        place = self.plan.attach[name]
        inside = {*tree.below(place.target, place.depth), *tree.group(place.target)}
        if self._consumes(tree, name):
            return
        if name not in _feeding(tree, place.target, inside):
            self._unrelated(tree, name, place)
        else:
            self._producer(tree, name, place, inside)

    def _consumes(self, tree: Tree, name: str) -> bool:
        """Whether the stage reads what it is placed in; what it reads of the loops around it, at
        any distance, must be complete there."""
        child = name
        while child in self.plan.attach:
            around = self.plan.attach[child]
            if tree.consumes(around.target, name):
                if tree.consumes(around.target, child):
                    self._consumer(around, name)
                else:
                    self._too_early(around.target, child, name)
            child = around.target
        return tree.consumes(self.plan.attach[name].target, name)

    def _too_early(self, target: str, child: str, name: str) -> None:
        message = f"`{name}` reads `{target}`, and is placed in `{child}`, which runs before it"
        help = [f"leave `{name}` unplaced", f"or place it in a loop of `{target}` itself"]
        self.report.error(rules.CIRCULAR, message, self.spans[name], help)

    def _consumer(self, place: Attach, name: str) -> None:
        target = self.plan.stages[place.target]
        first = target.first_reduction
        if target.split is not None:
            self._split(place, name, target)
            return
        if target.reduce is None or place.depth < first:
            return
        outside = [piece.name for piece in target.pieces[:first]]
        message = f"`{name}` reads `{place.target}`, whose reduction is not complete there"
        if outside:
            help = [f"a consumer goes outside the reduction: `{place.target}.{outside[-1]}`"]
        else:
            help = [f"put a spatial loop of `{place.target}` outside its reduction loops"]
        note = nest_note(target)
        self.report.error(rules.INSIDE_REDUCTION, message, self.spans[name], help, [note])

    def _split(self, place: Attach, name: str, target: StagePlan) -> None:
        assert target.split is not None
        message = f"`{name}` reads `{place.target}`, which is complete only behind its nest: "
        message += f"`{target.split.name}`, a reduction axis, is parallel"
        help = [f"leave `{name}` unplaced", f"or drop `parallel` from `{target.split.name}`"]
        note = nest_note(target)
        self.report.error(rules.INSIDE_REDUCTION, message, self.spans[name], help, [note])

    def _unrelated(self, tree: Tree, name: str, place: Attach) -> None:
        readers = tree.graph.readers(name)
        message = f"`{name}` neither feeds nor reads what runs in that loop of `{place.target}`"
        help = [f"place it in `{readers[0]}`, which reads it"] if readers else []
        self.report.error(rules.UNRELATED, message, self.spans[name], help)

    def _producer(self, tree: Tree, name: str, place: Attach, inside: set[str]) -> None:
        loop = self.plan.stages[place.target].pieces[place.depth].name
        here = f"{place.target}.{loop}"
        outside = [
            read.reader
            for read in tree.graph.reads[name]
            if read.current and read.reader not in inside
        ]
        if outside:
            readers = ", ".join(f"`{n}`" for n in dict.fromkeys(outside))
            message = f"{readers} reads `{name}` outside the loop `{here}`"
            help = [f"place {readers} there too", f"or leave `{name}` unplaced"]
            kin = siblings(tree.graph).get(place.target, ())
            apart = [n for n in kin if n in outside]
            if apart:
                names = ", ".join(f"`{n}`" for n in apart)
                help[0] = (
                    f"give {names} the loops and the place of `{place.target}`: one nest for all"
                )
            note = nest_note(self.plan.stages[place.target])
            self.report.error(rules.READERS, message, self.spans[name], help, [note])

    def _sequence(self, tree: Tree) -> None:
        for late in late_reads(self.plan, tree):
            names = (late.reader, late.source) if late.loop is None else (late.source, late.reader)
            spans = [self.spans[n] for n in names if n in self.spans]
            message = f"`{late.reader}` reads `{late.source}`, which is computed after it there"
            help = [
                f"place `{late.reader}` where `{late.source}` is complete: outside of the loops "
                f"of what `{late.source}` reads",
                f"or leave `{late.reader}` or `{late.source}` unplaced",
            ]
            if late.loop is not None:
                message = (
                    f"`{late.reader}` reads `{late.source}` in front of its loop `{late.loop}`, "
                    f"and `{late.source}` is computed after that"
                )
                help = self._further_out(late.reader, late.loop, late.source)
            self.report.error(rules.CIRCULAR, message, spans[0] if spans else None, help)

    def _further_out(self, reader: str, loop: str, source: str) -> list[str]:
        """Where a stage goes that is read in front of a loop."""
        nest = self.plan.stages[reader]
        outside = nest.pieces[: nest.piece_index(loop)]
        fit = outside and outside[-1].kind != "vectorize"
        ways = [f"place `{source}` in `{reader}.{outside[-1].name}`"] if fit else []
        return [*ways, f"{'or ' if fit else ''}leave `{source}` unplaced"]

    def _order(self, tree: Tree) -> None:
        bodies = [self.plan.graph.program.body]
        while bodies:
            nodes = bodies.pop()
            bodies += [node.body for node in nodes if isinstance(node, Loop)]
            try:
                body_order(nodes, tree)
            except Circular as circle:
                names = ", ".join(f"`{n}`" for n in circle.stages)
                placed = [n for n in self.plan.attach if tree.root(n) in circle.stages]
                span = self.spans[placed[0]] if placed else None
                message = f"each of {names} would have to run before another one of them"
                help = ["place the stages between producer and consumer there too"]
                self.report.error(rules.CIRCULAR, message, span, help)
