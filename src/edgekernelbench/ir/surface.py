"""The syntax tree of a kernel file, as its author wrote it.

Spans do not take part in equality, so ``parse(print(kernel)) == kernel`` holds. Macros, templates
and sizes are still unexpanded here; ``elaborate`` turns a `Kernel` into a `core.Program`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.surface_expr import Binary as Binary
from edgekernelbench.ir.surface_expr import BinaryOp as BinaryOp
from edgekernelbench.ir.surface_expr import BlockExpr as BlockExpr
from edgekernelbench.ir.surface_expr import BlockLet as BlockLet
from edgekernelbench.ir.surface_expr import Call as Call
from edgekernelbench.ir.surface_expr import CastExpr as CastExpr
from edgekernelbench.ir.surface_expr import Compare as Compare
from edgekernelbench.ir.surface_expr import CompareOp as CompareOp
from edgekernelbench.ir.surface_expr import Expr as Expr
from edgekernelbench.ir.surface_expr import Hole as Hole
from edgekernelbench.ir.surface_expr import IfExpr as IfExpr
from edgekernelbench.ir.surface_expr import Index as Index
from edgekernelbench.ir.surface_expr import ListExpr as ListExpr
from edgekernelbench.ir.surface_expr import Name as Name
from edgekernelbench.ir.surface_expr import Num as Num
from edgekernelbench.ir.surface_expr import RangeAxis as RangeAxis
from edgekernelbench.ir.surface_expr import Reduction as Reduction
from edgekernelbench.ir.surface_expr import TupleExpr as TupleExpr
from edgekernelbench.ir.surface_expr import Unary as Unary
from edgekernelbench.ir.surface_expr import UnaryOp as UnaryOp
from edgekernelbench.ir.surface_expr import no_span


# ---------------------------------------------------------------- compute layer
@dataclass(frozen=True, slots=True)
class LeftAxis:
    """An item of a stage's left side: ``i: M`` or bare ``i`` (extent None)."""

    name: str
    extent: Expr | None
    span: Span = no_span()


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
    span: Span = no_span()
    name_span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Left:
    """One left side of a `TupleStmt`: ``name: dtype[axes]``."""

    name: str
    dtype: DType | None
    axes: tuple[LeftAxis, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class TupleStmt:
    """``m[i: M], s[i: M] = value``: a stage for each component of a tuple."""

    lefts: tuple[Left, ...]
    value: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class LoopStmt:
    """``seq t: L reversed { ... }`` or ``each c: C { ... }``."""

    kind: Literal["seq", "each"]
    axis: RangeAxis
    reverse: bool
    body: tuple[Stmt, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class LetStmt:
    """A compile-time number at stage level."""

    name: str
    value: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class TableStmt:
    name: str
    dtype: DType
    dims: tuple[Expr, ...]
    value: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class DefStmt:
    """``def name(params) = body``: an expression macro."""

    name: str
    params: tuple[str, ...]
    body: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class CombinerStmt:
    """``combiner name((a, b), (c, d)) init (x, y) = body``: merges two partial results."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    init: Expr
    body: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class TemplateStmt:
    """``template name(params) -> (results) { body }``."""

    name: str
    params: tuple[str, ...]
    results: tuple[str, ...]
    body: tuple[Stmt, ...]
    span: Span = no_span()


Stmt = (
    StageStmt | TupleStmt | LoopStmt | LetStmt | TableStmt | DefStmt | CombinerStmt | TemplateStmt
)


# ---------------------------------------------------------------- schedule and memory layers
Annotation = Literal[
    "parallel", "block", "thread", "warp", "vectorize", "unroll", "scatter", "dot4", "mma"
]


@dataclass(frozen=True, slots=True)
class Ref:
    """A dotted stage name such as ``Y``, ``Y.sum`` or ``a.u``."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Piece:
    """One loop of a nest: ``parallel i by 8``; ``label`` is the name in ``i_outer = i by 8``.

    ``scatter v`` is no loop: it says where in the nest elements land along an axis.
    """

    annotation: Annotation | None
    axis: str
    step: Expr | None
    label: str | None = None
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class LoopsLine:
    """``loops S (pieces)``: the final nest of S, outermost first."""

    stage: Ref
    pieces: tuple[Piece, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class WaveLine:
    """``wave S (i, vectorize j)``: the ``seq`` loops i and j around S run by diagonals."""

    stage: Ref
    pieces: tuple[Piece, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class PlaceLine:
    """``place A, B in S.j0``: ``target`` is S, ``loop`` is j0."""

    stages: tuple[Ref, ...]
    target: Ref
    loop: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class InlineLine:
    stages: tuple[Ref, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class LayoutLine:
    """``layout T [k, j] -> [j // 32, k, j % 32]``."""

    tensor: Ref
    axes: tuple[str, ...]
    target: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class OptionLine:
    """``option vector_bits 256``: a word or a number for the toolchain of one backend."""

    name: str
    value: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Cached:
    """One tensor of a `cache` line; ``dtype`` is that of the copy, None for the tensor's own."""

    tensor: Ref
    dtype: DType | None = None
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class CacheLine:
    """``cache X, W: f32 in S.k0``: what S reads of them inside that loop is copied there."""

    tensors: tuple[Cached, ...]
    target: Ref
    loop: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class PrefetchLine:
    """``prefetch T in S.p ahead 4``: S will read it four iterations later."""

    tensors: tuple[Ref, ...]
    target: Ref
    loop: str
    ahead: Expr
    span: Span = no_span()


ScheduleLine = LoopsLine | WaveLine | PlaceLine | InlineLine | OptionLine
MemoryLine = LayoutLine | CacheLine | PrefetchLine

TargetName = Literal["cpu", "gpu", "llvm", "cuda", "opencl"]
TARGET_NAMES: tuple[TargetName, ...] = ("cpu", "gpu", "llvm", "cuda", "opencl")


@dataclass(frozen=True, slots=True)
class ScheduleLayer:
    target: TargetName
    lines: tuple[ScheduleLine, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class MemoryLayer:
    target: TargetName
    lines: tuple[MemoryLine, ...]
    span: Span = no_span()


# ---------------------------------------------------------------- the kernel
@dataclass(frozen=True, slots=True)
class Size:
    name: str
    value: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Param:
    """``x: const f32[N, C]``; no dims means a one-element tensor of shape ()."""

    name: str
    dtype: DType
    dims: tuple[Expr, ...]
    const: bool = False
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class ComputeLayer:
    body: tuple[Stmt, ...]
    span: Span = no_span()


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
    span: Span = no_span()
