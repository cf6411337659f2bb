"""Turns expressions of a program into closures over a `Frame`.

Each closure is built once and runs on NumPy scalars and arrays alike: an expression that varies
over no grid variable costs no array. Every node of the program is compiled exactly once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.affine import Affine, affine
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret import limits, numeric
from edgekernelbench.ir.interpret.branch import make_branch, make_division, make_junction
from edgekernelbench.ir.interpret.contract import Contraction, split_sum
from edgekernelbench.ir.interpret.fold import Fold
from edgekernelbench.ir.interpret.frame import Frame, GridVar, InterpretError, Value
from edgekernelbench.ir.interpret.loads import Dim, Fn, Term, make_load
from edgekernelbench.ir.interpret.nodes import Node, join, recombined, tuple_of, with_fn
from edgekernelbench.ir.interpret.reduce import AxisPlan, Reducer

Group = tuple[frozenset[int], int]  # uids of grid variables, and the elements they may span


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a tensor lies: ``hidden`` are each-indices whose iterations it keeps apart."""

    number: int
    shape: tuple[int, ...]
    hidden: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """A reduction that may be evaluated before its stage; ``groups`` as in `Reducer`."""

    key: int
    fn: Fn
    deps: frozenset[int]
    groups: tuple[Group, ...]


@dataclass(slots=True)
class Compiler:
    """Compiles the expressions of one program in one mode.

    Attributes:
        grid: grid variables by uid; scalar loop indices are in ``slots`` only.
        lanes: elements that a temporary may have; set it before a stage with many lets.
        storages: by tensor name.
        groups: sizes of temporaries of the expression being compiled.
        aheads: its reductions that stand outside any other reduction, branch and let.
    """

    mode: numeric.Mode
    storages: dict[str, Storage]
    slots: dict[int, int] = field(default_factory=dict)
    grid: dict[int, GridVar] = field(default_factory=dict)
    lanes: int = limits.PLAIN_LANES
    let_deps: dict[int, frozenset[int]] = field(default_factory=dict)
    let_forms: dict[int, Affine | None] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    aheads: list[Ahead] = field(default_factory=list)
    _indices: set[int] = field(default_factory=set)
    _sheltered: int = 0
    _keys: int = 0

    def slot(self, var: core.Var) -> int:
        return self.slots.setdefault(var.uid, len(self.slots))

    def grid_var(self, var: core.Var, place: int, extent: int) -> GridVar:
        self._indices.add(var.uid)
        made = GridVar(self.slot(var), place, extent, var.dtype.numpy)
        self.grid[var.uid] = made
        return made

    def scalar_var(self, var: core.Var) -> int:
        self._indices.add(var.uid)
        return self.slot(var)

    # ------------------------------------------------------------ expressions
    def expr(self, expr: core.Expr, ndim: int) -> Node:
        """Compiles an expression standing in a grid of ``ndim`` dimensions."""
        match expr:
            case core.Const():
                constant = numeric.numpy_dtype(expr.dtype, self.mode).type(expr.value)
                return Node(lambda frame: constant)
            case core.VarRef(var=var):
                return self._variable(var)
            case core.Load():
                return self._load(expr, ndim)
            case core.Unary(op=op, arg=arg):
                return self._apply(numeric.unary(op, expr.dtype), [self.expr(arg, ndim)])
            case core.Cast(arg=arg):
                inner = self.expr(arg, ndim)
                convert = numeric.cast(arg.dtype, expr.dtype, self.mode)
                return inner if convert is None else self._apply(convert, [inner])
            case core.Call(fn="fma", args=args) if self.mode == "f64":
                product = core.Binary("mul", args[0], args[1], expr.dtype)
                return self.expr(core.Binary("add", product, args[2], expr.dtype), ndim)
            case core.Call(fn=fn, args=args):
                return self._apply(numeric.intrinsic(fn), [self.expr(a, ndim) for a in args])
            case core.Binary():
                return self._binary(expr, ndim)
            case core.Select():
                return self._select(expr, ndim)
            case core.Block():
                return self._block(expr, ndim)
            case core.Reduce():
                return self._reduce(expr, ndim)
        raise InterpretError(f"unknown expression {type(expr).__name__}")

    def _variable(self, var: core.Var) -> Node:
        slot = self.slots.get(var.uid)
        if slot is None:
            raise InterpretError(f"'{var.name}' is not bound here")

        def read(frame: Frame) -> Value:
            return frame.vals[slot]

        if var.uid in self.grid:
            return Node(read, frozenset((var.uid,)))
        if var.uid in self._indices:
            return Node(read)
        return Node(read, self.let_deps[var.uid], frozenset((var.uid,)))

    def _apply(self, fn: Any, args: list[Node]) -> Node:
        joined = join(args)
        match [arg.fn for arg in args]:
            case [a]:
                return with_fn(joined, lambda frame: fn(a(frame)))
            case [a, b]:
                return with_fn(joined, lambda frame: fn(a(frame), b(frame)))
            case [a, b, c]:
                return with_fn(joined, lambda frame: fn(a(frame), b(frame), c(frame)))
        raise InterpretError("an intrinsic takes one to three arguments")

    def _binary(self, expr: core.Binary, ndim: int) -> Node:
        left = self.expr(expr.left, ndim)
        if expr.op in core.BOOL_OPS:
            other = self.expr(expr.right, ndim)
            return with_fn(join([left, other]), make_junction(expr.op == "and", left.fn, other.fn))
        if _is_square(expr):
            base = left.fn
            return with_fn(left, lambda frame: (x := base(frame)) * x)
        right = self.expr(expr.right, ndim)
        operation = numeric.binary(expr.op, expr.left.dtype)
        if expr.op in ("fdiv", "mod") and expr.dtype.is_int and not _is_positive(expr.right):
            fn = make_division(operation, left.fn, right.fn)
            return with_fn(join([left, right]), fn)
        return self._apply(operation, [left, right])

    def _select(self, expr: core.Select, ndim: int) -> Node:
        cond = self.expr(expr.cond, ndim)
        then = self._shelter(expr.then, ndim)
        other = self._shelter(expr.other, ndim)
        fn = make_branch(cond.fn, then.fn, other.fn)
        return with_fn(join([cond, then, other]), fn)

    def _shelter(self, expr: core.Expr, ndim: int) -> Node:
        """Compiles an expression that runs in some lanes only."""
        self._sheltered += 1
        node = self.expr(expr, ndim)
        self._sheltered -= 1
        return node

    def _block(self, expr: core.Block, ndim: int) -> Node:
        lets, bound, nodes = self._lets(expr.lets, ndim)
        result = self.expr(expr.result, ndim)
        fn = result.fn

        def run(frame: Frame) -> Value:
            for slot, value in lets:
                frame.vals[slot] = value(frame)
            return fn(frame)

        joined = join([*nodes, result])
        return Node(run, result.deps, joined.lets - bound)

    def _lets(
        self, lets: Iterable[tuple[core.Var, core.Expr]], ndim: int
    ) -> tuple[list[tuple[int, Fn]], frozenset[int], list[Node]]:
        compiled: list[tuple[int, Fn]] = []
        nodes: list[Node] = []
        bound: set[int] = set()
        for var, value in lets:
            node = self.expr(value, ndim)
            self.let_forms[var.uid] = affine(value, self._indices, self.let_forms)
            self.let_deps[var.uid] = node.deps
            bound.add(var.uid)
            compiled.append((self.slot(var), node.fn))
            nodes.append(node)
        return compiled, frozenset(bound), nodes

    # ------------------------------------------------------------ loads
    def _load(self, expr: core.Load, ndim: int) -> Node:
        tensor = expr.tensor
        storage = self.storages.get(tensor.name)
        if storage is None:
            raise InterpretError(f"'{tensor.name}' is read but never defined")
        dims: list[Dim] = []
        nodes: list[Node] = []
        deps: set[int] = set()
        for index in expr.indices:
            form = affine(index, self._indices, self.let_forms)
            if form is None:
                nodes.append(self.expr(index, ndim))
                dims.append(Dim(0, (), nodes[-1].fn))
            else:
                dims.append(Dim(form.const, self._terms(form)))
                deps.update(uid for uid, _ in form.terms if uid in self.grid)
        for uid in storage.hidden:
            dims.append(Dim(0, self._terms(Affine(0, ((uid, 1),))), None, self.slots[uid]))
            deps.add(uid)
        convert = numeric.cast(tensor.dtype, expr.dtype, self.mode)
        fn = make_load(tensor.name, storage.number, storage.shape, dims, ndim, convert)
        joined = join(nodes)
        return Node(fn, joined.deps | deps, joined.lets)

    def _terms(self, form: Affine) -> tuple[Term, ...]:
        terms = []
        for uid, coefficient in form.terms:
            place = self.grid[uid].place if uid in self.grid else None
            terms.append(Term(self.slots[uid], coefficient, place))
        return tuple(terms)

    # ------------------------------------------------------------ reductions
    def _reduce(self, expr: core.Reduce, ndim: int) -> Node:
        mark = len(self.groups)
        inner = ndim + len(expr.axes)
        key = self._keys = self._keys + 1
        self._sheltered += 1
        axes, nodes = self._axes(expr, ndim, inner)
        where = None if expr.where is None else self.expr(expr.where, inner)
        body, contraction, groups = self._body(expr, where, nodes, inner)
        self._sheltered -= 1
        own = frozenset(axis.var.uid for axis in expr.axes)
        joined = join([*nodes, *([] if where is None else [where]), body])
        deps = joined.deps - own
        self.groups += groups
        reducer = Reducer(
            key,
            expr.op,
            axes,
            None if where is None else where.fn,
            body.fn,
            contraction,
            ndim,
            tuple(self.grid[uid] for uid in sorted(deps)),
            tuple((tuple(self.grid[u] for u in sorted(uids)), cap) for uids, cap in groups),
            numeric.numpy_dtype(expr.dtype, self.mode),
            _empty(expr, self.mode),
            None if expr.combiner is None else (self._fold(expr.combiner, inner), expr.part),
        )
        if not self._sheltered and not joined.lets:
            self.aheads.append(Ahead(key, reducer, deps, tuple(self.groups[mark:])))
        return Node(reducer, deps, joined.lets)

    def _axes(
        self, expr: core.Reduce, ndim: int, inner: int
    ) -> tuple[tuple[AxisPlan, ...], list[Node]]:
        plans: list[AxisPlan] = []
        nodes: list[Node] = []
        for k, axis in enumerate(expr.axes):
            lo = hi = None
            if not axis.is_constant:
                bounds = [self.expr(axis.lo, inner), self.expr(axis.hi, inner)]
                nodes += bounds
                lo, hi = bounds[0].fn, bounds[1].fn
            place = ndim + len(expr.axes) - 1 - k
            plans.append(AxisPlan(self.grid_var(axis.var, place, axis.extent), lo, hi))
        return tuple(plans), nodes

    def _body(
        self, expr: core.Reduce, where: Node | None, bounds: list[Node], inner: int
    ) -> tuple[Node, Contraction | None, list[Group]]:
        """The body, a faster way to sum it if there is one, and the temporaries either needs."""
        own = frozenset(axis.var.uid for axis in expr.axes)
        exact = self.mode == "f64" or not expr.dtype.is_float
        outside = join([*bounds, *([] if where is None else [where])])
        if expr.combiner is not None:
            items = [self.expr(item, inner) for item in expr.items]
            body = with_fn(join(items), tuple_of([item.fn for item in items]))
            lanes = max(limits.LEAST_LANES, self.lanes // (2 * len(items)))
            return body, None, [(body.deps | outside.deps | own, lanes)]
        stepwise = not exact and expr.dtype is DType.F16
        if expr.op != "sum" or expr.dtype is DType.BOOL or stepwise:
            body = self.expr(expr.body, inner)
            return body, None, [(body.deps | outside.deps | own, self.lanes)]
        block = expr.body if isinstance(expr.body, core.Block) else core.Block((), expr.body)
        lets, bound, nodes = self._lets(block.lets, inner)
        terms = split_sum(block.result, single=not exact)
        factors = [[self.expr(f, inner) for f in term.factors] for term in terms]
        body = recombined(lets, bound, nodes, terms, factors)
        whole = body.deps | outside.deps | own
        groups = [(part.deps, limits.FACTOR_LANES) for part in [*nodes, *itertools.chain(*factors)]]
        groups += [(outside.deps, limits.FACTOR_LANES), (whole - own, limits.FACTOR_LANES)]
        widest = max(self._extent(deps) for deps, _ in groups)
        distributes = not exact and not all(f.deps >= own for f in factors[0])
        if (
            self._extent(whole) < 4 * widest
            or self._extent(whole) < limits.LEAST_PRODUCT
            or distributes
        ):
            return body, None, [(whole, self.lanes)]
        pairs = tuple(
            (term.sign, tuple(node.fn for node in part))
            for term, part in zip(terms, factors, strict=True)
        )
        dtype = numeric.numpy_dtype(expr.dtype, self.mode)
        return body, Contraction(tuple(lets), pairs, inner, len(own), dtype), groups

    def _fold(self, combiner: core.Combiner, ndim: int) -> Fold:
        for var in (*combiner.left, *combiner.right):
            self.let_deps[var.uid], self.let_forms[var.uid] = frozenset(), None
        left, right = (
            tuple(self.slot(var) for var in side) for side in (combiner.left, combiner.right)
        )
        lets, _, _ = self._lets(combiner.lets, ndim)
        results = tuple(self.expr(result, ndim).fn for result in combiner.results)
        init = tuple(numeric.numpy_dtype(c.dtype, self.mode).type(c.value) for c in combiner.init)
        return Fold(left, right, tuple(lets), results, init)

    def _extent(self, uids: frozenset[int]) -> int:
        size = 1
        for uid in uids:
            size *= self.grid[uid].extent
        return size


def _is_square(expr: core.Binary) -> bool:
    return expr.op == "pow" and isinstance(expr.right, core.Const) and expr.right.value == 2


def _is_positive(expr: core.Expr) -> bool:
    return isinstance(expr, core.Const) and expr.value > 0


def _empty(expr: core.Reduce, mode: numeric.Mode) -> Any:
    dtype = numeric.numpy_dtype(expr.dtype, mode)
    if expr.combiner is not None:
        return dtype.type(expr.combiner.init[expr.part].value)
    return dtype.type(np.array(core.identity(expr.op, expr.body.dtype)).astype(dtype))
