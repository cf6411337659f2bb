"""Walks the expression of a stage and checks every read and divisor with the facts that hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import NOTHING, Facts, Prover
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.verify.laws import Laws
from edgekernelbench.ir.verify.order import Writer
from edgekernelbench.ir.verify.reads import Site


class Visitor(Protocol):
    """What is done with the reads and divisors that a walk meets."""

    def load(self, load: core.Load, reader: Writer, site: Site) -> None: ...

    def divisor(self, expr: core.Binary, site: Site) -> None: ...


class Walk:
    """One stage. Without ``laws`` combiners are not tested.

    Reductions are computed in stages of their own, for all values of the axes around them: inside
    one, neither conditions nor bounds of outer axes from outside of it are facts. A let that a
    reduction uses is computed with it, so its reads are checked once more, without these facts.
    """

    def __init__(self, prover: Prover, reads: Visitor, laws: Laws | None, reader: Writer) -> None:
        self._prover = prover
        self._reads = reads
        self._laws = laws
        self._reader = reader
        self._conditional: dict[int, core.Expr] = {}

    def run(self) -> None:
        self.visit(self._reader.stage.expr, Site(NOTHING))

    def visit(self, expr: core.Expr, site: Site) -> None:
        match expr:
            case core.Load():
                for index in expr.indices:
                    self.visit(index, site)
                self._reads.load(expr, self._reader, site)
            case core.Select():
                self._select(expr, site)
            case core.Reduce():
                self._reduce(expr, site)
            case core.Block():
                for var, value in expr.lets:
                    self.visit(value, site)
                    self._prover.forms.bind_let(var, value)
                    if site.facts is not NOTHING:
                        self._conditional[var.uid] = value
                self.visit(expr.result, site)
            case _:
                for child in core.children(expr):
                    self.visit(child, _under_factor(expr, child, site))
                if isinstance(expr, core.Binary) and expr.op in ("fdiv", "mod"):
                    self._reads.divisor(expr, site)

    def _select(self, expr: core.Select, site: Site) -> None:
        self.visit(expr.cond, site)
        for branch, truth in ((expr.then, True), (expr.other, False)):
            if not isinstance(branch, core.Const | core.VarRef):
                self.visit(branch, replace(site, facts=self._assume(site.facts, expr.cond, truth)))

    def _assume(self, facts: Facts, cond: core.Expr, truth: bool) -> Facts:
        return self._prover.assume(facts, cond, truth)

    def _reduce(self, expr: core.Reduce, site: Site) -> None:
        dropped = (*site.dropped, *site.facts.path)
        facts, prover = NOTHING, self._prover
        if site.facts is not NOTHING:
            self._recheck_lets(expr, Site(NOTHING, dropped))
        for axis in expr.axes:
            self.visit(axis.lo, Site(facts, dropped))
            self.visit(axis.hi, Site(facts, dropped))
            for bound in _bounds(axis):
                facts = prover.assume(facts, bound)
        if expr.where is not None:
            self.visit(expr.where, Site(facts, dropped))
            facts = prover.assume(facts, expr.where)
        for item in expr.items:
            self.visit(item, Site(facts, dropped))
        if expr.combiner is not None:
            self._combiner(expr, expr.combiner)

    def _combiner(self, expr: core.Reduce, combiner: core.Combiner) -> None:
        for var, value in combiner.lets:
            self.visit(value, Site(NOTHING))
            self._prover.forms.bind_let(var, value)
        for result in combiner.results:
            self.visit(result, Site(NOTHING))
        if self._laws is not None:
            self._laws.check(expr)

    def _recheck_lets(self, expr: core.Expr, site: Site) -> None:
        """Lets bound under facts that do not hold where ``expr`` is computed."""
        for node in core.walk(expr):
            if isinstance(node, core.VarRef):
                value = self._conditional.pop(node.var.uid, None)
                if value is not None:
                    self._recheck_lets(value, site)
                    self.visit(value, site)


def _bounds(axis: core.ReduceAxis) -> tuple[core.Expr, ...]:
    """``lo <= var`` and ``var < hi``, unless the axis' range says so."""
    if axis.is_constant:
        return ()
    ref = core.VarRef(axis.var, axis.span)
    low = core.Binary("ge", ref, axis.lo, DType.BOOL, axis.span)
    return low, core.Binary("lt", ref, axis.hi, DType.BOOL, axis.span)


def _under_factor(expr: core.Expr, child: core.Expr, site: Site) -> Site:
    """Notes that a product has a comparison as its other factor."""
    if isinstance(expr, core.Binary) and expr.op == "mul":
        other = expr.left if child is expr.right else expr.right
        while isinstance(other, core.Cast):
            other = other.arg
        if other.dtype is DType.BOOL:
            return replace(site, factor=other)
    return site
