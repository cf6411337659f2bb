"""The syntax tree of a kernel file, as its author wrote it.

Spans do not take part in equality, so ``parse(print(kernel)) == kernel`` holds. Macros, templates
and sizes are still unexpanded here; ``elaborate`` turns a `Kernel` into a `core.Program`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from edgekernelbench.ir.diagnostics import NO_SPAN, Span
from edgekernelbench.ir.dtypes import DType


def _span() -> Span:
    return field(default=NO_SPAN, compare=False, repr=False)  # type: ignore[return-value]


# ---------------------------------------------------------------- expressions
@dataclass(frozen=True, slots=True)
class Num:
    """A literal. ``value`` is int for integers (hexadecimal too), float otherwise."""

    value: int | float
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Name:
    """A size, axis, loop index, scalar stage, macro parameter or predefined constant."""

    id: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Index:
    """``base[args]``: a read, or a slice when passed to a template or macro."""

    base: str
    args: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """``fn(args)``: intrinsic, macro, ``pad``, ``edge``, ``dim``, or a template in a bind."""

    fn: str
    args: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class CastExpr:
    """``s8(x)``."""

    dtype: DType
    arg: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RangeAxis:
    """``k: K`` or ``k: lo..hi``; ``lo`` is None in the first form."""

    name: str
    lo: Expr | None
    hi: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Reduction:
    """``op[axes where cond](body)``, ``op`` any name; a body ``(a, b)`` is a `TupleExpr`."""

    op: str
    axes: tuple[RangeAxis, ...]
    where: Expr | None
    body: Expr
    span: Span = _span()


UnaryOp = Literal["-", "+", "~", "not"]
BinaryOp = Literal["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "and", "or"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    arg: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinaryOp
    left: Expr
    right: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain ``a < b <= c``: one more operand than operators."""

    ops: tuple[CompareOp, ...]
    operands: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class IfExpr:
    """``then if cond else other``."""

    cond: Expr
    then: Expr
    other: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TupleExpr:
    items: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ListExpr:
    """The value of a ``table``; nested for more dimensions."""

    items: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BlockLet:
    """``let a = e`` (one name) or ``let (a, b) = e``."""

    names: tuple[str, ...]
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BlockExpr:
    lets: tuple[BlockLet, ...]
    result: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Hole:
    """``?{a, b, ...}``: an integer of a schedule or memory layer that a tuner may choose."""

    choices: tuple[Expr, ...]
    span: Span = _span()


Expr = (
    Num | Name | Index | Call | CastExpr | Reduction | Unary | Binary | Compare | IfExpr
    | TupleExpr | ListExpr | BlockExpr | Hole
)  # fmt: skip


# ---------------------------------------------------------------- compute layer
@dataclass(frozen=True, slots=True)
class LeftAxis:
    """An item of a stage's left side: ``i: M`` or bare ``i`` (extent None)."""

    name: str
    extent: Expr | None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class StageStmt:
    """``name: dtype[axes] = value``; a scalar ``name = value`` has no axes.

    Without axes and dtype, and with a `Call` of a template as value, it is a template bind:
    only `elaborate` can tell, so `targets` of more than one name mark a sure bind.
    """

    targets: tuple[str, ...]
    dtype: DType | None
    axes: tuple[LeftAxis, ...] | None
    value: Expr
    span: Span = _span()
    name_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Left:
    """One left side of a `TupleStmt`: ``name: dtype[axes]``."""

    name: str
    dtype: DType | None
    axes: tuple[LeftAxis, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TupleStmt:
    """``m[i: M], s[i: M] = value``: a stage for each component of a tuple."""

    lefts: tuple[Left, ...]
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class LoopStmt:
    """``seq t: L reversed { ... }`` or ``each c: C { ... }``."""

    kind: Literal["seq", "each"]
    axis: RangeAxis
    reverse: bool
    body: tuple[Stmt, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class LetStmt:
    """A compile-time number at stage level."""

    name: str
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TableStmt:
    name: str
    dtype: DType
    dims: tuple[Expr, ...]
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DefStmt:
    """``def name(params) = body``: an expression macro."""

    name: str
    params: tuple[str, ...]
    body: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class CombinerStmt:
    """``combiner name((a, b), (c, d)) init (x, y) = body``: merges two partial results."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    init: Expr
    body: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TemplateStmt:
    """``template name(params) -> (results) { body }``."""

    name: str
    params: tuple[str, ...]
    results: tuple[str, ...]
    body: tuple[Stmt, ...]
    span: Span = _span()


Stmt = (
    StageStmt | TupleStmt | LoopStmt | LetStmt | TableStmt | DefStmt | CombinerStmt | TemplateStmt
)


# ---------------------------------------------------------------- schedule and memory layers
Annotation = Literal["parallel", "block", "thread", "vectorize", "unroll", "scatter", "dot4"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A dotted stage name such as ``Y``, ``Y.sum`` or ``a.u``."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Piece:
    """One loop of a nest: ``parallel i by 8``; ``label`` is the name in ``i_outer = i by 8``.

    ``scatter v`` is no loop: it says where in the nest elements land along an axis.
    """

    annotation: Annotation | None
    axis: str
    step: Expr | None
    label: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class LoopsLine:
    """``loops S (pieces)``: the final nest of S, outermost first."""

    stage: Ref
    pieces: tuple[Piece, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class WaveLine:
    """``wave S (i, vectorize j)``: the ``seq`` loops i and j around S run by diagonals."""

    stage: Ref
    pieces: tuple[Piece, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PlaceLine:
    """``place A, B in S.j0``: ``target`` is S, ``loop`` is j0."""

    stages: tuple[Ref, ...]
    target: Ref
    loop: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class InlineLine:
    stages: tuple[Ref, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class LayoutLine:
    """``layout T [k, j] -> [j // 32, k, j % 32]``."""

    tensor: Ref
    axes: tuple[str, ...]
    target: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class OptionLine:
    """``option vector_bits 256``: a word or a number for the toolchain of one backend."""

    name: str
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Cached:
    """One tensor of a `cache` line; ``dtype`` is that of the copy, None for the tensor's own."""

    tensor: Ref
    dtype: DType | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class CacheLine:
    """``cache X, W: f32 in S.k0``: what S reads of them inside that loop is copied there."""

    tensors: tuple[Cached, ...]
    target: Ref
    loop: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PrefetchLine:
    """``prefetch T in S.p ahead 4``: S will read it four iterations later."""

    tensors: tuple[Ref, ...]
    target: Ref
    loop: str
    ahead: Expr
    span: Span = _span()


ScheduleLine = LoopsLine | WaveLine | PlaceLine | InlineLine | OptionLine
MemoryLine = LayoutLine | CacheLine | PrefetchLine

TargetName = Literal["cpu", "gpu", "llvm", "cuda", "opencl"]
TARGET_NAMES: tuple[TargetName, ...] = ("cpu", "gpu", "llvm", "cuda", "opencl")


@dataclass(frozen=True, slots=True)
class ScheduleLayer:
    target: TargetName
    lines: tuple[ScheduleLine, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class MemoryLayer:
    target: TargetName
    lines: tuple[MemoryLine, ...]
    span: Span = _span()


# ---------------------------------------------------------------- the kernel
@dataclass(frozen=True, slots=True)
class Size:
    name: str
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Param:
    """``x: const f32[N, C]``; no dims means a one-element tensor of shape ()."""

    name: str
    dtype: DType
    dims: tuple[Expr, ...]
    const: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ComputeLayer:
    body: tuple[Stmt, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A whole file: top-level macros, templates and tables, header, and the three layers.

    At most one schedule and one memory layer per target name, in the order written.
    """

    prelude: tuple[DefStmt | CombinerStmt | TemplateStmt | TableStmt, ...]
    name: str
    sizes: tuple[Size, ...]
    inputs: tuple[Param, ...]
    outputs: tuple[Param, ...]
    compute: ComputeLayer
    schedules: tuple[ScheduleLayer, ...] = ()
    memories: tuple[MemoryLayer, ...] = ()
    span: Span = _span()
