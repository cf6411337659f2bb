"""Random well-formed kernels, as text, with the range of values each input may take.

Every value stays well defined: integers are bounded far inside s32, divisors are positive, floats
stay finite. A float is *exact* as long as float32 holds it without rounding; only exact values
are compared, truncated or searched, so that rounding never decides a branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

INT_LIMIT = 1 << 14
FLOAT_LIMIT = 1024.0
EXACT_BITS = 20  # of the 24 that float32 has

_EXTENTS = (1, 2, 3, 4, 5, 7)
_INPUT_DTYPES = ("f32", "f32", "f32", "f16", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "bool")
_INT_RANGES = {
    "s8": (-9, 9), "u8": (0, 12), "s16": (-20, 20), "u16": (0, 25), "s32": (-15, 15),
    "u32": (0, 30), "bool": (0, 1),
}  # fmt: skip


@dataclass(frozen=True)
class Input:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RandomKernel:
    """``loose``: some output rounds to f16."""

    text: str
    inputs: tuple[Input, ...]
    loose: bool

    def draw(self, seed: int) -> dict[str, np.ndarray]:
        """Inputs in the ranges that the kernel was made for."""
        rng = np.random.default_rng(seed)
        out = {}
        for item in self.inputs:
            if item.dtype in _INT_RANGES:
                low, high = _INT_RANGES[item.dtype]
                values = rng.integers(low, high, item.shape, endpoint=True)
            else:
                values = rng.integers(-12, 12, item.shape, endpoint=True) / 8
            names = {"s": "int", "u": "uint", "f": "float", "b": "bool"}
            kind, bits = names[item.dtype[0]], item.dtype[1:]
            dtype = np.bool_ if kind == "bool" else np.dtype(kind + bits)
            out[item.name] = np.asarray(values).astype(dtype)
        return out


@dataclass(frozen=True)
class Tensor:
    """Something readable. ``kind`` is what a read of it yields: f (float), i (s32), b (bool).

    ``bound``: largest absolute value; ``bits``: binary digits after the point, None if inexact.
    ``wrap``: dtype whose reads must be cast to s32 first.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    bound: float
    bits: int | None = 0
    wrap: bool = False


@dataclass(frozen=True)
class Value:
    """An expression's text (safe to put anywhere), kind, bound and exactness as in `Tensor`."""

    text: str
    kind: str
    bound: float
    bits: int | None = 0


@dataclass(frozen=True)
class AxisName:
    """An index in view: its values are 0..extent-1."""

    name: str
    extent: int


@dataclass
class Maker:
    """Draws one kernel. ``choose`` picks one of a sequence."""

    choose: Callable[[Sequence], object]
    tensors: list[Tensor] = field(default_factory=list)
    scalars: list[Value] = field(default_factory=list)
    names: int = 0
    in_reduction: int = 0

    def pick(self, *options):
        return self.choose(options)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # ------------------------------------------------------------ reads
    def index(self, extent: int, axes: list[AxisName]) -> str:
        """An index that is provably in range."""
        fits = [a.name for a in axes if a.extent <= extent]
        way = self.pick("axis", "axis", "axis", "mod", "clamp", "const", "reverse", "gather")
        if way == "axis" and fits:
            return self.choose(fits)
        if way == "reverse" and fits:
            return f"{extent - 1} - {self.choose(fits)}"
        if way == "const" or not axes:
            return str(self.choose(range(extent)))
        name = self.choose(axes).name
        if way == "gather":
            tables = [t for t in self.tensors if t.kind == "i" and len(t.shape) == 1]
            if tables:
                table = self.choose(tables)
                short = [a.name for a in axes if a.extent <= table.shape[0]]
                read = f"{table.name}[{self.choose(short) if short else 0}]"
                return f"clamp({f's32({read})' if table.wrap else read}, 0, {extent - 1})"
        if way == "clamp":
            return f"min({name} + {self.choose(range(3))}, {extent - 1})"
        return f"{name} % {extent}"

    def border_index(self, extent: int, axes: list[AxisName]) -> str:
        """An index that may lie outside."""
        if not axes or self.pick(True, False, False):
            return self.index(extent, axes)
        name = self.choose(axes).name
        return self.pick(f"{name} - 1", f"{name} + 1", f"2*{name} - 1", f"{name} - 2")

    def read(self, tensor: Tensor, axes: list[AxisName]) -> Value:
        way = self.pick("plain", "plain", "plain", "pad", "edge")
        bound, bits = tensor.bound, tensor.bits
        if not tensor.shape:
            text = tensor.name
        elif way == "plain":
            text = f"{tensor.name}[{', '.join(self.index(d, axes) for d in tensor.shape)}]"
        else:
            text = f"{tensor.name}[{', '.join(self.border_index(d, axes) for d in tensor.shape)}]"
            if way == "edge":
                text = f"edge({text})"
            else:
                filler = "0 > 1" if tensor.kind == "b" else str(self.choose(range(3)))
                text = f"pad({text}, {filler})"
                bound = max(bound, 2)
        if tensor.wrap:
            text = f"s32({text})"
        return Value(text, tensor.kind, bound, bits)

    # ------------------------------------------------------------ expressions
    def value(self, kind: str, axes: list[AxisName], depth: int) -> Value:
        made = {"f": self.float_value, "i": self.int_value, "b": self.bool_value}[kind](axes, depth)
        return _limited(made)

    def leaf(self, kind: str, axes: list[AxisName]) -> Value:
        tensors = [t for t in self.tensors if t.kind == kind]
        scalars = [s for s in self.scalars if s.kind == kind]
        if scalars and self.pick(True, False):
            return self.choose(scalars)
        if tensors and self.choose(range(5)):
            return self.read(self.choose(tensors), axes)
        match kind:
            case "f":
                return Value(self.pick("0.5", "1.25", "(-2.0)", "3.0"), "f", 3, 2)
            case "i" if axes and self.pick(True, False):
                axis = self.choose(axes)
                return Value(axis.name, "i", max(axis.extent - 1, 1))
            case "i":
                return Value(self.pick("1", "2", "(-3)", "7"), "i", 7)
        left, right = self.leaf("i", axes), self.leaf("i", axes)
        return Value(f"({left.text} <= {right.text})", "b", 1)

    def data(self, axes: list[AxisName]) -> str:
        """An integer read from a tensor: nothing computed, which a clamp might not tame."""
        tensors = [t for t in self.tensors if t.kind == "i"]
        return self.read(self.choose(tensors), axes).text if tensors else "2"

    def float_value(self, axes: list[AxisName], depth: int) -> Value:
        if depth <= 0:
            return self.leaf("f", axes)
        way = self.pick(
            "leaf", "add", "sub", "mul", "mul", "minmax", "select", "call", "div", "reduce",
            "reduce", "from_int", "block", "guard",
        )  # fmt: skip
        match way:
            case "add" | "sub" | "mul" | "minmax":
                return self.arithmetic("f", way, axes, depth)
            case "select":
                return self.select("f", axes, depth)
            case "call":
                return self.call(axes, depth)
            case "div":
                a, b = self.value("f", axes, depth - 1), self.value("f", axes, depth - 1)
                return Value(f"({a.text} / (abs({b.text}) + 1))", "f", a.bound, None)
            case "reduce":
                return self.reduction("f", axes, depth)
            case "from_int":
                a = self.value("i", axes, depth - 1)
                return Value(f"({a.text} * 0.5)", "f", a.bound / 2 + 1, 1)
            case "block":
                return self.block("f", axes, depth)
            case "guard" if not self.in_reduction:
                return self.guarded("f", axes, depth)
        return self.leaf("f", axes)

    def int_value(self, axes: list[AxisName], depth: int) -> Value:
        if depth <= 0:
            return self.leaf("i", axes)
        way = self.pick(
            "leaf", "add", "sub", "mul", "minmax", "select", "floordiv", "mod", "bits", "shift",
            "reduce", "reduce", "arg", "from_float", "from_bool", "narrow", "modular", "block",
        )  # fmt: skip
        match way:
            case "add" | "sub" | "mul" | "minmax":
                return self.arithmetic("i", way, axes, depth)
            case "select":
                return self.select("i", axes, depth)
            case "reduce":
                return self.reduction("i", axes, depth)
            case "arg":
                return self.argument(axes, depth)
            case "block":
                return self.block("i", axes, depth)
            case "leaf":
                return self.leaf("i", axes)
        return self.int_from(way, axes, depth)

    def int_from(self, way: str, axes: list[AxisName], depth: int) -> Value:
        if way == "from_float":
            a = self.value("f", axes, depth - 1)
            if a.bits is None:
                return self.leaf("i", axes)
            how = self.pick("s32({})", "s32(floor({}))", "s32(rne({}))", "s32(ceil({}))")
            return Value(how.format(a.text), "i", a.bound + 1)
        if way == "from_bool":
            return Value(f"(1 if {self.value('b', axes, depth - 1).text} else 0)", "i", 1)
        a = self.value("i", axes, depth - 1)
        match way:
            case "floordiv":
                return Value(f"({a.text} // {self.pick(2, 3, 5)})", "i", a.bound + 1)
            case "mod":
                return Value(f"({a.text} % {self.pick(2, 3, 5)})", "i", 4)
            case "bits":
                sign = self.pick("&", "|", "^")
                b = self.value("i", axes, depth - 1)
                bound = 2 * max(a.bound, b.bound) + 1
                return Value(f"({a.text} {sign} {b.text})", "i", bound)
            case "shift":
                return Value(
                    f"({a.text} {self.pick('<< 1', '>> 1', '>> 2')})", "i", 2 * a.bound + 1
                )
            case "narrow":
                return Value(f"s32({self.pick('s8', 'u8', 's16')}({a.text}))", "i", 1 << 15)
        step = self.pick("u32(7)", "u32(2654435761)")
        return Value(f"s32((u32({a.text}) * {step}) >> 24)", "i", 255)

    def bool_value(self, axes: list[AxisName], depth: int) -> Value:
        if depth <= 0:
            return self.leaf("b", axes)
        way = self.pick("compare", "compare", "logic", "not", "reduce", "leaf")
        if way == "compare":
            kind = self.pick("i", "i", "f")
            a, b = self.value(kind, axes, depth - 1), self.value(kind, axes, depth - 1)
            if a.bits is not None and b.bits is not None:
                sign = self.pick("<", "<=", "==", "!=", ">", ">=")
                return Value(f"({a.text} {sign} {b.text})", "b", 1)
        if way == "logic":
            a, b = self.value("b", axes, depth - 1), self.value("b", axes, depth - 1)
            return Value(f"({a.text} {self.pick('and', 'or')} {b.text})", "b", 1)
        if way == "not":
            return Value(f"(not {self.value('b', axes, depth - 1).text})", "b", 1)
        if way == "reduce":
            head, inner, _ = self.reduction_head(axes, depth)
            body = self.inside(lambda: self.value("b", inner, depth - 2))
            return Value(f"{self.pick('any', 'all')}[{head}]({body.text})", "b", 1)
        return self.leaf("b", axes)

    def arithmetic(self, kind: str, way: str, axes: list[AxisName], depth: int) -> Value:
        a, b = self.value(kind, axes, depth - 1), self.value(kind, axes, depth - 1)
        exact = a.bits is not None and b.bits is not None
        if way == "minmax":
            bits = max(a.bits, b.bits) if exact else None
            call = f"{self.pick('min', 'max')}({a.text}, {b.text})"
            return Value(call, kind, max(a.bound, b.bound), bits)
        if way == "mul":
            bits = a.bits + b.bits if exact else None
            return Value(f"({a.text} * {b.text})", kind, a.bound * b.bound + 1, bits)
        bits = max(a.bits, b.bits) if exact else None
        sign = "+" if way == "add" else "-"
        return Value(f"({a.text} {sign} {b.text})", kind, a.bound + b.bound, bits)

    def select(self, kind: str, axes: list[AxisName], depth: int) -> Value:
        cond = self.value("b", axes, depth - 1)
        a, b = self.value(kind, axes, depth - 1), self.value(kind, axes, depth - 1)
        bits = max(a.bits, b.bits) if a.bits is not None and b.bits is not None else None
        text = f"({a.text} if {cond.text} else {b.text})"
        return Value(text, kind, max(a.bound, b.bound), bits)

    def guarded(self, kind: str, axes: list[AxisName], depth: int) -> Value:
        """A read that only the condition around it makes safe."""
        tensors = [t for t in self.tensors if t.kind == kind and len(t.shape) == 1 and not t.wrap]
        if not tensors or not axes:
            return self.leaf(kind, axes)
        tensor, axis = self.choose(tensors), self.choose(axes)
        other = self.value(kind, axes, depth - 1)
        at, test = self.pick(
            (axis.name, f"{axis.name} < {tensor.shape[0]}"),
            (f"{axis.name} - 1", f"0 < {axis.name} <= {tensor.shape[0]}"),
        )
        bits = None
        if tensor.bits is not None and other.bits is not None:
            bits = max(tensor.bits, other.bits)
        text = f"({tensor.name}[{at}] if {test} else {other.text})"
        return Value(text, kind, max(tensor.bound, other.bound), bits)

    def call(self, axes: list[AxisName], depth: int) -> Value:
        a = self.value("f", axes, depth - 1)
        form, bound = self.pick(
            ("sqrt(abs({}))", a.bound + 1), ("exp(clip({}, -3, 3))", 21), ("tanh({})", 1),
            ("sin({})", 1), ("log(abs({}) + 0.5)", 12), ("erf({})", 1), ("sigmoid({})", 1),
            ("rsqrt(abs({}) + 1)", 1), ("gelu(clip({}, -4, 4))", 5), ("relu({})", a.bound),
            ("abs({})", a.bound), ("sq(clip({}, -9, 9))", 82), ("atan2({}, 2.0)", 4),
            ("fma({}, 1.5, 0.25)", 2 * a.bound + 1), ("nofma({} * 1.5 + 0.25)", 2 * a.bound + 1),
            ("fast_exp(clip({}, -3, 3))", 21), ("fast_tanh({})", 1), ("fast_sigmoid({})", 1),
            ("fast_erf({})", 1), ("f32(f16(clip({}, -4, 4)) * 0.75 + 0.5)", 4),
        )  # fmt: skip
        bits = a.bits if form in ("relu({})", "abs({})") else None
        return Value(form.format(a.text), "f", bound, bits)

    def block(self, kind: str, axes: list[AxisName], depth: int) -> Value:
        let_kind = self.pick("f", "i")
        held = self.value(let_kind, axes, depth - 1)
        name = self.fresh("v")
        before = list(self.scalars)
        self.scalars += [Value(name, held.kind, held.bound, held.bits)] * 2
        result = self.value(kind, axes, depth - 1)
        self.scalars = before
        text = f"{{ let {name} = {held.text}  return {result.text} }}"
        return Value(text, kind, result.bound, result.bits)

    # ------------------------------------------------------------ reductions
    def inside(self, make: Callable[[], Value]) -> Value:
        self.in_reduction += 1
        made = make()
        self.in_reduction -= 1
        return made

    def reduction_head(
        self, axes: list[AxisName], depth: int
    ) -> tuple[str, list[AxisName], list[int]]:
        """The text in the brackets, the axes inside, the extents of the new ones."""
        parts, inner, extents = [], list(axes), []
        for _ in range(self.pick(1, 1, 1, 2)):
            name = self.fresh("k")
            extent = self.choose(_EXTENTS)
            way = self.pick("whole", "whole", "whole", "to", "from", "data")
            if way == "to" and inner:
                outer = self.choose(inner)
                parts.append(f"{name}: 0..{outer.name} + 1")
                extent = outer.extent
            elif way == "from" and inner:
                outer = self.choose(inner)
                extent = outer.extent + 2
                parts.append(f"{name}: {outer.name}..{extent}")
            elif way == "data":
                parts.append(f"{name}: 0..clamp({self.data(axes)}, 0, {extent})")
            else:
                parts.append(f"{name}: {extent}")
            inner.append(AxisName(name, extent))
            extents.append(extent)
        head = ", ".join(parts)
        if self.pick(True, False, False):
            cond = self.inside(lambda: self.value("b", inner, min(depth - 1, 1)))
            head += f" where {cond.text}"
        return head, inner, extents

    def reduction(self, kind: str, axes: list[AxisName], depth: int) -> Value:
        head, inner, extents = self.reduction_head(axes, depth)
        body = self.inside(lambda: self.value(kind, inner, depth - 1))
        count = math.prod(extents)
        if self.pick(True, True, False):
            text = f"sum[{head}]({body.text})"
            return Value(text, kind, body.bound * count, body.bits)
        # Clipped, for an empty reduction yields the extreme value of the dtype.
        limit = math.ceil(body.bound)
        text = f"clip({self.pick('max', 'min')}[{head}]({body.text}), -{limit}, {limit})"
        return Value(text, kind, limit, body.bits)

    def argument(self, axes: list[AxisName], depth: int) -> Value:
        head, inner, extents = self.reduction_head(axes, depth)
        kind = self.pick("i", "f")
        body = self.inside(lambda: self.value(kind, inner, min(depth - 1, 1)))
        if body.bits is None:
            body = self.inside(lambda: self.leaf("i", inner))
        text = f"{self.pick('argmax', 'argmin')}[{head}]({body.text})"
        return Value(text, "i", math.prod(extents))

    # ------------------------------------------------------------ statements
    def axes(self, most: int) -> list[AxisName]:
        count = self.choose(range(most + 1))
        return [AxisName(self.fresh("i"), self.choose(_EXTENTS)) for _ in range(count)]

    def stage(self, depth: int) -> str:
        axes = self.axes(3)
        kind = self.pick("f", "f", "i", "b")
        value = self.value(kind, axes, depth)
        name = self.fresh("st")
        dtype, value = self.stored(value)
        self.tensors.append(
            Tensor(name, tuple(a.extent for a in axes), kind, value.bound, value.bits)
        )
        return f"{name}{dtype}{_left(axes)} = {value.text}"

    def stored(self, value: Value) -> tuple[str, Value]:
        """A storage dtype now and then."""
        if value.kind == "f" and self.pick(True, False, False, False):
            tight = value.bits is not None and value.bound * 2**value.bits < 1 << 10
            bits = value.bits if tight else None
            return ": f16", Value(value.text, "f", value.bound + 1, bits)
        if value.kind == "i" and self.pick(True, False, False):
            dtype, bound = self.pick(
                ("s8", 128), ("u8", 255), ("s16", 1 << 15), ("s64", value.bound)
            )
            # A read of s64 stays s64; a cast brings it back to s32.
            if dtype != "s64":
                return f": {dtype}", Value(f"{dtype}({value.text})", "i", bound)
        return "", value

    def recurrence(self, depth: int) -> str:
        """A ``seq`` with one history, a stage that lives for one iteration, maybe an ``each``."""
        length, axes = self.choose(_EXTENTS), self.axes(1)
        kind = self.pick("f", "i")
        t, history, local = self.fresh("t"), self.fresh("h"), self.fresh("z")
        step = AxisName(t, length)
        backwards = self.pick(False, True)
        outer = [AxisName(self.fresh("c"), self.choose(_EXTENTS))] if self.pick(True, False) else []
        own = ", ".join(a.name for a in axes)
        before = f"{t} + 1" if backwards else f"{t} - 1"
        index = ", ".join([*(a.name for a in outer), before, *([own] if own else [])])
        left = ", ".join([*(a.name for a in outer), t, *(f"{a.name}: {a.extent}" for a in axes)])
        inner_axes = self.axes(1)
        local_value = self.value(kind, [*outer, step, *inner_axes], depth - 1)
        self.tensors.append(
            Tensor(
                local,
                tuple(a.extent for a in inner_axes),
                kind,
                local_value.bound,
                local_value.bits,
            )
        )
        new = self.value(kind, [*outer, step, *axes], depth - 1)
        self.tensors.pop()
        old = f"pad({history}[{index}], 1)"
        update = f"{old} * 0.5 + {new.text}" if kind == "f" else f"{old} % 7 + {new.text}"
        shape = tuple(a.extent for a in (*outer, step, *axes))
        bits = None if kind == "f" else 0
        self.tensors.append(Tensor(history, shape, kind, 2 * new.bound + 8, bits))
        text = (
            f"seq {t}: {length}{' reversed' if backwards else ''} {{\n"
            f"      {local}{_left(inner_axes)} = {local_value.text}\n"
            f"      {history}[{left}] = {update}\n    }}"
        )
        return f"each {outer[0].name}: {outer[0].extent} {{ {text} }}" if outer else text


def _left(axes: list[AxisName]) -> str:
    return f"[{', '.join(f'{a.name}: {a.extent}' for a in axes)}]" if axes else ""


def _limited(value: Value) -> Value:
    """Clips what has grown too large; forgets exactness that float32 cannot keep."""
    if value.kind == "i" and value.bound > INT_LIMIT:
        return Value(f"({value.text} % 101)", "i", 101)
    if value.kind != "f":
        return value
    bits = value.bits
    if bits is not None and math.log2(max(value.bound, 1)) + bits > EXACT_BITS:
        bits = None
    if value.bound > FLOAT_LIMIT:
        return Value(f"clip({value.text}, -64, 64)", "f", 64, bits)
    return Value(value.text, "f", value.bound, bits)


@st.composite
def kernels(draw: st.DrawFn, depth: int = 3, most_stages: int = 3) -> RandomKernel:
    """Kernels with a few small inputs and stages, and one or two outputs."""
    maker = Maker(lambda options: draw(st.sampled_from(list(options))))
    inputs, header = [], []
    for number in range(maker.pick(2, 3, 3, 4)):
        dtype = maker.choose(_INPUT_DTYPES)
        rank = 1 if number == 0 else maker.pick(1, 2, 2, 3)
        shape = tuple(maker.choose(_EXTENTS) for _ in range(rank))
        inputs.append(Input(f"x{number}", dtype, shape))
        const = "const " if maker.pick(True, False, False) else ""
        header.append(f"x{number}: {const}{dtype}[{', '.join(map(str, shape))}]")
        maker.tensors.append(_input_tensor(inputs[-1]))
    lines = []
    for _ in range(maker.choose(range(most_stages + 1))):
        make = maker.pick(maker.stage, maker.stage, maker.recurrence)
        lines.append(make(depth))
    outputs, loose = [], False
    for number in range(maker.pick(1, 1, 2)):
        declared, line = _output(maker, f"y{number}", depth)
        outputs.append(declared)
        lines.append(line)
    loose = any("f16" in text for text in (*outputs, *lines))
    body = "\n    ".join(lines)
    text = (
        f"kernel random({', '.join(header)}) -> ({', '.join(outputs)}) {{\n"
        f"  compute {{\n    {body}\n  }}\n}}\n"
    )
    return RandomKernel(text, tuple(inputs), loose)


def _input_tensor(item: Input) -> Tensor:
    if item.dtype in _INT_RANGES:
        low, high = _INT_RANGES[item.dtype]
        kind = "b" if item.dtype == "bool" else "i"
        return Tensor(item.name, item.shape, kind, max(-low, high), 0, item.dtype == "u32")
    return Tensor(item.name, item.shape, "f", 1.5, 3)


def _output(maker: Maker, name: str, depth: int) -> tuple[str, str]:
    """Declaration and definition of an output."""
    axes = maker.axes(3)
    kind = maker.pick("f", "f", "i", "b")
    value = maker.value(kind, axes, depth)
    match kind:
        case "f":
            dtype = maker.pick("f32", "f32", "f16", "f64")
            text = value.text
        case "i":
            dtype = maker.pick("s32", "s8", "u8", "u32", "s16")
            text = value.text if dtype == "s32" else f"{dtype}({value.text})"
        case _:
            dtype, text = "bool", value.text
    shape = f"[{', '.join(str(a.extent) for a in axes)}]" if axes else "[1]"
    left = f"[{', '.join(a.name for a in axes)}]" if axes else "[one]"
    return f"{name}: {dtype}{shape}", f"{name}{left} = {text}"
