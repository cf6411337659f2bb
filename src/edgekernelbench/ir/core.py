"""The core program: what a kernel computes, with names resolved, shapes known and types checked.

Everything is frozen. Macros, templates, ``pad`` and ``edge`` are gone: a `pad` is a `Select` whose
condition is the range test, an `edge` is a clamped index, a macro call is a `Block` that binds
each argument once. Every expression knows its dtype, which is the dtype it is computed in (loads
are widened: `Load.dtype` is ``tensor.dtype.widened``).

Meaning of the parts that could be read two ways:

- Every float operation rounds to its dtype, f16 too; a product may be fused into the addition or
  subtraction that uses it and then does not, except where `nofma` stands between them or the sum
  becomes an integer.
- `Select` evaluates one branch; reads of the other need not be in range.
- `Cast` to an integer from a float truncates and saturates (NaN becomes 0); from an integer it
  wraps; from anything to bool it compares with zero.
- ``fdiv`` and ``mod`` are floor division and its remainder, ``shr`` is arithmetic for signed
  dtypes, shift amounts are taken modulo the width, u32 arithmetic wraps, s32 must not overflow.
- A `Reduce` over no element yields `identity`; argmax and argmin then yield -1. Their value is
  the row-major position within the axes' constant or maximal box counted from each axis' 0
  for axes ``lo..hi`` too (so ``argmax[k: 3..7]`` yields 3..6), lowest on ties.
- A `Stage` writes each element of its tensor once: per iteration of the enclosing loops whose
  index is in `lhs`, afresh in each iteration of the others (it then lives for that iteration).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edgekernelbench.ir.diagnostics import NO_SPAN, Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.operations import BOOL_OPS as BOOL_OPS
from edgekernelbench.ir.operations import COMPARE_OPS as COMPARE_OPS
from edgekernelbench.ir.operations import INTRINSICS as INTRINSICS
from edgekernelbench.ir.operations import REDUCE_OPS as REDUCE_OPS
from edgekernelbench.ir.operations import ArithOp as ArithOp
from edgekernelbench.ir.operations import CompareOp as CompareOp
from edgekernelbench.ir.operations import ReduceOp as ReduceOp
from edgekernelbench.ir.operations import UnaryOp as UnaryOp
from edgekernelbench.ir.operations import identity as identity


def _span() -> Span:
    return field(default=NO_SPAN, compare=False, repr=False)  # type: ignore[return-value]


TensorKind = Literal["input", "output", "stage", "table"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array. Shape () is one element. ``const`` marks inputs known before deployment."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    kind: TensorKind
    const: bool = False

    @property
    def size(self) -> int:
        out = 1
        for extent in self.shape:
            out *= extent
        return out

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Var:
    """An axis, loop index or let. ``uid`` is unique within a program; ``name`` is the author's."""

    name: str
    uid: int
    dtype: DType = DType.S32


@dataclass(frozen=True, slots=True)
class Const:
    """``value`` is int for integer dtypes, float for float dtypes (inf allowed), bool for bool."""

    value: int | float | bool
    dtype: DType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class VarRef:
    var: Var
    span: Span = _span()

    @property
    def dtype(self) -> DType:
        return self.var.dtype


@dataclass(frozen=True, slots=True)
class Load:
    """Reads one element; as many indices as dimensions, each of an integer dtype."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    span: Span = _span()

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype.widened


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    arg: Expr
    dtype: DType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """Operands have one common dtype (casts are explicit in the core); comparisons yield bool.

    The exception is the amount of ``shl`` and ``shr``, which may be of any integer dtype.
    """

    op: ArithOp | CompareOp
    left: Expr
    right: Expr
    dtype: DType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    fn: str
    args: tuple[Expr, ...]
    dtype: DType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Select:
    """``then`` where ``cond`` holds, else ``other``; both of ``dtype``.

    ``border`` marks a select that came from `pad`: its condition is a border test.
    """

    cond: Expr
    then: Expr
    other: Expr
    dtype: DType
    border: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Cast:
    arg: Expr
    dtype: DType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ReduceAxis:
    """``var`` runs over lo..hi-1. ``extent`` bounds hi from above (a compile-time number)."""

    var: Var
    lo: Expr
    hi: Expr
    extent: int
    span: Span = _span()

    @property
    def is_constant(self) -> bool:
        """True for 0..extent, the rectangular case."""
        return (
            isinstance(self.lo, Const)
            and self.lo.value == 0
            and isinstance(self.hi, Const)
            and self.hi.value == self.extent
        )


@dataclass(frozen=True, slots=True)
class Combiner:
    """How two partial results of a reduction of the author's own become one.

    `verify` has tested that it is associative and commutative, and that ``init`` changes nothing.

    Attributes:
        left, right: the components of the two partial results.
        lets: bound in order, each may use the components and the earlier ones.
        results: the components of what comes out; they have the dtypes of ``left``. Nothing but
            components, lets and constants is read here.
        init: the components of an empty reduction.
    """

    name: str
    left: tuple[Var, ...]
    right: tuple[Var, ...]
    lets: tuple[tuple[Var, Expr], ...]
    results: tuple[Expr, ...]
    init: tuple[Const, ...]

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (*(value for _, value in self.lets), *self.results)


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction. ``dtype`` is the result's (s32 for argmax); the body has the compared dtype.

    With ``combine`` an element is the tuple ``items``, and the value is component ``part`` of the
    tuple that ``combiner`` makes of all elements. ``start``, over spatial axes, is what a sum
    begins with instead of 0: no program says that, the lowering writes it.
    """

    op: ReduceOp
    axes: tuple[ReduceAxis, ...]
    where: Expr | None
    body: Expr
    dtype: DType
    span: Span = _span()
    combiner: Combiner | None = None
    part: int = 0
    more: tuple[Expr, ...] = ()
    start: Expr | None = None

    @property
    def items(self) -> tuple[Expr, ...]:
        """The components of one element."""
        return (self.body, *self.more)

    @property
    def label(self) -> str:
        """The operation as the author calls it."""
        return self.op if self.combiner is None else self.combiner.name


@dataclass(frozen=True, slots=True)
class Block:
    """Binds ``lets`` in order (each may use the earlier ones), then yields ``result``."""

    lets: tuple[tuple[Var, Expr], ...]
    result: Expr
    span: Span = _span()

    @property
    def dtype(self) -> DType:
        return self.result.dtype


Expr = Const | VarRef | Load | Unary | Binary | Call | Select | Cast | Reduce | Block


# ---------------------------------------------------------------- statements
@dataclass(frozen=True, slots=True)
class Axis:
    """A spatial axis of a stage: 0..extent-1."""

    var: Var
    extent: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Stage:
    """Defines ``tensor[lhs] = expr``.

    Attributes:
        name: as the author and the schedule call it (``a.u`` for a template's inner stage);
            equal to ``tensor.name``.
        lhs: one variable per dimension of the tensor, in its order: own axes and bare indices
            of enclosing loops. A loop index's dimension has the loop's ``hi`` as extent.
        axes: the own axes, in their order on the left side.
    """

    name: str
    tensor: Tensor
    lhs: tuple[Var, ...]
    axes: tuple[Axis, ...]
    expr: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Loop:
    """``seq`` (in order, downwards if reversed) or ``each`` (independent) over lo..hi-1."""

    kind: Literal["seq", "each"]
    var: Var
    lo: int
    hi: int
    reverse: bool
    body: tuple[Node, ...]
    span: Span = _span()


Node = Stage | Loop


@dataclass(frozen=True, slots=True)
class Table:
    """A constant of the text. ``values`` is flat, row-major, ints or floats."""

    tensor: Tensor
    values: tuple[int | float, ...]

    def array(self) -> np.ndarray:
        return np.array(self.values, self.tensor.dtype.numpy).reshape(self.tensor.shape)


@dataclass(frozen=True, slots=True)
class Program:
    """A type-checked compute layer on concrete sizes. ``next_uid`` is free for passes to use."""

    name: str
    sizes: tuple[tuple[str, int | float], ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tables: tuple[Table, ...]
    body: tuple[Node, ...]
    next_uid: int


def stages(nodes: tuple[Node, ...]) -> Iterator[tuple[tuple[Loop, ...], Stage]]:
    """All stages in program order, each with its enclosing loops from outside in."""
    for node in nodes:
        if isinstance(node, Stage):
            yield (), node
        else:
            for loops, stage in stages(node.body):
                yield (node, *loops), stage


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct subexpressions in evaluation order (axis bounds and `where` of a reduction too)."""
    match expr:
        case Load():
            return expr.indices
        case Unary() | Cast():
            return (expr.arg,)
        case Binary():
            return (expr.left, expr.right)
        case Call():
            return expr.args
        case Select():
            return (expr.cond, expr.then, expr.other)
        case Reduce():
            bounds = tuple(b for axis in expr.axes for b in (axis.lo, axis.hi))
            extra = tuple(e for e in (expr.where, expr.start) if e is not None)
            return (*bounds, *extra, *expr.items)
        case Block():
            return (*(value for _, value in expr.lets), expr.result)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its subexpressions, outer before inner, without recursion."""
    stack: list[Expr] = [expr]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def unique_nodes(expr: Expr) -> list[Expr]:
    """Every node of the expression once, children before parents.

    Shared nodes are visited once, so that a graph which is a huge tree in disguise stays small.
    """
    seen: set[int] = set()
    order: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)))
    return order
