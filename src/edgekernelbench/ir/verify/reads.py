"""Findings about single reads and divisors, and how they are told."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Facts, Prover
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.verify import rules
from edgekernelbench.ir.verify.advice import argmax_notes, condition, earlier, ways
from edgekernelbench.ir.verify.order import Writer, finished, lost_loop
from edgekernelbench.ir.verify.sample import counterexample
from edgekernelbench.ir.verify.text import read, show


@dataclass(frozen=True, slots=True)
class Site:
    """A point inside a stage's expression.

    Attributes:
        facts: what holds here.
        dropped: conditions written around a reduction that this point is in. They do not hold
            when the reduction is computed.
        factor: a comparison that the expression around this point is multiplied with.
    """

    facts: Facts
    dropped: tuple[tuple[core.Expr, bool], ...] = ()
    factor: core.Expr | None = None


class Reads:
    """Checks reads and divisors of one program."""

    def __init__(self, prover: Prover, report: Report, writers: dict[str, Writer]) -> None:
        self._prover = prover
        self._report = report
        self._writers = writers

    # ------------------------------------------------------------ reads
    def load(self, load: core.Load, reader: Writer, site: Site) -> None:
        """The element exists, is in bounds, and finished."""
        writer = None
        if load.tensor.kind in ("stage", "output"):
            writer = self._writers.get(load.tensor.name)
            if writer is None:
                name = load.tensor.name
                self._report.error(rules.DEFINED, f"no stage defines `{name}`", load.span)
                return
            lost = lost_loop(writer, reader)
            if lost is not None:
                self._lost(load, writer, lost)
                return
            if not self._is_finished(load, writer, reader, site):
                return
        lows = _lows(load, writer)
        for position, (index, low) in enumerate(zip(load.indices, lows, strict=True)):
            self._index(load, position, index, low, site, writer)

    def _index(
        self,
        load: core.Load,
        position: int,
        index: core.Expr,
        low: int,
        site: Site,
        writer: Writer | None,
    ) -> None:
        high = load.tensor.shape[position] - 1
        if self._prover.in_range(index, low, high, site.facts):
            return
        if site.dropped and self._prover.in_range(index, low, high, self._with_dropped(site)):
            self._outside_condition(load, index, low, high, site)
            return
        culprit = self._prover.overflowing(index, site.facts)
        if culprit is not None:
            self._overflow(load, index, culprit)
            return
        text, name = show(index), load.tensor.name
        where = f" (dimension {position})" if len(load.indices) > 1 else ""
        message = f"`{text}` is not provably in {low}..{high}, the range of `{name}`{where}"
        found = counterexample(self._prover, index, low, high, site.facts)
        wrong = None if found is None else found[0]
        if found is not None:
            value, point = found
            message += f": it is {value} for {point}" if point else f": it is {value}"
        self._report.error(
            rules.OUT_OF_BOUNDS,
            message,
            load.span,
            ways(load, condition(index, low, high, wrong), writer),
            [*self._notes(site), *argmax_notes(index, self._writers)],
        )

    def _with_dropped(self, site: Site) -> Facts:
        facts = site.facts
        for cond, truth in site.dropped:
            facts = self._prover.assume(facts, cond, truth)
        return facts

    def _notes(self, site: Site) -> list[str]:
        notes = []
        if site.factor is not None:
            notes.append(f"the factor `({show(site.factor)})` is no guard: the read happens anyway")
        for cond in site.facts.unusable[:3]:
            notes.append(f"`{show(cond)}` says nothing here: its arithmetic may overflow")
        return notes

    def _outside_condition(
        self, load: core.Load, index: core.Expr, low: int, high: int, site: Site
    ) -> None:
        cond, truth = site.dropped[-1]
        text = show(cond) if truth else f"not ({show(cond)})"
        self._report.error(
            rules.OUTSIDE_CONDITION,
            f"`{show(index)}` is in {low}..{high} only where `{text}` holds, "
            "but the reduction around this read is computed also where it does not",
            load.span,
            [
                f"`pad({read(load)}, 0)`, with the value that leaves the reduction unchanged",
                "or put the condition into the reduction: `op[k: K where cond](...)`",
            ],
        )

    def _overflow(self, load: core.Load, index: core.Expr, culprit: core.Expr) -> None:
        dtype = culprit.dtype.value
        self._report.error(
            rules.OVERFLOW,
            f"`{show(culprit)}` may overflow {dtype}, so `{show(index)}` may be anything",
            load.span,
            [
                "clamp the data before computing with it, or compute in s64: `s64(a) * b`",
                "`edge(x[i + 1])` and `pad(x[i + 1], 0)` compute a sum without overflow",
            ],
        )

    # ------------------------------------------------------------ order
    def _lost(self, load: core.Load, writer: Writer, loop: core.Loop) -> None:
        name, index = load.tensor.name, loop.var.name
        axes = ", ".join(v.name for v in writer.stage.lhs)
        self._report.error(
            rules.LIFETIME,
            f"`{name}` lives for one iteration of `{loop.kind} {index}` and is read outside of it",
            load.span,
            [f"keep every iteration: `{name}[{index}{', ' if axes else ''}{axes}] = ...`"],
        )

    def _is_finished(self, load: core.Load, writer: Writer, reader: Writer, site: Site) -> bool:
        if finished(self._prover, writer, reader, load, site.facts):
            return True
        if site.dropped and finished(self._prover, writer, reader, load, self._with_dropped(site)):
            self._report.error(
                rules.OUTSIDE_CONDITION,
                f"`{read(load)}` is finished only under a condition outside the reduction "
                "around this read, and the reduction is computed also where it does not hold",
                load.span,
                [f"`pad({read(load)}, 0)`", "or put the condition into `where`"],
            )
            return False
        self._report.error(
            rules.NOT_FINISHED, self._why_unfinished(load, writer, reader), load.span,
            earlier(load, writer, self._later(load, writer, site)),
        )  # fmt: skip
        return False

    def _later(self, load: core.Load, writer: Writer, site: Site) -> core.Loop | None:
        """The upward loop of which a later iteration is read."""
        for loop in writer.loops:
            if loop.var in writer.stage.lhs and loop.kind == "seq" and not loop.reverse:
                now, index = core.VarRef(loop.var), load.indices[writer.dimension(loop)]
                if self._prover.not_above(now, index, 1, site.facts):
                    return loop
        return None

    def _why_unfinished(self, load: core.Load, writer: Writer, reader: Writer) -> str:
        text = read(load)
        if writer.stage is reader.stage:
            name = writer.stage.name
            if not writer.kept:
                return f"`{name}` reads itself, but keeps no iterations of a loop"
            return f"`{name}` reads itself, and `{text}` is not provably from an earlier iteration"
        if writer.path < reader.path:
            return f"`{text}` is not provably from this or an earlier iteration"
        return f"`{text}` is defined later in the text and not provably from an earlier iteration"

    # ------------------------------------------------------------ divisors
    def divisor(self, expr: core.Binary, site: Site) -> None:
        if self._prover.at_least(expr.right, 1, site.facts):
            return
        sign, text = ("//", "%")[expr.op == "mod"], show(expr.right)
        if isinstance(expr.right, core.Const):
            message, help = f"`{sign}` by {expr.right.value}", []
        else:
            message = f"`{text}` is not provably positive"
            high = expr.right.dtype.int_range[1]
            found = counterexample(self._prover, expr.right, 1, high, site.facts)
            if found is not None and found[1]:
                message += f": it is {found[0]} for {found[1]}"
            one = core.Const(1, expr.right.dtype)
            bounded = core.Binary("max", expr.right, one, expr.right.dtype)
            help = [f"`{show(replace(expr, right=bounded))}`"]
        self._report.error(rules.DIVISOR, message, expr.span, help, self._notes(site))


def _lows(load: core.Load, writer: Writer | None) -> list[int]:
    lows = [0] * len(load.indices)
    if writer is not None:
        for loop in writer.loops:
            if loop.var in writer.stage.lhs:
                lows[writer.dimension(loop)] = loop.lo
    return lows
