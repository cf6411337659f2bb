"""What a name or an expression stands for while a kernel is elaborated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from edgekernelbench.ir import core, surface


class Poison(Enum):
    """The value of an expression in which an error was already reported (or, while dtypes are
    being inferred, of one that is not known yet). It silences everything computed from it."""

    POISON = 0


POISON = Poison.POISON


@dataclass(frozen=True, slots=True)
class Number:
    """A compile-time number. It adapts to the dtype it is used with."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class View:
    """A tensor, or a slice of it with leading indices fixed.

    ``lows`` holds the lowest written index per dimension of the tensor (not 0 for histories of
    loops ``lo..hi``).
    """

    tensor: core.Tensor
    lows: tuple[int, ...]
    prefix: tuple[core.Expr, ...] = ()

    @property
    def rank(self) -> int:
        """Dimensions still to be indexed."""
        return len(self.tensor.shape) - len(self.prefix)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape[len(self.prefix) :]


@dataclass(frozen=True, slots=True)
class TupleValue:
    """Several values, with the lets that their expressions need around them."""

    items: tuple[Value, ...]
    lets: tuple[tuple[core.Var, core.Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """An axis or a loop index; ``loop`` is set for the latter.

    ``value`` is what the name stands for where that is not the variable itself.
    """

    ref: core.VarRef
    loop: LoopInfo | None = None
    value: core.Expr | None = None


@dataclass(frozen=True, slots=True)
class LoopInfo:
    kind: str
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A stage of the same body that is not defined yet."""

    full_name: str


Scalar = Number | core.Expr
Value = Number | core.Expr | View | TupleValue | Poison
Binding = Value | Index | Pending


class Scope:
    """Names in view: an environment with a parent. Functions have a name space of their own."""

    __slots__ = ("functions", "names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Binding] = {}
        self.functions: dict[str, Function] = {}

    def find(self, name: str) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def function(self, name: str) -> Function | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.functions.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def visible(self) -> set[str]:
        """All names in view, for suggestions."""
        out: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            out |= scope.names.keys()
            scope = scope.parent
        return out

    def visible_functions(self) -> set[str]:
        out: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            out |= scope.functions.keys()
            scope = scope.parent
        return out


@dataclass(frozen=True, slots=True)
class Macro:
    stmt: surface.DefStmt
    scope: Scope


@dataclass(frozen=True, slots=True)
class TemplateValue:
    stmt: surface.TemplateStmt
    scope: Scope


@dataclass(frozen=True, slots=True)
class CombinerValue:
    """``sound`` is false when an error in its head was reported."""

    stmt: surface.CombinerStmt
    scope: Scope
    sound: bool = True


Function = Macro | TemplateValue | CombinerValue
