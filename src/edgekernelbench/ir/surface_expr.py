"""Expressions of a kernel file as their author wrote them: part of `surface`, which see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from edgekernelbench.ir.diagnostics import NO_SPAN, Span
from edgekernelbench.ir.dtypes import DType


def no_span() -> Span:
    return field(default=NO_SPAN, compare=False, repr=False)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Num:
    """A literal. ``value`` is int for integers (hexadecimal too), float otherwise."""

    value: int | float
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Name:
    """A size, axis, loop index, scalar stage, macro parameter or predefined constant."""

    id: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Index:
    """``base[args]``: a read, or a slice when passed to a template or macro."""

    base: str
    args: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Call:
    """``fn(args)``: intrinsic, macro, ``pad``, ``edge``, ``dim``, or a template in a bind."""

    fn: str
    args: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class CastExpr:
    """``s8(x)``."""

    dtype: DType
    arg: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class RangeAxis:
    """``k: K`` or ``k: lo..hi``; ``lo`` is None in the first form."""

    name: str
    lo: Expr | None
    hi: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Reduction:
    """``op[axes where cond](body)``, ``op`` any name; a body ``(a, b)`` is a `TupleExpr`."""

    op: str
    axes: tuple[RangeAxis, ...]
    where: Expr | None
    body: Expr
    span: Span = no_span()


UnaryOp = Literal["-", "+", "~", "not"]
BinaryOp = Literal["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "and", "or"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    arg: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinaryOp
    left: Expr
    right: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain ``a < b <= c``: one more operand than operators."""

    ops: tuple[CompareOp, ...]
    operands: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class IfExpr:
    """``then if cond else other``."""

    cond: Expr
    then: Expr
    other: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class TupleExpr:
    items: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class ListExpr:
    """The value of a ``table``; nested for more dimensions."""

    items: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class BlockLet:
    """``let a = e`` (one name) or ``let (a, b) = e``."""

    names: tuple[str, ...]
    value: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class BlockExpr:
    lets: tuple[BlockLet, ...]
    result: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Hole:
    """``?{a, b, ...}``: an integer of a schedule or memory layer that a tuner may choose."""

    choices: tuple[Expr, ...]
    span: Span = no_span()


Expr = (
    Num | Name | Index | Call | CastExpr | Reduction | Unary | Binary | Compare | IfExpr
    | TupleExpr | ListExpr | BlockExpr | Hole
)  # fmt: skip
