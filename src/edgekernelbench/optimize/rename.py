"""Other names for everything that a kernel defines, on its syntax tree.

What is bound nearer (axes, parameters, lets of a block, what a template's body defines) hides the
names of the kernel, as in the language itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from edgekernelbench.ir import surface as s

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Renaming:
    """How a kernel's names change.

    Attributes:
        values: tensors, stages, tables and lets.
        functions: macros, combiners and templates; they have a space of names of their own.
        numbers: sizes, which become their values.
        refs: names of schedules that do not follow from `values` by their first part.
    """

    values: Mapping[str, str]
    functions: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    refs: Callable[[str], str | None] = lambda _: None

    # ------------------------------------------------------------ expressions
    def expr(self, expr: s.Expr, bound: frozenset[str] = _NOTHING) -> s.Expr:
        """``bound``: names that stand for something nearer."""
        match expr:
            case s.Num():
                return expr
            case s.Name(id=name):
                if name not in bound and name in self.numbers:
                    return s.Num(self.numbers[name])
                return replace(expr, id=self._value(name, bound))
            case s.Index(base=base, args=args):
                return replace(expr, base=self._value(base, bound), args=self._all(args, bound))
            case s.Call(fn=fn, args=args):
                return replace(expr, fn=self._function(fn), args=self._all(args, bound))
            case s.Reduction():
                return self._reduction(expr, bound)
            case s.BlockExpr():
                return self._block(expr, bound)
            case s.CastExpr(arg=arg) | s.Unary(arg=arg):
                return replace(expr, arg=self.expr(arg, bound))
            case s.Binary(left=left, right=right):
                return replace(expr, left=self.expr(left, bound), right=self.expr(right, bound))
            case s.Compare(operands=operands):
                return replace(expr, operands=self._all(operands, bound))
            case s.IfExpr(cond=cond, then=then, other=other):
                cond, then, other = self._all((cond, then, other), bound)
                return replace(expr, cond=cond, then=then, other=other)
            case s.TupleExpr(items=items) | s.ListExpr(items=items):
                return replace(expr, items=self._all(items, bound))
            case s.Hole(choices=choices):
                return replace(expr, choices=self._all(choices, bound))

    def _value(self, name: str, bound: frozenset[str]) -> str:
        return name if name in bound else self.values.get(name, name)

    def _function(self, name: str) -> str:
        return self.functions.get(name, name)

    def _all(self, exprs: Iterable[s.Expr], bound: frozenset[str]) -> tuple[s.Expr, ...]:
        return tuple(self.expr(expr, bound) for expr in exprs)

    def _reduction(self, expr: s.Reduction, bound: frozenset[str]) -> s.Expr:
        axes: list[s.RangeAxis] = []
        for axis in expr.axes:
            axes.append(self._range(axis, bound))
            bound |= {axis.name}
        where = None if expr.where is None else self.expr(expr.where, bound)
        body = self.expr(expr.body, bound)
        return replace(expr, op=self._function(expr.op), axes=tuple(axes), where=where, body=body)

    def _range(self, axis: s.RangeAxis, bound: frozenset[str]) -> s.RangeAxis:
        lo = None if axis.lo is None else self.expr(axis.lo, bound)
        return replace(axis, lo=lo, hi=self.expr(axis.hi, bound))

    def _block(self, expr: s.BlockExpr, bound: frozenset[str]) -> s.Expr:
        lets: list[s.BlockLet] = []
        for let in expr.lets:
            lets.append(replace(let, value=self.expr(let.value, bound)))
            bound |= set(let.names)
        return replace(expr, lets=tuple(lets), result=self.expr(expr.result, bound))

    # ------------------------------------------------------------ statements
    def stmt(self, stmt: s.Stmt, bound: frozenset[str] = _NOTHING) -> s.Stmt:
        match stmt:
            case s.StageStmt(targets=targets, axes=axes, value=value):
                inner = bound | {axis.name for axis in axes or ()}
                return replace(
                    stmt,
                    targets=tuple(self._value(name, bound) for name in targets),
                    axes=None if axes is None else self._left(axes, bound),
                    value=self.expr(value, inner),
                )
            case s.TupleStmt(lefts=lefts, value=value):
                inner = bound | {axis.name for left in lefts for axis in left.axes}
                new = tuple(
                    replace(
                        left, name=self._value(left.name, bound), axes=self._left(left.axes, bound)
                    )
                    for left in lefts
                )
                return replace(stmt, lefts=new, value=self.expr(value, inner))
            case s.LoopStmt(axis=axis, body=body):
                inner = bound | {axis.name}
                new_body = tuple(self.stmt(each, inner) for each in body)
                return replace(stmt, axis=self._range(axis, bound), body=new_body)
            case s.LetStmt(name=name, value=value):
                return replace(stmt, name=self._value(name, bound), value=self.expr(value, bound))
            case s.TableStmt(name=name, dims=dims, value=value):
                new_name = self._value(name, bound)
                dims, value = self._all(dims, bound), self.expr(value, bound)
                return replace(stmt, name=new_name, dims=dims, value=value)
            case s.DefStmt() | s.CombinerStmt() | s.TemplateStmt():
                return self._definition(stmt, bound)

    def _left(self, axes: tuple[s.LeftAxis, ...], bound: frozenset[str]) -> tuple[s.LeftAxis, ...]:
        return tuple(
            axis if axis.extent is None else replace(axis, extent=self.expr(axis.extent, bound))
            for axis in axes
        )

    def _definition(
        self, stmt: s.DefStmt | s.CombinerStmt | s.TemplateStmt, bound: frozenset[str]
    ) -> s.Stmt:
        name = self._function(stmt.name)
        match stmt:
            case s.DefStmt(params=params, body=body):
                return replace(stmt, name=name, body=self.expr(body, bound | set(params)))
            case s.CombinerStmt(left=left, right=right, init=init, body=body):
                new = self.expr(body, bound | {*left, *right})
                return replace(stmt, name=name, init=self.expr(init, bound), body=new)
            case s.TemplateStmt(params=params, body=body):
                own = frozenset(function_names(body))
                functions = {old: new for old, new in self.functions.items() if old not in own}
                within = replace(self, functions=functions)
                inner = bound | {*params, *value_names(body)}
                return replace(stmt, name=name, body=tuple(within.stmt(b, inner) for b in body))

    # ------------------------------------------------------------ lines
    def ref(self, ref: s.Ref) -> s.Ref:
        """A stage of a schedule, or a tensor of a memory layer."""
        special = self.refs(ref.name)
        if special is not None:
            return replace(ref, name=special)
        head, dot, tail = ref.name.partition(".")
        return replace(ref, name=f"{self.values.get(head, head)}{dot}{tail}")

    def line(self, line: s.ScheduleLine | s.MemoryLine) -> s.ScheduleLine | s.MemoryLine:
        match line:
            case s.LoopsLine(stage=stage, pieces=pieces) | s.WaveLine(stage=stage, pieces=pieces):
                new = tuple(self._piece(piece) for piece in pieces)
                return replace(line, stage=self.ref(stage), pieces=new)
            case s.PlaceLine(stages=stages, target=target):
                return replace(line, stages=self._refs(stages), target=self.ref(target))
            case s.InlineLine(stages=stages):
                return replace(line, stages=self._refs(stages))
            case s.LayoutLine(tensor=tensor, axes=axes, target=target):
                new = self._all(target, frozenset(axes))
                return replace(line, tensor=self.ref(tensor), target=new)
            case s.CacheLine(tensors=tensors, target=target):
                copies = tuple(replace(each, tensor=self.ref(each.tensor)) for each in tensors)
                return replace(line, tensors=copies, target=self.ref(target))
            case s.PrefetchLine(tensors=tensors, target=target, ahead=ahead):
                refs, new_ahead = self._refs(tensors), self.expr(ahead)
                return replace(line, tensors=refs, target=self.ref(target), ahead=new_ahead)
        return line

    def _refs(self, refs: Iterable[s.Ref]) -> tuple[s.Ref, ...]:
        return tuple(self.ref(ref) for ref in refs)

    def _piece(self, piece: s.Piece) -> s.Piece:
        return piece if piece.step is None else replace(piece, step=self.expr(piece.step))


def value_names(stmts: Iterable[s.Stmt]) -> Iterator[str]:
    """What statements define that expressions read: stages, tables and lets."""
    for stmt in stmts:
        match stmt:
            case s.StageStmt(targets=targets):
                yield from targets
            case s.TupleStmt(lefts=lefts):
                yield from (left.name for left in lefts)
            case s.LoopStmt(body=body):
                yield from value_names(body)
            case s.LetStmt(name=name) | s.TableStmt(name=name):
                yield name


def function_names(stmts: Iterable[s.Stmt]) -> Iterator[str]:
    """Macros, combiners and templates that statements define."""
    for stmt in stmts:
        match stmt:
            case s.DefStmt(name=name) | s.CombinerStmt(name=name) | s.TemplateStmt(name=name):
                yield name
            case s.LoopStmt(body=body):
                yield from function_names(body)
