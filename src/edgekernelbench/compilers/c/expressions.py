"""Expressions of the loop program in C.

A value that is used more than once, and every chain deeper than a bound, becomes a constant of its
own in front of the statement. Products are contracted here, into `mad_f32`, and not by the
compiler: so every compiler of a machine rounds alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgekernelbench.compilers.c.calls import call, power
from edgekernelbench.compilers.c.functions import c_type, integer
from edgekernelbench.compilers.contraction import becomes_integer
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.expr.linear import Ranges
from edgekernelbench.lowering.expr.ranges import range_of

_MAX_DEPTH = 24
_INT32_MAX = (1 << 31) - 1
ATOM, UNARY, PRODUCT, SUM, OTHER = range(5)
"""How tightly a text binds; operands of all other operators are put in parentheses."""


@dataclass(frozen=True, slots=True)
class Text:
    """An expression in C, and how tightly it binds. ``leaf``: it is cheap to repeat."""

    text: str
    level: int = ATOM
    leaf: bool = False

    def within(self, level: int) -> str:
        """For a place where only what binds at least so tightly may stand as it is."""
        return self.text if self.level <= level else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an expression stands.

    Attributes:
        name: of a variable.
        array: of a buffer's pointer.
        declare: writes a line that declares a constant (its type, a wish for its name, its value)
            in front of the statement; the name that it got.
        ranges: of integer variables.
        converted: the float of a half that was converted before, if it was.
        lanes: whether the statement is in a vectorised loop, where branches are avoided.
    """

    name: Callable[[core.Var], Text]
    array: Callable[[Tensor], str]
    declare: Callable[[str, str, str], str]
    ranges: Ranges
    lanes: bool = False
    converted: Callable[[core.Load], str | None] = lambda load: None


@dataclass(slots=True)
class ExpressionPrinter:
    """Prints the expressions of one statement.

    Attributes:
        fenced: keep every float product apart from the addition that uses it.
    """

    place: Place
    fenced: bool = False
    _factors: dict[int, tuple[Text, Text]] = field(default_factory=dict)
    _plain: set[int] = field(default_factory=set)

    def print(self, expr: Expr, index: bool = False, unfenced: core.Binary | None = None) -> Text:
        """The text of ``expr``.

        Args:
            index: an index depends on it, so that its arithmetic never overflows.
            unfenced: products right under it may be contracted in any case.
        """
        order = core.unique_nodes(expr)
        uses = Counter(id(child) for node in order for child in core.children(node))
        self._plain = _index_parts(order, expr if index else None)
        fences = self._fences(order, unfenced)
        values: dict[int, Text] = {}
        depths: dict[int, int] = {}
        for node in order:
            below = core.children(node)
            operands = [values[id(child)] for child in below]
            value = self._node(node, operands)
            depth = 1 + max((depths[id(child)] for child in below), default=0)
            if below and not value.leaf and (uses[id(node)] > 1 or depth > _MAX_DEPTH):
                value, depth = self.keep(value, node.dtype), 1
            elif _is_product(node) and id(node) not in fences:
                self._factors[id(node)] = (operands[0], operands[1])
            values[id(node)] = value
            depths[id(node)] = depth
        return values[id(expr)]

    def keep(self, value: Text, dtype: DType) -> Text:
        """The value as something that is cheap to repeat."""
        if value.leaf:
            return value
        return Text(self.place.declare(c_type(dtype), "t", value.text), leaf=True)

    def _fences(self, order: list[Expr], unfenced: core.Binary | None) -> set[int]:
        """Ids of the float products that keep their own rounding."""
        roots: Iterable[list[Expr]] = (order,)
        if not self.fenced:
            roots = (core.unique_nodes(n.arg) for n in order if becomes_integer(n))
        free = set() if unfenced is None else {id(unfenced.left), id(unfenced.right)}
        return {id(n) for nodes in roots for n in nodes if _is_product(n)} - free

    # -------------------------------------------------------------- nodes
    def _node(self, node: Expr, args: list[Text]) -> Text:
        match node:
            case core.Const(value=value, dtype=dtype):
                return literal(value, dtype)
            case core.VarRef(var=var):
                return self.place.name(var)
            case core.Load(tensor=tensor):
                return self._load(node, tensor, args)
            case core.Unary(op=op, dtype=dtype):
                return self._unary(node, op, args[0], dtype)
            case core.Binary():
                return self._binary(node, args[0], args[1])
            case core.Call(fn=fn, dtype=dtype):
                return Text(call(fn, [a.text for a in args], node.args[0].dtype))
            case core.Select():
                return self._select(node, args)
            case core.Cast(arg=arg, dtype=dtype):
                return self.cast(args[0], arg, dtype)
            case _:
                raise TypeError(f"{type(node).__name__} in a loop program")

    def _load(self, node: core.Load, tensor: Tensor, args: list[Text]) -> Text:
        if (known := self.place.converted(node)) is not None:
            return Text(known)
        element = self.element(tensor, node.indices, args)
        if tensor.dtype is DType.F16:
            return Text(f"f32_of_f16({element})")
        if tensor.dtype is DType.BOOL:
            return Text(f"{element} != 0", OTHER)
        return Text(element)

    def element(self, tensor: Tensor, indices: Sequence[Expr], args: Sequence[Text]) -> str:
        """One element of an array, as it is stored."""
        return f"{self.place.array(tensor)}[{self.offset(tensor, indices, args)}]"

    @staticmethod
    def offset(tensor: Tensor, indices: Sequence[Expr], args: Sequence[Text]) -> str:
        """Where an element lies, in elements from the first one."""
        wide = tensor.size > _INT32_MAX or any(i.dtype is not DType.S32 for i in indices)
        terms, constant, stride = [], 0, tensor.size
        for extent, arg in zip(tensor.shape, args, strict=True):
            stride = stride // extent if extent else 0
            if arg.text.isdigit():  # a constant, or a loop that is written out
                constant += int(arg.text) * stride
            elif stride:
                factor = f"(int64_t){arg.within(UNARY)}" if wide else arg.within(PRODUCT)
                alone = factor if wide else arg.within(SUM if not terms else PRODUCT)
                terms.append(alone if stride == 1 else f"{factor} * {stride}")
        if constant or not terms:
            terms.append(str(constant))
        return " + ".join(terms)

    def _unary(self, node: Expr, op: str, arg: Text, dtype: DType) -> Text:
        if op == "not" or (op == "inv" and dtype is DType.BOOL):
            return Text(f"!{arg.within(UNARY)}", UNARY)
        if op == "inv":
            return _narrowed(Text(f"~{arg.within(UNARY)}", UNARY), dtype)
        if dtype is DType.U32:
            return Text(f"0u - {arg.within(PRODUCT)}", SUM)
        if dtype.is_float or id(node) in self._plain:
            return Text(f"-{arg.within(ATOM)}", UNARY)
        return self._wrapped("sub", Text("0"), arg, dtype)

    def _wrapped(self, op: str, a: Text, b: Text, dtype: DType) -> Text:
        wide = dtype.value if dtype.bits >= 32 else "s32"
        return _narrowed(Text(f"{op}_{wide}({a.text}, {b.text})"), dtype)

    def _binary(self, node: core.Binary, a: Text, b: Text) -> Text:
        op, dtype = node.op, node.dtype
        if op in _COMPARISONS:
            return Text(f"{a.within(SUM)} {_COMPARISONS[op]} {b.within(SUM)}", OTHER)
        if op in ("and", "or") or dtype is DType.BOOL:
            return Text(f"{a.within(UNARY)} {_LOGIC[op]} {b.within(UNARY)}", OTHER)
        if op == "pow":
            keep = lambda text: self.keep(Text(text), dtype).text  # noqa: E731
            return Text(power(a.text, b.text, node.right, dtype, keep))
        if dtype.is_float:
            return self._float(node, a, b)
        return self._integer(node, a, b)

    def _float(self, node: core.Binary, a: Text, b: Text) -> Text:
        op, dtype = node.op, node.dtype
        if op in ("min", "max"):  # NaN comes through with a constant, too
            if isinstance(node.right, core.Const):
                a, b = b, a
            name = "f64" if dtype is DType.F64 else "f32"
            return Text(f"{op}_{name}({a.text}, {b.text})")
        if dtype is DType.F16:
            return self._half(op, a, b)
        if op in ("fdiv", "mod"):
            return Text(f"{op}_{dtype.value}({a.text}, {b.text})")
        if op in ("add", "sub") and (fused := self._fused(node, a, b)) is not None:
            return fused
        return _infix(op, a, b)

    def _half(self, op: str, a: Text, b: Text) -> Text:
        """Each operation is rounded to f16; in f32 it has more than twice the bits."""
        if op == "fdiv":
            quotient = _infix("div", a, b).text
            return Text(f"__builtin_floorf(round_f16({quotient}))")
        if op == "mod":
            a, b = self.keep(a, DType.F16), self.keep(b, DType.F16)
            whole = f"__builtin_floorf(round_f16({_infix('div', a, b).text}))"
            product = f"round_f16({whole} * {b.text})"
            return Text(f"round_f16({a.text} - {product})")
        return Text(f"round_f16({_infix(op, a, b).text})")

    def _fused(self, node: core.Binary, a: Text, b: Text) -> Text | None:
        """``x * y`` and its addition as one operation, where one of the operands is a product."""
        name = f"mad_{node.dtype.value}"
        if (factors := self._factors.get(id(node.right))) is not None:
            x, y = factors
            left = x.text if node.op == "add" else f"-{x.within(ATOM)}"
            return Text(f"{name}({left}, {y.text}, {a.text})")
        if (factors := self._factors.get(id(node.left))) is not None:
            x, y = factors
            rest = b.text if node.op == "add" else f"-{b.within(ATOM)}"
            return Text(f"{name}({x.text}, {y.text}, {rest})")
        return None

    def _integer(self, node: core.Binary, a: Text, b: Text) -> Text:
        op, dtype = node.op, node.dtype
        match op:
            case "add" | "mul" if a.text.isdigit() and b.text.isdigit() and self._fits(node):
                x, y = int(a.text), int(b.text)
                return Text(integer(x + y if op == "add" else x * y, dtype), leaf=True)
            case "add" | "sub" if b.text == "0":
                return a
            case "add" | "sub" | "mul":
                if dtype is DType.U32 or id(node) in self._plain or self._fits(node):
                    return _narrowed(_infix(op, a, b), dtype)
                return self._wrapped(op, a, b, dtype)
            case "fdiv" | "mod":
                return self._divided(node, a, b)
            case "shl" | "shr":
                return self._wrapped(op, a, Text(f"(uint32_t){b.within(UNARY)}"), dtype)
            case "min" | "max":
                return self._wrapped(op, a, b, dtype)
            case _:
                return Text(f"{a.within(UNARY)} {_LOGIC[op]} {b.within(UNARY)}", OTHER)

    def _fits(self, node: core.Binary) -> bool:
        """Whether the operation cannot overflow, by the ranges of its operands."""
        (a, b), (c, d) = (range_of(side, self.place.ranges) for side in (node.left, node.right))
        match node.op:
            case "add":
                bounds = (a + c, b + d)
            case "sub":
                bounds = (a - d, b - c)
            case _:
                bounds = (a * c, a * d, b * c, b * d)
        low, high = node.dtype.int_range
        return node.dtype.bits >= 32 and low <= min(bounds) and max(bounds) <= high

    def _divided(self, node: core.Binary, a: Text, b: Text) -> Text:
        """Floor division, or its remainder, by what is positive."""
        divides, dtype = node.op == "fdiv", node.dtype
        if dtype is DType.U32 or range_of(node.left, self.place.ranges)[0] >= 0:
            return _infix("div" if divides else "rem", a, b)
        match node.right:
            case core.Const(value=int(value)) if value > 0 and value & (value - 1) == 0:
                if divides:
                    return Text(f"{a.within(UNARY)} >> {value.bit_length() - 1}", OTHER)
                return Text(f"{a.within(UNARY)} & {integer(value - 1, dtype)}", OTHER)
        return self._wrapped(node.op, a, b, dtype)

    def _select(self, node: core.Select, args: list[Text]) -> Text:
        cond, then, other = args
        if self.place.lanes:  # both are evaluated: nothing stands in the way of vectors
            if any(isinstance(n, core.Load) for n in core.unique_nodes(node.then)):
                then = self.keep(then, node.dtype)
            if any(isinstance(n, core.Load) for n in core.unique_nodes(node.other)):
                other = self.keep(other, node.dtype)
        return Text(f"{cond.within(UNARY)} ? {then.within(SUM)} : {other.within(SUM)}", OTHER)

    # -------------------------------------------------------------- conversions
    def cast(self, value: Text, arg: Expr, dtype: DType) -> Text:
        """The conversion of `core.Cast`."""
        source = arg.dtype
        if source is dtype:
            return value
        if dtype is DType.BOOL:
            return Text(f"{value.within(SUM)} != 0", OTHER)
        if dtype is DType.F16:
            return self._to_half(value, arg)
        if source.is_float and dtype.is_int:
            name = "f64" if source is DType.F64 else "f32"
            return Text(f"{dtype.value}_of_{name}({value.text})")
        if c_type(source) == c_type(dtype):  # a half is a float already
            return value
        return Text(f"({c_type(dtype)}){value.within(UNARY)}", UNARY)

    def _to_half(self, value: Text, arg: Expr) -> Text:
        if isinstance(arg, core.Load) and arg.tensor.dtype is DType.F16:
            return value
        if arg.dtype is DType.F32:
            return Text(f"round_f16({value.text})")
        if arg.dtype is DType.BOOL or arg.dtype.bits <= 8:
            return Text(f"(float){value.within(UNARY)}", UNARY)
        wide = value.text if arg.dtype is DType.F64 else f"(double){value.within(UNARY)}"
        return Text(f"round_f16_of_f64({wide})")

    def rounded_later(self, value: Text, expr: Expr) -> str:
        """``value`` as a float that the store rounds to f16, and so need not be rounded here."""
        half = value if expr.dtype is DType.F32 else self.cast(value, expr, DType.F16)
        if half.level == ATOM and half.text.startswith("round_f16("):
            return half.text.removeprefix("round_f16(").removesuffix(")")
        return half.text

    def stored(self, value: Text, expr: Expr, tensor: Tensor) -> str:
        """``value`` as an element of ``tensor``: rounded to f16, wrapped to small integers."""
        source, dtype = expr.dtype, tensor.dtype
        if dtype is DType.BOOL:
            return value.text if source is DType.BOOL else f"{value.within(SUM)} != 0"
        if dtype is DType.F16:
            return f"f16_of_f32({self.rounded_later(value, expr)})"
        if source is dtype or (dtype.widened is source and dtype is source):
            return value.text
        return self.cast(value, expr, dtype).text


def literal(value: int | float | bool, dtype: DType) -> Text:
    """A constant; a float is rounded to its dtype first, so 1e40 as f32 is infinite."""
    if dtype is DType.BOOL:
        return Text(str(int(bool(value))), leaf=True)
    if not dtype.is_float:
        text = integer(int(value), dtype)
        return Text(text, UNARY if text.startswith("-") else ATOM, leaf=True)
    with np.errstate(over="ignore"):
        rounded = dtype.numpy.type(value)
    end = "" if dtype is DType.F64 else "f"
    number = float(rounded)
    if math.isnan(number):
        return Text(f'__builtin_nan{end}("")', leaf=True)
    if math.isinf(number):
        text = f"__builtin_inf{end}()"
        return Text(text if number > 0 else f"-{text}", ATOM if number > 0 else UNARY, leaf=True)
    shortest = repr(number) if dtype is DType.F64 else str(np.float32(number))
    text = shortest if any(c in shortest for c in ".e") else f"{shortest}.0"
    return Text(text + end, UNARY if text.startswith("-") else ATOM, leaf=True)


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC = {
    "and": "&", "or": "|", "bitand": "&", "bitor": "|", "bitxor": "^", "min": "&", "max": "|",
}  # fmt: skip
_INFIX = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT),
          "rem": ("%", PRODUCT)}  # fmt: skip


def _infix(op: str, a: Text, b: Text) -> Text:
    sign, level = _INFIX[op]
    return Text(f"{a.within(level)} {sign} {b.within(level - 1)}", level)


def _narrowed(value: Text, dtype: DType) -> Text:
    """Arithmetic of small integers is that of s32, wrapped."""
    return value if dtype.bits >= 32 else Text(f"({c_type(dtype)}){value.within(UNARY)}", UNARY)


def _is_product(node: Expr) -> bool:
    return isinstance(node, core.Binary) and node.op == "mul" and node.dtype.is_float


def _index_parts(order: list[Expr], root: Expr | None) -> set[int]:
    """Ids of the nodes that an index depends on."""
    found = set() if root is None else {id(root)}
    for node in reversed(order):
        if isinstance(node, core.Load) or id(node) in found:
            found.update(id(child) for child in core.children(node))
    return found
