"""Where the threads of a block wait for each other.

A kernel is a sequence of regions, in each of which every thread works by itself, under loops and
branches that all threads take alike. Between two regions stands a barrier when one touches what
the other writes. Buffers count as a whole: that two regions touch different elements is not known
here, but for what one stage writes. In a loop a region also follows those of the iteration before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Var
from edgekernelbench.lowering.expr.rewrite import free_vars
from edgekernelbench.lowering.nest import (
    Alloc,
    Atomic,
    Barrier,
    For,
    If,
    LetValue,
    Matrices,
    Packed,
    Region,
    Seq,
    Stmt,
    Store,
    statements,
)

_AHEAD = " ahead"


@dataclass(frozen=True, slots=True)
class Touched:
    """Buffers that threads have read and written since the last barrier, and for what stage."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[tuple[str, str]] = frozenset()

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.reads | other.reads, self.writes | other.writes)

    def turned(self, doubled: frozenset[str]) -> Touched:
        """The same with the halves of double buffers in each other's roles."""

        def other(name: str) -> str:
            return _other_half(name) if name.removesuffix(_AHEAD) in doubled else name

        return Touched(
            frozenset(other(name) for name in self.reads),
            frozenset((other(name), stage) for name, stage in self.writes),
        )

    def clashes(self, later: Touched) -> bool:
        mine, theirs = ({name for name, _ in t.writes} for t in (self, later))
        if mine & later.reads or self.reads & theirs:
            return True
        return any(a == b and s != t for a, s in self.writes for b, t in later.writes)


def place_barriers(body: list[Stmt], thread: Var) -> list[Stmt]:
    """The body of a kernel with the barriers that it needs.

    Args:
        thread: the number of a thread, which nothing around a barrier may depend on.
    """
    private = {s.tensor.name for s in _all(body) if isinstance(s, Alloc) and s.scope == "local"}
    doubled = (s.ahead for s in _all(body) if isinstance(s, Region))
    placer = _Placer(frozenset(private), {thread}, frozenset[str]().union(*doubled))
    out, _ = placer.run(body, Touched())
    return out


def _all(body: list[Stmt]) -> Iterator[Stmt]:
    for statement in body:
        yield from statements(statement)


@dataclass(slots=True)
class _Placer:
    """``private``: buffers that each thread has its own of. ``own``: variables that differ from
    thread to thread. ``doubled``: buffers with halves that take turns."""

    private: frozenset[str]
    own: set[Var]
    doubled: frozenset[str]

    def run(self, body: list[Stmt], before: Touched) -> tuple[list[Stmt], Touched]:
        """The statements with barriers, and what is touched behind them."""
        out: list[Stmt] = []
        for statement in body:
            if not _has_regions(statement):
                before = self._leaf(statement, before, out)
                continue
            match statement:
                case Barrier():
                    out.append(statement)
                    before = Touched()
                case For():
                    before = self._loop(statement, before, out)
                case If():
                    before = self._branch(statement, before, out)
                case Seq():
                    inner, before = self.run(list(statement.body), before)
                    out.append(Seq(tuple(inner)))
                case _:
                    raise AssertionError("only loops, branches and sequences hold regions")
        return out, before

    def _leaf(self, statement: Stmt, before: Touched, out: list[Stmt]) -> Touched:
        here = self._touched(statement)
        if before.clashes(here):
            out.append(Barrier())
            before = Touched()
        if isinstance(statement, LetValue) and free_vars(statement.value) & self.own:
            self.own.add(statement.var)
        out.append(Seq(statement.body) if isinstance(statement, Region) else statement)
        return before | here

    def _loop(self, loop: For, before: Touched, out: list[Stmt]) -> Touched:
        self._uniform(loop.lo, loop.extent)
        before = self._reading(before, out, loop.lo, loop.extent)
        body, after = self._repeated(loop.body, before)
        fresh, behind = self._repeated(loop.body, Touched())
        if _barriers(fresh) < _barriers(body):  # one in front of the loop saves one in it
            out.append(Barrier())
            body, after = fresh, behind
        out.append(For(loop.var, loop.lo, loop.extent, loop.kind, Seq(tuple(body))))
        return after

    def _repeated(self, body: Stmt, before: Touched) -> tuple[list[Stmt], Touched]:
        """The body of a loop, and what is touched behind the loop."""
        while True:  # until nothing more comes round from the end of the body to its head
            out, after = self.run([body], before)
            again = after.turned(self.doubled)  # halves change roles from turn to turn
            if before | again == before:
                return out, before | before.turned(self.doubled)
            before |= again

    def _branch(self, branch: If, before: Touched, out: list[Stmt]) -> Touched:
        self._uniform(branch.cond)
        before = self._reading(before, out, branch.cond)
        then, after = self.run([branch.then], before)
        other, otherwise = None, before
        if branch.other is not None:
            statements, otherwise = self.run([branch.other], before)
            other = Seq(tuple(statements))
        out.append(If(branch.cond, Seq(tuple(then)), other))
        return after | otherwise

    def _reading(self, before: Touched, out: list[Stmt], *exprs: Expr) -> Touched:
        here = Touched(frozenset(n for e in exprs for n in self._loads(e)))
        if before.clashes(here):
            out.append(Barrier())
            before = Touched()
        return before | here

    def _uniform(self, *exprs: Expr) -> None:
        """All threads come to a barrier equally often: what is around it is the same for all."""
        for expr in exprs:
            assert not free_vars(expr) & self.own, "a barrier that not all threads come to"
            assert not any(n in self.private for n in self._names(expr)), "a thread's own loop"

    @staticmethod
    def _names(expr: Expr) -> Iterator[str]:
        return (node.tensor.name for node in core.walk(expr) if isinstance(node, core.Load))

    def _loads(self, expr: Expr) -> Iterator[str]:
        return (name for name in self._names(expr) if name not in self.private)

    def _touched(self, statement: Stmt) -> Touched:
        reads: set[str] = set()
        writes: set[tuple[str, str]] = set()
        stage = statement.stage if isinstance(statement, Region) else ""
        for inner in statements(statement):
            for expr in _exprs(inner):
                reads.update(self._loads(expr))
            if isinstance(inner, Store | Atomic) and inner.tensor.name not in self.private:
                writes.add((inner.tensor.name, stage))
        ahead = statement.ahead if isinstance(statement, Region) else frozenset[str]()
        return Touched(frozenset(reads), frozenset(writes)).turned(ahead)


def _other_half(name: str) -> str:
    """What stands for the half of a double buffer that the next iteration uses, and back."""
    return name.removesuffix(_AHEAD) if name.endswith(_AHEAD) else name + _AHEAD


def _barriers(body: list[Stmt]) -> int:
    return sum(isinstance(statement, Barrier) for statement in _all(body))


def _has_regions(statement: Stmt) -> bool:
    if isinstance(statement, Region):
        return False
    return any(isinstance(s, Region | Barrier) for s in statements(statement))


def _exprs(statement: Stmt) -> Iterator[Expr]:
    """The expressions of a statement, not of those in it."""
    match statement:
        case For():
            yield from (statement.lo, statement.extent)
        case Store() | Atomic():
            yield from (*statement.indices, statement.value)
        case LetValue():
            yield statement.value
        case If():
            yield statement.cond
        case Matrices():
            yield statement.source
        case Packed():
            yield from statement.elements
        case _:
            return
