"""Random syntax trees: everything that `parse` can return, and nothing else.

Names may be words of the language that are not reserved (`table`, `kernel`, `by`, ...), in the
places where they hurt most.
"""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.words import RESERVED

_SOFT = [
    *("table", "kernel", "memory", "layout", "place", "loops", "in", "by", "const", "compute"),
    *("cache", "prefetch", "ahead", "option", "scatter", "block", "thread"),
]
_PLAIN = ["x", "y", "acc", "i", "j", "k0", "N", "_t", "sum", "max", "inf", "e1", "f", "Yv"]

names = st.sampled_from(_PLAIN + _SOFT) | st.from_regex(
    r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True
)
names = names.filter(lambda name: name not in RESERVED)
dtypes = st.sampled_from(DType)
dotted = st.lists(names, min_size=1, max_size=3).map(".".join)
refs = st.builds(s.Ref, dotted)

_ints = st.integers(0, 1 << 63) | st.integers(0, 300)
_floats = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
numbers = st.builds(s.Num, _ints | _floats)
_leaves = numbers | st.builds(s.Name, names)
_UNARY = ["-", "+", "~", "not"]
_BINARY = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "and", "or"]
_COMPARE = ["==", "!=", "<", "<=", ">", ">="]


def _some(items: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def _compare(operands: tuple, ops: list) -> s.Compare:
    return s.Compare(tuple(ops[: len(operands) - 1]), operands)


def range_axes(exprs: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(s.RangeAxis, names, st.none() | exprs, exprs)


def _composed(inner: st.SearchStrategy) -> st.SearchStrategy:
    lets = st.builds(s.BlockLet, _some(names, 1), inner)
    return st.one_of(
        st.builds(s.Index, names, _some(inner)),
        st.builds(s.Call, names.filter(lambda name: len(name) < 8), _some(inner)),
        st.builds(s.CastExpr, dtypes, inner),
        st.builds(s.Reduction, names, _some(range_axes(inner), 1), st.none() | inner, inner),
        st.builds(s.Unary, st.sampled_from(_UNARY), inner),
        st.builds(s.Binary, st.sampled_from(_BINARY), inner, inner),
        st.builds(_compare, _some(inner, 2), st.lists(st.sampled_from(_COMPARE), min_size=2)),
        st.builds(s.IfExpr, inner, inner, inner),
        st.builds(s.TupleExpr, _some(inner, 1)),
        st.builds(s.ListExpr, _some(inner, 1)),
        st.builds(s.BlockExpr, _some(lets), inner),
    )


exprs = st.recursive(_leaves, _composed, max_leaves=12)
_small = st.recursive(_leaves, _composed, max_leaves=3)
_holed = _small | st.builds(s.Hole, _some(numbers, 1))

# ---------------------------------------------------------------- compute
_left_axes = st.builds(s.LeftAxis, names, st.none() | _small)
_params = _some(names)
stages = st.one_of(
    st.builds(
        s.StageStmt,
        names.map(lambda n: (n,)),
        st.none() | dtypes,
        st.none() | _some(_left_axes),
        exprs,
    ),
    st.builds(s.StageStmt, _some(names, 2), st.none(), st.none(), exprs),
)
lets = st.builds(s.LetStmt, names, exprs)
tables = st.builds(s.TableStmt, names, dtypes, _some(_small), exprs)
defs = st.builds(s.DefStmt, names, _params, exprs)
_neutral = exprs | numbers | st.builds(s.Unary, st.just("-"), numbers)
combiners = st.builds(s.CombinerStmt, names, _some(names, 1), _some(names, 1), _neutral, exprs)
_lefts = st.builds(s.Left, names, st.none() | dtypes, _some(_left_axes))
tuples = st.builds(s.TupleStmt, _some(_lefts, 2), exprs)


def _nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    kinds = st.sampled_from(["seq", "each"])
    return st.one_of(
        st.builds(s.LoopStmt, kinds, range_axes(_small), st.booleans(), _some(inner)),
        st.builds(s.TemplateStmt, names, _params, _some(names, 1), _some(inner)),
    )


_plain = stages | tuples | lets | tables | defs | combiners
statements = st.recursive(_plain, _nested, max_leaves=4)
templates = st.builds(s.TemplateStmt, names, _params, _some(names, 1), _some(statements))

# ---------------------------------------------------------------- schedule and memory
_pieces = st.builds(
    s.Piece,
    st.none() | st.sampled_from(get_args(s.Annotation)),
    names,
    st.none() | _holed,
    st.none() | names,
)
_amounts = st.one_of(
    st.builds(s.Num, _ints), st.builds(s.Name, names), st.builds(s.Hole, _some(numbers, 1))
)
schedule_lines = st.one_of(
    st.builds(s.LoopsLine, refs, _some(_pieces, 1)),
    st.builds(s.WaveLine, refs, _some(_pieces, 1)),
    st.builds(s.PlaceLine, _some(refs, 1), refs, names),
    st.builds(s.InlineLine, _some(refs, 1)),
    st.builds(s.OptionLine, names, _amounts),
)
_cached = st.builds(s.Cached, refs, st.none() | dtypes)
memory_lines = st.one_of(
    st.builds(s.LayoutLine, refs, _params, _some(_holed, 1)),
    st.builds(s.CacheLine, _some(_cached, 1), refs, names),
    st.builds(s.PrefetchLine, _some(refs, 1), refs, names, _amounts),
)


def _layers(kind: type, lines: st.SearchStrategy) -> st.SearchStrategy:
    layer = st.builds(kind, st.sampled_from(s.TARGET_NAMES), _some(lines))
    return st.lists(layer, max_size=2, unique_by=lambda x: x.target).map(tuple)


# ---------------------------------------------------------------- kernels
_tensors = st.builds(s.Param, names, dtypes, _some(_small), st.booleans())
kernels = st.builds(
    s.Kernel,
    prelude=_some(defs | combiners | tables | templates, 0, 2),
    name=names,
    sizes=_some(st.builds(s.Size, names, _small)),
    inputs=_some(_tensors),
    outputs=_some(_tensors, 1, 2),
    compute=st.builds(s.ComputeLayer, _some(statements, 0, 4)),
    schedules=_layers(s.ScheduleLayer, schedule_lines),
    memories=_layers(s.MemoryLayer, memory_lines),
)
