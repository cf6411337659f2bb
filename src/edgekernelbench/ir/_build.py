"""Actions of the grammar: children of a rule in, one node of `surface` out.

lark calls these while it parses, bottom-up, so no depth of the text becomes depth of the Python
stack. All tokens are kept as children: the first and the last child give the node's span.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from lark import Token

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.diagnostics import Span
from edgekernelbench.ir.dtypes import DType

_ANNOTATIONS = tuple(word.upper() for word in get_args(s.Annotation))


@dataclass(frozen=True, slots=True)
class Layer:
    """A section as written: its target is not yet known to be one."""

    kind: str
    target: str
    target_span: Span
    lines: tuple[Any, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class File:
    """A whole text before the checks that need to see all of it."""

    prelude: tuple[Any, ...]
    name: str
    name_span: Span
    sizes: tuple[s.Size, ...]
    inputs: tuple[s.Param, ...]
    outputs: tuple[s.Param, ...]
    sections: tuple[s.ComputeLayer | Layer, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class _Group:
    """Items of a part that is no node of its own."""

    items: tuple[Any, ...]
    span: Span


Children = list[Any]


def _start(child: Any) -> int:
    return child.start_pos or 0 if isinstance(child, Token) else child.span.start


def _end(child: Any) -> int:
    return child.end_pos or 0 if isinstance(child, Token) else child.span.end


def _span(children: Children) -> Span:
    return Span(_start(children[0]), _end(children[-1]))


def _at(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _nodes(children: Children) -> tuple[Any, ...]:
    return tuple(c for c in children if not isinstance(c, Token))


def _names(children: Children) -> list[Token]:
    return [c for c in children if isinstance(c, Token) and c.type == "NAME"]


def _token(children: Children, *types: str) -> Token | None:
    return next((c for c in children if isinstance(c, Token) and c.type in types), None)


def _is(child: Any, kind: str) -> bool:
    return isinstance(child, Token) and child.type == kind


def _group(children: Children, index: int) -> tuple[Any, ...]:
    """Items of the group at an index, or nothing where another child stands."""
    child = children[index]
    return child.items if isinstance(child, _Group) else ()


class Builder:
    """One method per rule and alias of the grammar, named like it."""

    # ---- expressions
    def number(self, c: Children) -> s.Num:
        text = str(c[0])
        if c[0].type == "FLOAT":
            return s.Num(float(text), _at(c[0]))
        return s.Num(int(text, 16 if text[:2] in ("0x", "0X") else 10), _at(c[0]))

    def name(self, c: Children) -> s.Name:
        return s.Name(str(c[0]), _at(c[0]))

    def index(self, c: Children) -> s.Index:
        return s.Index(str(c[0]), _nodes(c), _span(c))

    def call(self, c: Children) -> s.Call:
        return s.Call(str(c[0]), _nodes(c), _span(c))

    def cast(self, c: Children) -> s.CastExpr:
        return s.CastExpr(DType(str(c[0])), c[2], _span(c))

    def axis(self, c: Children) -> s.RangeAxis:
        bounds = _nodes(c)
        low = bounds[0] if len(bounds) == 2 else None
        return s.RangeAxis(str(c[0]), low, bounds[-1], _span(c))

    def reduction(self, c: Children) -> s.Reduction:
        axes = tuple(x for x in c if isinstance(x, s.RangeAxis))
        keyword = next((k for k, x in enumerate(c) if _is(x, "WHERE")), None)
        opening = max(k for k, x in enumerate(c) if _is(x, "LPAR"))
        where = None if keyword is None else c[keyword + 1]
        items = _nodes(c[opening:])
        if len(items) == 1 and not _is(c[-2], "COMMA"):
            return s.Reduction(str(c[0]), axes, where, items[0], _span(c))
        body = s.TupleExpr(items, _span(c[opening:]))
        return s.Reduction(str(c[0]), axes, where, body, _span(c))

    def unary(self, c: Children) -> s.Unary:
        return s.Unary(str(c[0]), c[1], _span(c))  # type: ignore[arg-type]

    def binary(self, c: Children) -> s.Binary:
        return s.Binary(str(c[1]), c[0], c[2], _span(c))  # type: ignore[arg-type]

    def compare(self, c: Children) -> s.Compare:
        ops = tuple(str(x) for x in c if isinstance(x, Token))
        return s.Compare(ops, _nodes(c), _span(c))  # type: ignore[arg-type]

    def if_expr(self, c: Children) -> s.IfExpr:
        return s.IfExpr(c[2], c[0], c[4], _span(c))

    def paren(self, c: Children) -> s.Expr:
        return replace(c[1], span=_span(c))

    def tuple_expr(self, c: Children) -> s.TupleExpr:
        return s.TupleExpr(_nodes(c), _span(c))

    def list_expr(self, c: Children) -> s.ListExpr:
        return s.ListExpr(_nodes(c), _span(c))

    def hole(self, c: Children) -> s.Hole:
        return s.Hole(_nodes(c), _span(c))

    def block(self, c: Children) -> s.BlockExpr:
        *lets, result = _nodes(c)
        return s.BlockExpr(tuple(lets), result, _span(c))

    def block_let(self, c: Children) -> s.BlockLet:
        names = _group(c, 2) or (str(c[1]),)
        return s.BlockLet(names, c[-1], _span(c))

    # ---- compute
    def lax(self, c: Children) -> s.LeftAxis:
        return s.LeftAxis(str(c[0]), c[2] if len(c) == 3 else None, _span(c))

    def stage(self, c: Children) -> s.StageStmt:
        left = c[0]
        return s.StageStmt((left.name,), left.dtype, left.axes, c[-1], _span(c), left.span)

    def left(self, c: Children) -> s.Left:
        dtype = _token(c, "DTYPE")
        axes = tuple(x for x in c if isinstance(x, s.LeftAxis))
        return s.Left(str(c[0]), DType(str(dtype)) if dtype else None, axes, _at(c[0]))

    def tuple_stage(self, c: Children) -> s.TupleStmt:
        *lefts, value = _nodes(c)
        return s.TupleStmt(tuple(lefts), value, _span(c))

    def bind(self, c: Children) -> s.StageStmt:
        targets, dtype = tuple(map(str, _names(c))), _token(c, "DTYPE")
        return s.StageStmt(
            targets, DType(str(dtype)) if dtype else None, None, c[-1], _span(c), _at(c[0])
        )

    def loop_head(self, c: Children) -> _Group:
        return _Group((str(c[0]), c[1] if len(c) > 1 else None, len(c) > 2), _span(c))

    def loop(self, c: Children) -> s.LoopStmt:
        kind, axis, reverse = c[0].items
        return s.LoopStmt(kind, axis, reverse, _nodes(c[1:]), _span(c))

    def let(self, c: Children) -> s.LetStmt:
        return s.LetStmt(str(c[1]), c[3], _span(c))

    def table(self, c: Children) -> s.TableStmt:
        return s.TableStmt(str(c[1]), DType(str(c[3])), _group(c, 4), c[6], _span(c))

    def names(self, c: Children) -> _Group:
        return _Group(tuple(map(str, _names(c))), _span(c))

    def defn(self, c: Children) -> s.DefStmt:
        return s.DefStmt(str(c[1]), _group(c, 3), c[-1], _span(c))

    def side(self, c: Children) -> _Group:
        return _Group(_group(c, 1) if len(c) > 1 else (str(c[0]),), _span(c))

    def combiner(self, c: Children) -> s.CombinerStmt:
        left, right = (x.items for x in c if isinstance(x, _Group))
        keyword = next(k for k, x in enumerate(c) if _is(x, "INIT"))
        return s.CombinerStmt(str(c[1]), left, right, c[keyword + 1], c[-1], _span(c))

    def neutral(self, c: Children) -> s.Expr:
        if _is(c[0], "LPAR"):
            items = _nodes(c)
            plain = len(items) == 1 and not _is(c[-2], "COMMA")
            return replace(items[0], span=_span(c)) if plain else s.TupleExpr(items, _span(c))
        value = self.name(c[-1:]) if _is(c[-1], "NAME") else self.number(c[-1:])
        return s.Unary("-", value, _span(c)) if len(c) == 2 else value

    def template_head(self, c: Children) -> _Group:
        if len(c) == 1:
            return _Group(("", (), ()), _span(c))
        return _Group((str(c[1]), _group(c, 3), _group(c, -2)), _span(c))

    def template(self, c: Children) -> s.TemplateStmt:
        name, params, results = c[0].items
        return s.TemplateStmt(name, params, results, _nodes(c[1:]), _span(c))

    # ---- schedule and memory
    def ref(self, c: Children) -> s.Ref:
        return s.Ref("".join(map(str, c)), _span(c))

    def piece(self, c: Children) -> s.Piece:
        annotation = _token(c, *_ANNOTATIONS)
        names = list(map(str, _names(c)))
        label = names[0] if len(names) == 2 else None
        step = c[-1] if not isinstance(c[-1], Token) else None
        word = str(annotation) if annotation else None
        return s.Piece(word, names[-1], step, label, _span(c))  # type: ignore[arg-type]

    def loops(self, c: Children) -> s.LoopsLine:
        return s.LoopsLine(c[1], tuple(x for x in c if isinstance(x, s.Piece)), _span(c))

    def wave(self, c: Children) -> s.WaveLine:
        return s.WaveLine(c[1], tuple(x for x in c if isinstance(x, s.Piece)), _span(c))

    def place(self, c: Children) -> s.PlaceLine:
        return s.PlaceLine(_nodes(c), *self._loop_of(c), _span(c))

    def _loop_of(self, c: Children) -> tuple[s.Ref, str]:
        """Stage and loop of ``in S.k0``."""
        *target, loop = _names(c)
        ref = s.Ref(".".join(map(str, target)), Span(_start(target[0]), _end(target[-1])))
        return ref, str(loop)

    def cached(self, c: Children) -> s.Cached:
        dtype = _token(c, "DTYPE")
        return s.Cached(c[0], DType(str(dtype)) if dtype else None, _span(c))

    def cache(self, c: Children) -> s.CacheLine:
        return s.CacheLine(_nodes(c), *self._loop_of(c), _span(c))

    def prefetch(self, c: Children) -> s.PrefetchLine:
        *tensors, ahead = _nodes(c)
        return s.PrefetchLine(tuple(tensors), *self._loop_of(c), ahead, _span(c))

    def option(self, c: Children) -> s.OptionLine:
        return s.OptionLine(str(c[1]), c[2], _span(c))

    def inline(self, c: Children) -> s.InlineLine:
        return s.InlineLine(_nodes(c), _span(c))

    def layout(self, c: Children) -> s.LayoutLine:
        target = tuple(x for x in _nodes(c[2:]) if not isinstance(x, _Group))
        return s.LayoutLine(c[1], _group(c, 3), target, _span(c))

    # ---- sections, header, file
    def target(self, c: Children) -> _Group:
        return _Group((str(c[0]),), _span(c))

    def compute(self, c: Children) -> s.ComputeLayer:
        return s.ComputeLayer(_nodes(c), _span(c))

    def schedule(self, c: Children) -> Layer:
        return Layer(str(c[0]), c[2].items[0], c[2].span, _nodes(c[3:]), _span(c))

    memory = schedule

    def dims(self, c: Children) -> _Group:
        return _Group(_nodes(c), _span(c))

    params = sizes = dims

    def param(self, c: Children) -> s.Param:
        dtype = _token(c, "DTYPE")
        dims = _group(c, -1)
        const = _token(c, "CONST") is not None
        return s.Param(str(c[0]), DType(str(dtype)), dims, const, _span(c))

    def size(self, c: Children) -> s.Size:
        return s.Size(str(c[0]), c[2], _span(c))

    def header(self, c: Children) -> _Group:
        if len(c) == 1:
            return _Group(((), (), ()), _span(c))
        arrow = next(i for i, x in enumerate(c) if isinstance(x, Token) and x.type == "ARROW")
        sizes = c[0].items if isinstance(c[0], _Group) else ()
        return _Group((sizes, _group(c, arrow - 2), c[-2].items), _span(c))

    def kernel(self, c: Children) -> File:
        sizes, inputs, outputs = c[2].items
        return File((), str(c[1]), _at(c[1]), sizes, inputs, outputs, _nodes(c[3:]), _span(c))

    def start(self, c: Children) -> File:
        nodes = _nodes(c)
        return replace(nodes[-1], prelude=nodes[:-1], span=_span(c))
