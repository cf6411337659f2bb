"""Prefetches: the addresses that a stage will read some iterations later, line by line."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor, Var
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.emit.boxes import Box, Span, image, union, whole, within
from edgekernelbench.lowering.emit.context import Context
from edgekernelbench.lowering.expr.linear import Linear, int_const, linear, to_expr
from edgekernelbench.lowering.expr.rewrite import loads, substitute
from edgekernelbench.lowering.expr.simplify import simplify
from edgekernelbench.lowering.nest import LetValue, Prefetch, Stmt
from edgekernelbench.lowering.plan import Ahead, StagePlan, reduce_axes

LINE_BYTES = 64
MAX_LINES = 64


@dataclass(slots=True)
class Prefetcher:
    """Emits the prefetches of one stage; called inside each of its loops that has a variable."""

    ctx: Context
    plan: StagePlan
    wishes: tuple[Ahead, ...]

    def __call__(self, depth: int, box: Box, var: Var, last: Expr) -> list[Stmt]:
        """What is fetched in loop number ``depth``, whose last iteration is ``last``."""
        out: list[Stmt] = []
        for wish in self.wishes:
            if wish.depth != depth:
                continue
            then = self.ctx.loop_var(f"{var.name}_ahead", *self.ctx.ranges[var])
            step = core.Binary("add", core.VarRef(var), int_const(wish.ahead), var.dtype)
            out.append(LetValue(then, core.Binary("min", step, last, var.dtype)))
            out += self._lines(wish, self._moved(box, var, then))
        return out

    def _moved(self, box: Box, var: Var, then: Var) -> Box:
        """The box of a later iteration, with the reduction axes that it does not mention."""
        later: dict[Var, Expr] = {var: core.VarRef(then)}
        moved = {
            axis: Span(simplify(substitute(span.base, later), self.ctx.ranges), span.extent)
            for axis, span in box.items()
        }
        inner = reduce_axes(self.plan.stage)
        return {**{v: whole(a.extent) for v, a in inner.items()}, **moved}

    def _lines(self, wish: Ahead, box: Box) -> list[Stmt]:
        found = [load for expr in self.plan.exprs for load in loads(expr)]
        read = [load for load in found if load.tensor.name == wish.tensor]
        tensor = read[0].tensor
        region = self._region(tensor, read, box)
        buffer, spans = self._stored(tensor, region)
        out: list[Stmt] = []
        bases = [self._bound(span.base, out) for span in spans]
        strides = [prod(buffer.shape[d + 1 :]) for d in range(len(spans))]
        offsets = _offsets(spans, buffer, _is_aligned(spans, strides, buffer.dtype.bytes))
        if len(offsets) > MAX_LINES:
            loop = self.plan.pieces[wish.depth].name
            message = (
                f"`{self.plan.stage.name}` reads more than {MAX_LINES} cache lines of "
                f"`{wish.label}` in one iteration of `{loop}`"
            )
            help = "name a loop further inside"
            self.ctx.refuse(rules.PREFETCH_SIZE, self.plan.stage.name, message, help, wish.span)
            return []
        for offset in offsets:
            pairs = zip(bases, offset, strict=True)
            where = tuple(to_expr(linear(b).shifted(o), b.dtype) for b, o in pairs)
            out.append(Prefetch(buffer, tuple(self.ctx.simple(i) for i in where)))
        return out

    def _region(self, tensor: Tensor, read: list[core.Load], box: Box) -> list[Span]:
        """What all reads together cover, dimension by dimension."""
        out: list[Span] = []
        for dim, size in enumerate(tensor.shape):
            found = image(read[0].indices[dim], box, self.ctx.ranges)
            for load in read[1:]:
                more = image(load.indices[dim], box, self.ctx.ranges)
                found = union(found, more, self.ctx.ranges)
            out.append(within(found, size, self.ctx.ranges))
        return out

    def _stored(self, tensor: Tensor, region: list[Span]) -> tuple[Tensor, list[Span]]:
        """The region in the buffer that holds the tensor."""
        storage = self.ctx.storages.get(tensor.name)
        if storage is None:
            return tensor, region
        part: Mapping[Var, Span] = dict(zip(storage.formals, region, strict=True))
        spans = [
            within(image(index, part, self.ctx.ranges), size, self.ctx.ranges)
            for index, size in zip(storage.index, storage.buffer.shape, strict=True)
        ]
        return storage.buffer, spans

    def _bound(self, base: Expr, out: list[Stmt]) -> Expr:
        """The base as a scalar: what data it depends on is read once."""
        lets, value = self.ctx.value(base, {})
        out += lets
        if not any(isinstance(node, core.Load) for node in core.walk(value)):
            return value
        var = self.ctx.names.var("ahead")
        var = Var(var.name, var.uid, value.dtype)
        self.ctx.ranges[var] = self.ctx.range_of(value)
        out.append(LetValue(var, value))
        return core.VarRef(var)


def fetcher(ctx: Context, plan: StagePlan) -> Prefetcher | None:
    """The prefetches in the loops of a stage, None when there are none."""
    wishes = ctx.plan.ahead.get(plan.stage.name)
    return None if wishes is None else Prefetcher(ctx, plan, wishes)


def _is_aligned(spans: list[Span], strides: list[int], size: int) -> bool:
    """Whether the rows of the region provably start at cache lines (buffers do)."""
    flat = Linear()
    for span, stride in zip(spans, strides, strict=True):
        flat = flat.plus(linear(span.base).times(stride))
    rows = [stride for span, stride in zip(spans[:-1], strides, strict=False) if span.extent > 1]
    terms = (*flat.terms.values(), flat.const, *rows)
    return all(term * size % LINE_BYTES == 0 for term in terms)


def _offsets(spans: list[Span], buffer: Tensor, aligned: bool) -> list[tuple[int, ...]]:
    """One element of each cache line of a region, relative to its first; at most a few too many.

    The trailing dimensions that the region covers whole make contiguous runs with the one before.
    """
    inner = len(spans)
    while inner and spans[inner - 1].is_whole(buffer.shape[inner - 1]):
        inner -= 1
    first = max(0, inner - 1)
    run = prod(span.extent for span in spans[first:])
    step = max(1, LINE_BYTES // buffer.dtype.bytes)
    starts = list(range(0, run, step))
    if starts and not aligned and starts[-1] != run - 1:
        starts.append(run - 1)
    shape = [span.extent for span in spans[first:]]
    tails = [_unflat(start, shape) for start in starts]
    heads = itertools.product(*(range(span.extent) for span in spans[:first]))
    wanted = (head + tail for head in heads for tail in tails)
    return list(itertools.islice(wanted, MAX_LINES + 1))


def _unflat(position: int, shape: list[int]) -> tuple[int, ...]:
    out: list[int] = []
    for extent in reversed(shape):
        position, rest = divmod(position, extent)
        out.append(rest)
    return tuple(reversed(out))
