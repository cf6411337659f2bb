"""Order in time: which elements of a stage are finished when another stage reads them."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Facts, Prover


@dataclass(frozen=True, slots=True)
class Writer:
    """Where a stage stands.

    Attributes:
        path: position at each level of nesting: comparing two paths compares text order.
        kept: how many of the enclosing loops, counted from inside, its left side keeps.
    """

    stage: core.Stage
    loops: tuple[core.Loop, ...]
    path: tuple[int, ...]
    kept: int

    def dimension(self, loop: core.Loop) -> int:
        """The dimension of the tensor that a kept loop's index selects."""
        return self.stage.lhs.index(loop.var)


def writers(program: core.Program) -> list[Writer]:
    """All stages in text order."""
    out: list[Writer] = []

    def visit(
        nodes: tuple[core.Node, ...], loops: tuple[core.Loop, ...], at: tuple[int, ...]
    ) -> None:
        for position, node in enumerate(nodes):
            if isinstance(node, core.Loop):
                visit(node.body, (*loops, node), (*at, position))
            else:
                kept = sum(loop.var in node.lhs for loop in loops)
                out.append(Writer(node, loops, (*at, position), kept))

    visit(program.body, (), ())
    return out


def common_loops(a: Writer, b: Writer) -> int:
    """How many loops, from outside, enclose both."""
    count = 0
    for x, y in zip(a.loops, b.loops, strict=False):
        if x is not y:
            break
        count += 1
    return count


def lost_loop(writer: Writer, reader: Writer) -> core.Loop | None:
    """The loop whose iteration the stage lives for, when the reader is outside of it."""
    transient = len(writer.loops) - writer.kept
    shared = common_loops(writer, reader)
    return writer.loops[shared] if shared < transient else None


def finished(prover: Prover, writer: Writer, reader: Writer, load: core.Load, facts: Facts) -> bool:
    """True when it is proved that the element read is complete.

    The loops that enclose both run through iterations in order. The element is complete when it
    belongs to an earlier iteration (some index earlier, those of the loops around it equal), or
    to this very one and its stage comes earlier in the text.
    """
    transient = len(writer.loops) - writer.kept
    for loop in writer.loops[transient : common_loops(writer, reader)]:
        index, now = load.indices[writer.dimension(loop)], core.VarRef(loop.var)
        if loop.kind == "each":
            earlier = False
        elif loop.reverse:
            earlier = prover.not_above(now, index, 1, facts)
        else:
            earlier = prover.not_above(index, now, 1, facts)
        if earlier:
            return True
        if loop.kind == "each" or loop.reverse:
            not_later = prover.not_above(now, index, 0, facts)
        else:
            not_later = prover.not_above(index, now, 0, facts)
        if not not_later:
            return False
        if loop.kind == "each" and not prover.not_above(index, now, 0, facts):
            return False
        # Not later: either earlier, and then complete, or of this iteration; go on with that.
        facts = prover.assume_at_least(facts, index, now)
        facts = prover.assume_at_least(facts, now, index)
    return writer.path < reader.path
