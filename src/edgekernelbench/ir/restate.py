"""A core program as a kernel file again: the text of programs that nobody wrote.

The result elaborates to a program with the same meaning. It is not the author's text: sizes are
numbers, macros and templates stay expanded, tensors have plain names, axes are called by letters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from edgekernelbench.ir import core
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.affine import Affine, affine
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret.depth import room_for
from edgekernelbench.ir.words import REDUCTIONS, RESERVED

_SPATIAL = tuple("ijlmnpquvw")
_REDUCED = tuple("krscdefght")
_SIGNS: dict[str, s.BinaryOp] = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "fdiv": "//", "mod": "%", "shl": "<<",
    "shr": ">>", "bitand": "&", "bitor": "|", "bitxor": "^", "and": "and", "or": "or",
}  # fmt: skip
_COMPARE: dict[str, s.CompareOp] = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_UNARY: dict[str, s.UnaryOp] = {"neg": "-", "inv": "~", "not": "not"}
_TAKEN = RESERVED | {"inf", "pi", "pad", "edge", "dim", "clip", "clamp", "table", *REDUCTIONS}
_TAKEN |= {*core.INTRINSICS, "pow", "relu", "sigmoid", "kernel", "compute"}


@dataclass(frozen=True, slots=True)
class Restated:
    """A kernel without schedule and memory layers. ``names``: the program's tensors to its own."""

    kernel: s.Kernel
    names: Mapping[str, str]


def restate(program: core.Program) -> Restated:
    """The program as a kernel that can be printed, read and changed.

    Raises:
        ValueError: the program has a constant that the language cannot write (NaN).
    """
    names = _plain_names(program)
    with room_for(program):
        return _Writer(names).file(program)


def _plain_names(program: core.Program) -> dict[str, str]:
    """Tensors by names that can be written: letters, digits and ``_``, each once."""
    tables = (table.tensor for table in program.tables)
    stages = (stage.tensor for _, stage in core.stages(program.body))
    out: dict[str, str] = {}
    taken = set(_TAKEN) | {*_SPATIAL, *_REDUCED}
    # The interface keeps its names where it can.
    for tensor in (*program.inputs, *program.outputs, *tables, *stages):
        if tensor.name in out:
            continue
        word = re.sub(r"\W", "_", tensor.name, flags=re.ASCII)
        if not re.match(r"[A-Za-z]", word):
            word = f"t{word}"
        interface = tensor.kind in ("input", "output") and word == tensor.name
        name, k = word, 1
        while name in out.values() or (name in taken and not (interface and k == 1)):
            k += 1
            name = f"{word}_{k}"
        out[tensor.name] = name
    return out


@dataclass
class _Writer:
    names: Mapping[str, str]
    scope: dict[int, str] = field(default_factory=dict)
    combiners: dict[str, s.CombinerStmt] = field(default_factory=dict)

    def file(self, program: core.Program) -> Restated:
        tables: list[s.Stmt] = [self._table(table) for table in program.tables]
        body = (*tables, *self._nodes(program.body))
        name = re.sub(r"\W", "_", program.name, flags=re.ASCII)
        kernel = s.Kernel(
            tuple(self.combiners.values()),
            name if re.match(r"[A-Za-z]", name) and name not in _TAKEN else f"k_{name}",
            (),
            tuple(self._param(t) for t in program.inputs),
            tuple(self._param(t) for t in program.outputs),
            s.ComputeLayer(body),
        )
        return Restated(kernel, dict(self.names))

    def _param(self, tensor: core.Tensor) -> s.Param:
        dims = tuple(s.Num(extent) for extent in tensor.shape)
        return s.Param(self.names[tensor.name], tensor.dtype, dims, tensor.const)

    def _table(self, table: core.Table) -> s.TableStmt:
        tensor = table.tensor
        dims = tuple(s.Num(extent) for extent in tensor.shape)
        values = [_number(value) for value in table.values]
        return s.TableStmt(self.names[tensor.name], tensor.dtype, dims, _nested(values, tensor))

    # ------------------------------------------------------------ statements
    def _nodes(self, nodes: tuple[core.Node, ...]) -> tuple[s.Stmt, ...]:
        return tuple(self._node(node) for node in nodes)

    def _node(self, node: core.Node) -> s.Stmt:
        if isinstance(node, core.Stage):
            return self._stage(node)
        with _Bound(self, [node.var], ("t", *_SPATIAL)):
            axis = s.RangeAxis(
                self.scope[node.var.uid], s.Num(node.lo) if node.lo else None, s.Num(node.hi)
            )
            return s.LoopStmt(node.kind, axis, node.reverse, self._nodes(node.body))

    def _stage(self, stage: core.Stage) -> s.StageStmt:
        own = {axis.var.uid: axis.extent for axis in stage.axes}
        with _Bound(self, [axis.var for axis in stage.axes], _SPATIAL):
            axes = tuple(
                s.LeftAxis(self.scope[var.uid], s.Num(own[var.uid]) if var.uid in own else None)
                for var in stage.lhs
            )
            declared = stage.tensor.kind == "output"
            return s.StageStmt(
                (self.names[stage.tensor.name],),
                None if declared else stage.tensor.dtype,
                axes,
                self.expr(stage.expr),
            )

    # ------------------------------------------------------------ expressions
    def expr(self, expr: core.Expr) -> s.Expr:
        match expr:
            case core.Const():
                return _constant(expr)
            case core.VarRef():
                return s.Name(self.scope[expr.var.uid])
            case core.Load():
                return s.Index(self.names[expr.tensor.name], self._all(expr.indices))
            case core.Unary():
                return s.Unary(_UNARY[expr.op], self.expr(expr.arg))
            case core.Binary():
                return self._binary(expr)
            case core.Call():
                return s.Call(expr.fn, self._all(expr.args))
            case core.Select():
                return self._select(expr)
            case core.Cast():
                return s.CastExpr(expr.dtype, self.expr(expr.arg))
            case core.Reduce():
                return self._reduce(expr)
            case core.Block():
                return self._block(expr)

    def _all(self, exprs: Iterable[core.Expr]) -> tuple[s.Expr, ...]:
        return tuple(self.expr(expr) for expr in exprs)

    def _binary(self, expr: core.Binary) -> s.Expr:
        left, right = self._operand(expr.left, expr.right), self._operand(expr.right, expr.left)
        if expr.op in _COMPARE:
            return s.Compare((_COMPARE[expr.op],), (left, right))
        if expr.op in ("min", "max", "pow"):
            return s.Call(expr.op, (left, right))
        return s.Binary(_SIGNS[expr.op], left, right)

    def _operand(self, expr: core.Expr, beside: core.Expr) -> s.Expr:
        """A literal takes the dtype of what stands beside it, unless that is a literal too."""
        if isinstance(expr, core.Const) and not isinstance(beside, core.Const):
            return _literal(expr)
        return self.expr(expr)

    def _select(self, expr: core.Select) -> s.Expr:
        if isinstance(expr.then, core.Load) and _is_range_test(expr.cond, expr.then):
            other = self._operand(expr.other, expr.then)
            return s.Call("pad", (self.expr(expr.then), other))
        then = self._operand(expr.then, expr.other)
        return s.IfExpr(self.expr(expr.cond), then, self._operand(expr.other, expr.then))

    def _reduce(self, expr: core.Reduce) -> s.Expr:
        with _Bound(self, [axis.var for axis in expr.axes], _REDUCED):
            axes = tuple(
                s.RangeAxis(
                    self.scope[axis.var.uid],
                    None if _is_zero(axis.lo) else self.expr(axis.lo),
                    self.expr(axis.hi),
                )
                for axis in expr.axes
            )
            where = None if expr.where is None else self.expr(expr.where)
            if expr.combiner is None:
                return s.Reduction(expr.op, axes, where, self.expr(expr.body))
            name = self._combiner(expr.combiner)
            items = self._all(expr.items)
            body = items[0] if len(items) == 1 else s.TupleExpr(items)
            made = s.Reduction(name, axes, where, body)
        return made if len(items) == 1 else _component(made, len(items), expr.part)

    def _combiner(self, combiner: core.Combiner) -> str:
        """The name of a combiner, which is defined in front of the kernel when it is first met."""
        outside, self.scope = self.scope, {}  # it sees nothing of what is around it
        letters = tuple(f"c{n}" for n in range(2 * len(combiner.left)))
        with _Bound(self, [*combiner.left, *combiner.right], letters):
            left, right = (
                tuple(self.scope[var.uid] for var in side)
                for side in (combiner.left, combiner.right)
            )
            init = _tupled([_number(c.value) for c in combiner.init])
            with _Bound(self, [v for v, _ in combiner.lets], tuple(f"v{n}" for n in range(10))):
                lets = tuple(
                    s.BlockLet((self.scope[var.uid],), self.expr(value))
                    for var, value in combiner.lets
                )
                body = _tupled(list(self._all(combiner.results)))
        self.scope = outside
        if lets:
            body = s.BlockExpr(lets, body)
        for name, known in self.combiners.items():
            if (known.left, known.right, known.init, known.body) == (left, right, init, body):
                return name
        name = f"combine{len(self.combiners)}"
        self.combiners[name] = s.CombinerStmt(name, left, right, init, body)
        return name

    def _block(self, expr: core.Block) -> s.Expr:
        bound = _Bound(self, [var for var, _ in expr.lets], tuple(f"v{n}" for n in range(10)))
        with bound:
            lets = tuple(
                s.BlockLet((self.scope[var.uid],), self.expr(value)) for var, value in expr.lets
            )
            return s.BlockExpr(lets, self.expr(expr.result))


class _Bound:
    """While entered, variables have names that nothing around them has."""

    def __init__(
        self, writer: _Writer, variables: list[core.Var], letters: tuple[str, ...]
    ) -> None:
        self._writer, self._variables, self._letters = writer, variables, letters

    def __enter__(self) -> None:
        scope = self._writer.scope
        taken = {*scope.values(), *self._writer.names.values()}
        for var in self._variables:
            round_ = 0
            free = [letter for letter in self._letters if letter not in taken]
            while not free:
                round_ += 1
                free = [n for n in (f"{c}{round_}" for c in self._letters) if n not in taken]
            scope[var.uid] = free[0]
            taken.add(free[0])

    def __exit__(self, *_: object) -> None:
        for var in self._variables:
            del self._writer.scope[var.uid]


def _tupled(items: list[s.Expr]) -> s.Expr:
    return items[0] if len(items) == 1 else s.TupleExpr(tuple(items))


def _component(value: s.Expr, count: int, part: int) -> s.Expr:
    names = tuple(f"p{n}" for n in range(count))
    return s.BlockExpr((s.BlockLet(names, value),), s.Name(names[part]))


# ---------------------------------------------------------------- literals
def _constant(expr: core.Const) -> s.Expr:
    """A constant whose dtype the text alone must say."""
    value, dtype = expr.value, expr.dtype
    if isinstance(value, bool):
        zero = s.Num(0)
        return s.Compare(("==" if value else "!=",), (zero, zero))
    low, high = DType.S32.int_range
    natural = DType.F32 if isinstance(value, float) else DType.S32
    if dtype is natural and (isinstance(value, float) or low < value <= high):
        return _literal(expr)
    return s.CastExpr(dtype, _literal(expr))


def _literal(expr: core.Const) -> s.Expr:
    if isinstance(expr.value, bool):
        return _constant(expr)
    return _number(float(expr.value) if expr.dtype.is_float else expr.value)


def _number(value: int | float) -> s.Expr:
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("the program has a constant that is not a number")
    if value < 0 or (isinstance(value, float) and math.copysign(1.0, value) < 0):
        return s.Unary("-", _number(-value))
    return s.Name("inf") if value == math.inf else s.Num(value)


def _nested(values: list[s.Expr], tensor: core.Tensor) -> s.Expr:
    """A flat row-major list as nested ones."""
    for extent in reversed(tensor.shape):
        values = [s.ListExpr(tuple(values[k : k + extent])) for k in range(0, len(values), extent)]
    return values[0]


def _is_zero(expr: core.Expr) -> bool:
    return isinstance(expr, core.Const) and expr.value == 0


def _is_range_test(cond: core.Expr, load: core.Load) -> bool:
    """Whether ``cond`` tests nothing but that indices of ``load`` are in range.

    Then `pad` says the same: an index that is not tested was proved to be in range.
    """
    indices = [affine(index, _ANY, {}) for index in load.indices]
    wanted = [
        bound
        for index, extent in zip(indices, load.tensor.shape, strict=True)
        if index is not None and index.terms
        for bound in (_ordered(index), _ordered(index.times(-1).plus(Affine(extent - 1))))
    ]
    terms, tested = [cond], False
    while terms:
        term = terms.pop()
        if isinstance(term, core.Binary) and term.op == "and":
            terms += [term.left, term.right]
        elif _not_negative(term) not in wanted:
            return False
        else:
            tested = True
    return tested


def _not_negative(test: core.Expr) -> Affine | None:
    """What must not be negative for a comparison of affine integers to hold."""
    if not isinstance(test, core.Binary) or test.op not in ("ge", "gt", "le", "lt"):
        return None
    left, right = affine(test.left, _ANY, {}), affine(test.right, _ANY, {})
    if left is None or right is None:
        return None
    gap = left.plus(right, -1) if test.op in ("ge", "gt") else right.plus(left, -1)
    return _ordered(gap if test.op in ("ge", "le") else gap.plus(Affine(-1)))


def _ordered(form: Affine) -> Affine:
    return Affine(form.const, tuple(sorted(form.terms)))


class _Any(Container[int]):
    """Every variable counts, lets too: here forms are only compared with each other."""

    def __contains__(self, _: object) -> bool:
        return True


_ANY = _Any()
