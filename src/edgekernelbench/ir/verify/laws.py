"""Combiners are tested: any order of combining gives the same, and ``init`` changes nothing.

The laws are tried in float64 (integers in their dtypes) on elements as the reduction's body makes
them: what it reads is drawn at random, small and large, zero, and equal to what other elements
read; axes have different values in different elements. Floats agree within a part in a million.
That finds wrong combiners, and proves none right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Prover
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.interpret import InterpretError, interpret
from edgekernelbench.ir.verify import rules

SAMPLES = 192
TOLERANCE = 1e-6
MAX_CHECKS = 40
MAX_NODES = 4000  # of what makes the elements of one reduction
_ELEMENTS = 5  # as many different elements are combined at most
_SECONDS = 5.0
_SAMPLE = core.Axis(core.Var("t", -1), SAMPLES)
_AT = core.VarRef(_SAMPLE.var)
_FLOATS = np.array([0.0, 1.0, -1.0, 0.5, -2.0, 1e-3, 30.0, -30.0, 1e3, -1e3])

Values = tuple[np.ndarray, ...]  # one array of samples for each component


class Laws:
    """Tests the combiners of one program, each use once."""

    def __init__(self, prover: Prover, report: Report) -> None:
        self._prover = prover
        self._report = report
        self._seen: set[Hashable] = set()

    def check(self, reduce: core.Reduce) -> None:
        """Reports the first law that the combiner breaks on some elements of this reduction."""
        assert reduce.combiner is not None
        tokens = [token for item in reduce.items for token in self._tokens(item)]
        key = (reduce.span, reduce.label, *tokens)
        if key in self._seen or self._report.has_errors:
            return
        self._seen.add(key)
        if len(self._seen) > MAX_CHECKS or len(tokens) > MAX_NODES:
            text = f"a kernel has at most {MAX_CHECKS} different reductions by combiners"
            if len(tokens) > MAX_NODES:
                text = f"the body of `{reduce.label}` is too large to try its combiner on"
            help = ["compute what the elements are made of in a stage"]
            self._report.error(rules.TOO_HARD, text, reduce.span, help)
            return
        try:
            found = _Trial(reduce, self._prover).run()
        except InterpretError as error:
            text = f"the combiner `{reduce.label}` could not be tested: {error}"
            self._report.error(rules.TOO_HARD, text, reduce.span)
            return
        if found is not None:
            message, help = found
            self._report.error(rules.LAWS, message, reduce.span, [*help])

    def _tokens(self, expr: core.Expr) -> Iterator[Hashable]:
        """What tells apart the bodies that one text has in several expansions of a template."""
        for node in core.walk(expr):
            match node:
                case core.Const():
                    yield node.value
                case core.Load() if node.dtype.is_int:
                    known = self._prover.ranges.tensor(node.tensor)
                    yield node.tensor.dtype, known.lo, known.hi
                case core.Unary() | core.Binary():
                    yield node.op
                case core.Call():
                    yield node.fn
            yield type(node).__name__, node.dtype


@dataclass(slots=True)
class _Trial:
    """One combiner, on elements of one body.

    Attributes:
        inputs: what the elements read, by name: an array [element, sample].
        leaves: the reads and free variables of the body, and what stands for them.
        lets: the lets around the reduction that the body uses, each computed in a stage.
        draw: fixed, so that a verdict is always the same.
    """

    reduce: core.Reduce
    prover: Prover
    inputs: dict[str, tuple[core.Tensor, np.ndarray]] = field(default_factory=dict)
    leaves: dict[core.Expr, core.Tensor] = field(default_factory=dict)
    lets: dict[core.Var, core.Stage] = field(default_factory=dict)
    draw: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def run(self) -> tuple[str, tuple[str, ...]] | None:
        """What is wrong with the combiner, and the way out."""
        combiner = self.reduce.combiner
        assert combiner is not None
        self._axes()
        elements = self._elements()
        f = _Function(combiner)
        usable = ~np.any([np.isnan(c) for e in elements for c in e if c.dtype.kind == "f"], axis=0)
        usable = np.broadcast_to(usable, SAMPLES)
        if not usable.any():
            return None
        a, b, c, d, e = (tuple(v[usable] for v in element) for element in elements)
        return (
            _order(f, a, b, c)
            or _order(f, f(a, b), f(c, d), e)
            or _neutral(f, a)
            or _neutral(f, f(a, b))
        )

    # ------------------------------------------------------------ elements
    def _axes(self) -> None:
        """Gives the axes of the reduction other values in each element of a sample."""
        extents = [max(axis.extent, 1) for axis in self.reduce.axes]
        box = max(int(np.prod(extents, dtype=np.int64)), 1)
        spread = max(box, _ELEMENTS)
        first = self.draw.integers(0, spread, SAMPLES)
        step = self.draw.integers(1, max(spread // _ELEMENTS, 2), SAMPLES)
        flat = np.array([(first + n * step) % spread for n in range(_ELEMENTS)])
        for axis, extent in reversed(list(zip(self.reduce.axes, extents, strict=True))):
            whole = axis is self.reduce.axes[0]
            values = flat if whole else flat % extent
            flat = flat // extent
            self._leaf(core.VarRef(axis.var), DType.S32, values)

    def _leaf(self, expr: core.Expr, dtype: DType, values: np.ndarray) -> core.Tensor:
        name = f"d{len(self.leaves)}"
        tensor = core.Tensor(name, dtype, (_ELEMENTS, SAMPLES), "input")
        kind = np.float64 if dtype.is_float else dtype.numpy
        self.inputs[name] = tensor, values.astype(kind)
        self.leaves[expr] = tensor
        return tensor

    def _elements(self) -> list[Values]:
        """Each element's components, by running the body."""
        self._bind_lets()
        stages = list(self.lets.values())
        for n in range(_ELEMENTS):
            for k, item in enumerate(self.reduce.items):
                stages.append(_stage(f"e{n}_{k}", item.dtype, self._placed(item, n, set())))
        tensors = tuple(tensor for tensor, _ in self.inputs.values())
        arrays = {name: array for name, (_, array) in self.inputs.items()}
        made = _run(tuple(stages), tensors, arrays)
        return [
            tuple(made[f"e{n}_{k}"] for k in range(len(self.reduce.items)))
            for n in range(_ELEMENTS)
        ]

    def _bind_lets(self) -> None:
        """Stages for the lets used, those that they use first; without recursion, since a chain
        of lets may be long. They do not vary with the axes of the reduction: one value each."""
        stack = [(var, False) for item in self.reduce.items for var in self._lets_of(item)]
        while stack:
            var, ready = stack.pop()
            value = self.prover.ranges.let_value(var)
            if var in self.lets or value is None:
                continue
            if ready:
                placed = self._placed(value, 0, set())
                self.lets[var] = _stage(f"l{len(self.lets)}", var.dtype, placed)
            else:
                stack.append((var, True))
                stack += [(inner, False) for inner in self._lets_of(value)]

    def _lets_of(self, expr: core.Expr) -> list[core.Var]:
        nodes = list(core.walk(expr))
        own = {v for node in nodes if isinstance(node, core.Block) for v, _ in node.lets}
        refs = (node.var for node in nodes if isinstance(node, core.VarRef))
        known = self.prover.ranges.let_value
        return [var for var in refs if var not in own and known(var) is not None]

    def _placed(self, expr: core.Expr, n: int, bound: set[int]) -> core.Expr:
        """The body for element ``n``: data stands where it reads tensors or variables."""
        match expr:
            case core.Const():
                return expr
            case core.VarRef():
                return expr if expr.var.uid in bound else self._variable(expr, n)
            case core.Load() | core.Reduce():
                return self._data(expr, n)
            case core.Block():
                lets = []
                for var, value in expr.lets:
                    lets.append((var, self._placed(value, n, bound)))
                    bound.add(var.uid)
                return core.Block(tuple(lets), self._placed(expr.result, n, bound), expr.span)
        parts = [self._placed(child, n, bound) for child in core.children(expr)]
        match expr:
            case core.Unary():
                return core.Unary(expr.op, parts[0], expr.dtype)
            case core.Cast():
                return core.Cast(parts[0], expr.dtype)
            case core.Binary(op="fdiv" | "mod") if expr.dtype.is_int:
                # Proved positive for the axes and data there are, which these need not be.
                one = core.Const(1, expr.right.dtype)
                divisor = core.Binary("max", parts[1], one, expr.right.dtype)
                return core.Binary(expr.op, parts[0], divisor, expr.dtype)
            case core.Binary():
                return core.Binary(expr.op, parts[0], parts[1], expr.dtype)
            case core.Select():
                return core.Select(parts[0], parts[1], parts[2], expr.dtype)
        return core.Call(expr.fn, tuple(parts), expr.dtype)

    def _variable(self, expr: core.VarRef, n: int) -> core.Expr:
        let = self.lets.get(expr.var)
        if let is not None:
            return core.Load(let.tensor, (_AT,))
        leaf = core.VarRef(expr.var)
        if leaf not in self.leaves:  # an axis or loop index around: the same in all elements
            known = self.prover.ranges.variable(expr.var)
            values = self.draw.integers(int(known.lo), int(known.hi), SAMPLES, endpoint=True)
            self._leaf(leaf, expr.dtype, np.broadcast_to(values, (_ELEMENTS, SAMPLES)))
        return core.Load(self.leaves[leaf], (core.Const(n, DType.S32), _AT))

    def _data(self, expr: core.Load | core.Reduce, n: int) -> core.Expr:
        if expr not in self.leaves:
            values = self._floats() if expr.dtype.is_float else self._integers(expr)
            for later in range(1, _ELEMENTS):  # equal to what another element reads
                same = self.draw.random(SAMPLES) < 0.2
                values[later] = np.where(same, values[later - 1], values[later])
            self._leaf(expr, expr.dtype, values)
        return core.Load(self.leaves[expr], (core.Const(n, DType.S32), _AT))

    def _floats(self) -> np.ndarray:
        shape = (_ELEMENTS, SAMPLES)
        plain = self.draw.normal(size=shape) * 2.0 ** self.draw.integers(-2, 2, shape)
        edge = self.draw.choice(_FLOATS, shape)
        return np.where(self.draw.random(shape) < 0.3, edge, plain)

    def _integers(self, expr: core.Load | core.Reduce) -> np.ndarray:
        low, high = expr.dtype.int_range
        if isinstance(expr, core.Load):
            known = self.prover.ranges.tensor(expr.tensor)
            low, high = max(low, int(known.lo)), min(high, int(known.hi))
        if not isinstance(expr, core.Load) or expr.tensor.dtype.bits > 16:
            low, high = max(low, -1000), min(high, 1000)
        shape = (_ELEMENTS, SAMPLES)
        low, high = min(low, high), max(low, high)
        plain = self.draw.integers(low, high, shape, endpoint=True)
        edges = [v for v in (0, 1, -1, 2, low, high) if low <= v <= high]
        return np.where(self.draw.random(shape) < 0.4, self.draw.choice(edges, shape), plain)


def _stage(name: str, dtype: DType, expr: core.Expr) -> core.Stage:
    tensor = core.Tensor(name, dtype, (SAMPLES,), "output")
    return core.Stage(name, tensor, (_SAMPLE.var,), (_SAMPLE,), expr)


def _run(
    stages: tuple[core.Stage, ...],
    inputs: tuple[core.Tensor, ...],
    arrays: dict[str, np.ndarray],
) -> dict[str, np.ndarray]:
    outputs = tuple(stage.tensor for stage in stages)
    program = core.Program("trial", (), inputs, outputs, (), stages, 0)
    return interpret(program, arrays, limit_s=_SECONDS)


@dataclass(frozen=True, slots=True)
class _Function:
    """A combiner that can be called with arrays."""

    combiner: core.Combiner

    @property
    def name(self) -> str:
        return self.combiner.name

    @property
    def init(self) -> Values:
        kinds = (np.float64 if c.dtype.is_float else c.dtype.numpy for c in self.combiner.init)
        pairs = zip(self.combiner.init, kinds, strict=True)
        return tuple(np.array([c.value], kind) for c, kind in pairs)

    def __call__(self, a: Values, b: Values) -> Values:
        combiner = self.combiner
        count = max(array.shape[0] for array in (*a, *b))
        axis = core.Axis(core.Var("t", -1), count)
        inputs: list[core.Tensor] = []
        arrays: dict[str, np.ndarray] = {}
        given: list[tuple[core.Var, core.Expr]] = []
        sides = zip((*combiner.left, *combiner.right), (*a, *b), strict=True)
        for k, (var, array) in enumerate(sides):
            tensor = core.Tensor(f"d{k}", var.dtype, (count,), "input")
            inputs.append(tensor)
            arrays[tensor.name] = np.broadcast_to(array, count)
            given.append((var, core.Load(tensor, (core.VarRef(axis.var),))))
        stages = []
        for k, result in enumerate(combiner.results):
            tensor = core.Tensor(f"r{k}", result.dtype, (count,), "output")
            expr = core.Block((*given, *combiner.lets), result)
            stages.append(core.Stage(tensor.name, tensor, (axis.var,), (axis,), expr))
        made = _run(tuple(stages), tuple(inputs), arrays)
        return tuple(made[stage.name] for stage in stages)


Finding = tuple[str, tuple[str, ...]]


def _neutral(f: _Function, a: Values) -> Finding | None:
    init, text = f.init, f"`init` of `{f.name}` is not neutral"
    finite: tuple[str, ...] = ()
    if any(np.isinf(value).any() for value in init):
        finite = ("a large finite number, such as -1e30, often does what `-inf` should",)
    both = f(init, init)
    at = _differs(both, init, ())
    if at is not None:
        shown = f"{f.name}(init, init) is {_show(both, at)}, not {_show(init, 0)}"
        return f"{text}: {shown}", (*finite, "`init` is the result for no elements at all")
    for sides, made in (("init, a", f(init, a)), ("a, init", f(a, init))):
        at = _differs(made, a, a)
        if at is not None:
            shown = f"with a = {_show(a, at)}, {f.name}({sides}) is {_show(made, at)}, not a"
            helps = ("what changes single elements, such as `abs`, belongs in the body",)
            return f"{text}: {shown}", (*helps, *finite)
    return None


def _order(f: _Function, a: Values, b: Values, c: Values) -> Finding | None:
    ab, ba = f(a, b), f(b, a)
    ordered = "a result that depends on the order of the elements is a history: `seq`"
    at = _differs(ab, ba, (*a, *b))
    if at is not None:
        message = (
            f"`{f.name}` is not commutative: with a = {_show(a, at)}, b = {_show(b, at)}, "
            f"{f.name}(a, b) is {_show(ab, at)}, {f.name}(b, a) is {_show(ba, at)}"
        )
        return message, ("ties need a rule that does not depend on the side", ordered)
    left, right = f(ab, c), f(a, f(b, c))
    at = _differs(left, right, (*a, *b, *c))
    if at is None:
        return None
    message = (
        f"`{f.name}` is not associative: with a = {_show(a, at)}, b = {_show(b, at)}, "
        f"c = {_show(c, at)}, {f.name}({f.name}(a, b), c) is {_show(left, at)}, "
        f"{f.name}(a, {f.name}(b, c)) is {_show(right, at)}"
    )
    return message, ("both sides are partial results: prepare single elements in the body", ordered)


def _differs(made: Values, wanted: Values, scale: Values) -> int | None:
    """A sample in which two results differ, one with small numbers if there is a choice."""
    floats = [array for array in (*made, *wanted, *scale) if array.dtype.kind == "f"]
    size = 1.0
    for array in floats:
        finite = np.where(np.isfinite(array), np.abs(array), 0.0)
        size = np.maximum(size, np.where(finite < 1e20, finite, 0.0))
    wrong: np.ndarray = np.zeros(1, np.bool_)
    for x, y in zip(made, wanted, strict=True):
        if x.dtype.kind != "f":
            wrong = wrong | (x != y)
            continue
        with np.errstate(invalid="ignore"):
            close = np.abs(x - y) <= TOLERANCE * size
        wrong = wrong | ~((x == y) | close)
    at = np.flatnonzero(wrong)
    if at.size == 0:
        return None
    weight = sum((_clutter(array) for array in scale), np.zeros(1))
    sizes = np.broadcast_to(weight, wrong.shape)[at]
    return int(at[np.argmin(sizes)])


def _clutter(array: np.ndarray) -> np.ndarray:
    """How much there is to read in numbers."""
    plain = np.abs(np.nan_to_num(array.astype(np.float64), posinf=0, neginf=0))
    return plain + 1e6 * (plain != np.rint(plain))


def _show(values: Values, at: int) -> str:
    numbers = [v[at if v.shape[0] > 1 else 0] for v in values]
    texts = [f"{n:.6g}" if isinstance(n, np.floating) else str(n) for n in numbers]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
