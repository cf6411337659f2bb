"""State of one elaboration: diagnostics, fresh variables, limits, and what is known of dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from edgekernelbench.ir import core, surface
from edgekernelbench.ir.bounds import NOTHING, Facts, Prover, Ranges
from edgekernelbench.ir.diagnostics import Report, Rule, Span
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import rules
from edgekernelbench.ir.elaborate.values import POISON, Binding, Poison, Scope, Value, View

MAX_NODES = 200_000
MAX_WORK = 600_000  # nodes over all passes that infer dtypes
MAX_DEPTH = 240
MAX_MACRO_DEPTH = 50
MAX_TEMPLATE_DEPTH = 20
MAX_STAGES = 2_000
MAX_ELEMENTS = 2**31 - 1
MAX_BYTES = 4 << 30


class LimitExceeded(Exception):
    """Ends elaboration after the diagnostic about the limit; never leaves this package."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of an elaboration to return to."""

    names: dict[str, Binding]
    defined: dict[str, Span]
    tables: int
    nodes: int
    stages: int
    total_bytes: int
    failed: set[str]


class Body(Protocol):
    """The part of a body (see `stages`) that has to be undone."""

    scope: Scope
    defined: dict[str, Span]


ExprHandler = Callable[["Context", Scope, Any], Value]


class Context:
    """Shared by all parts of one elaboration.

    Attributes:
        report: where findings go; replaced while dtypes of a loop are being inferred.
        ranges: intervals of variables, lets and stages so far.
        facts: conditions that hold where the expression being elaborated is computed.
        tables: tables met so far, in order.
        inferring: dtypes of histories are not all known yet; see `loops`.
        missed: a read met a tensor whose dtype is not known yet.
        previous: stages of the current outermost loop as the last inference pass saw them.
        declared: stages as this pass has seen them, by full name.
        expanding, templates: macros and templates being expanded, from outside in.
        defining: stages being elaborated, by full name.
        failed: full names of stages whose definition had an error.
        unresolved: stages that were read although their definition failed.
        extents: extents of tensors as written, for suggestions.
        lows: lowest written indices of histories over loops that do not start at 0.
        unfused: how many `nofma` stand around the expression being elaborated.
    """

    def __init__(self, report: Report, handlers: Mapping[type, ExprHandler]) -> None:
        self.report = report
        self.ranges = Ranges()
        self.prover = Prover(self.ranges)
        self.facts: Facts = NOTHING
        self.tables: list[core.Table] = []
        self.inferring = False
        self.missed = False
        self.previous: dict[str, View] = {}
        self.declared: dict[str, View] = {}
        self.failed: set[str] = set()
        self.unresolved: set[str] = set()
        self.extents: dict[str, tuple[str, ...]] = {}
        self.lows: dict[str, tuple[int, ...]] = {}
        self.expanding: list[str] = []
        self.templates: list[str] = []
        self.defining: list[str] = []
        self.loop_depth = 0
        self.unfused = 0
        self.stage_count = 0
        self.total_bytes = 0
        self._handlers = handlers
        self._depths: dict[int, tuple[core.Expr, int]] = {}
        self._next_uid = 0
        self._nodes = 0
        self._work = 0
        self._depth = 0

    @property
    def next_uid(self) -> int:
        return self._next_uid

    def expr(self, scope: Scope, expr: surface.Expr) -> Value:
        """Elaborates a subexpression. Nesting is limited over all macros together, so that no
        text makes any pass recurse too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._too_deep(expr.span)
        value = self._handlers[type(expr)](self, scope, expr)
        if isinstance(value, core.Expr) and self._depth_of(value) > MAX_DEPTH:
            self._too_deep(expr.span)
        self._depth -= 1
        return value

    def _too_deep(self, span: Span) -> None:
        self.stop(
            f"expressions nest more than {MAX_DEPTH} deep here, macros included",
            span,
            ["compute a part in a stage of its own"],
        )

    def _depth_of(self, expr: core.Expr) -> int:
        """Nesting of a core expression, without recursion; each node is looked at once."""
        stack = [expr]
        while stack:
            top = stack[-1]
            below = core.children(top)
            missing = [e for e in below if id(e) not in self._depths]
            if missing:
                stack += missing
                continue
            depth = 1 + max((self._depths[id(e)][1] for e in below), default=0)
            self._depths[id(top)] = (top, depth)
            stack.pop()
        return self._depths[id(expr)][1]

    def is_safe(self, expr: core.Expr) -> bool:
        """True when no signed arithmetic in ``expr`` can overflow here."""
        return self.ranges.of(expr).safe or self.prover.safe(expr, self.facts)

    def mark(self, body: Body) -> Mark:
        """What `reset` needs to forget everything elaborated from here on."""
        return Mark(
            dict(body.scope.names),
            dict(body.defined),
            len(self.tables),
            self._nodes,
            self.stage_count,
            self.total_bytes,
            set(self.failed),
        )

    def reset(self, mark: Mark, body: Body) -> None:
        body.scope.names = dict(mark.names)
        body.defined = dict(mark.defined)
        del self.tables[mark.tables :]
        self._nodes = mark.nodes
        self.stage_count = mark.stages
        self.total_bytes = mark.total_bytes
        self.failed = set(mark.failed)

    def lows_of(self, tensor: core.Tensor) -> tuple[int, ...]:
        """The lowest written index of each dimension."""
        return self.lows.get(tensor.name, (0,) * len(tensor.shape))

    def fresh(self, name: str, dtype: DType = DType.S32) -> core.Var:
        var = core.Var(name, self._next_uid, dtype)
        self._next_uid += 1
        return var

    def error(
        self,
        rule: Rule,
        message: str,
        span: Span | None,
        help: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> Poison:
        notes = tuple(notes)
        if self.expanding:
            notes = (
                *notes,
                "while expanding " + " in ".join(f"`{n}`" for n in self.expanding[:-4:-1]),
            )
        self.report.error(rule, message, span, help, notes)
        return POISON

    def stop(self, message: str, span: Span | None, help: Iterable[str] = ()) -> None:
        self.error(rules.LIMIT, message, span, help)
        raise LimitExceeded

    def count(self, span: Span | None, nodes: int = 1) -> None:
        """Books core nodes; beyond the limit elaboration ends."""
        self._nodes += nodes
        self._work += nodes
        if self._nodes > MAX_NODES or self._work > MAX_WORK:
            self.stop(
                f"the kernel expands to more than {MAX_NODES:,} operations",
                span,
                ["use axes, reductions and `seq` instead of repeated text"],
            )
