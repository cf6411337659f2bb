"""Random programs: well-formed ones with everything the language has, and reckless ones.

The well-formed ones extend `tests.property.programs`, whose values stay defined and whose floats
are compared or truncated only while exact; what is added are matrix-like reductions, scatters,
templates, macros, tables, nested recurrences, 64-bit integers, and extents that fill SIMD lanes.
The reckless ones (`tests.ir.random_programs`) index as they like: the verifier refuses most.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.ir.random_programs import Draw
from tests.property.programs import AxisName, Maker, Tensor, Value, make_kernel

_SMALL = (1, 2, 3, 4, 5, 6, 7)
_WIDE = (8, 9, 15, 16, 17, 24, 31, 33, 40)
_DTYPES = (
    "f32", "f32", "f32", "f16", "f16", "f64", "s8", "s8", "u8", "s16", "u16", "s32", "u32", "s64",
    "bool",
)  # fmt: skip
_TEMPLATES = """
template scaled(t) -> (o) { o[a: dim(t, 0)] = t[a] * 0.5 + 1.0 }
template near(t) -> (o) {
  o[a: dim(t, 0), b: dim(t, 1)] = pad(t[a - 1, b], 0) + t[a, b] - edge(t[a, b + 1])
}
template rows(t) -> (o) {
  s[a: dim(t, 0)] = sum[b: dim(t, 1)](t[a, b])
  let N = dim(t, 1)
  o[a: dim(t, 0), b: N] = (t[a, b] - s[a] / N) * 0.5
}
template running(t) -> (o) {
  seq a: dim(t, 0) { o[a] = pad(o[a - 1], 0) * 0.5 + t[a] }
}
"""
_DEFS = """
def mixed(a, b) = a * 0.5 + { let c = b * 0.25  return c - min(a, c) }
def first(t, i) = t[i] + 1
"""
_COMBINERS = """
combiner lse((m, s), (n, t)) init (-1e30, 0) = {
  let e = exp(-abs(m - n))
  return (max(m, n), s + t * e if m > n else s * e + t)
}
combiner spread((a, q, n), (b, r, k)) init (0, 0, 0) = {
  let d = b - a
  let w = k / max(n + k, 1)
  return (a + d * w, q + r + d * d * n * w, n + k)
}
combiner best((v, i), (w, j)) init (-1e30, 2147483647) = (
  max(v, w), (i if v > w or (v == w and i < j) else j)
)
combiner parity(a, b) init 0 = a ^ b
"""


@dataclass
class WideMaker(Maker):
    """A `Maker` that knows more statements. ``uses`` says what the prelude must define."""

    uses: set[str] = field(default_factory=set)

    def prelude(self) -> str:
        parts = {"template": _TEMPLATES, "def": _DEFS, "combiner": _COMBINERS}
        return "".join(text for name, text in parts.items() if name in self.uses)

    def statement(self, depth: int) -> str:
        return self.pick(
            self.stage, self.stage, self.recurrence, self.product, self.product, self.scatter,
            self.bind, self.macro, self.table, self.wavefront, self.chain, self.wide, self.chunked,
            self.combined, self.combined,
        )(depth)  # fmt: skip

    # ------------------------------------------------------------ helpers
    def floats(self, rank: int) -> list[Tensor]:
        return [t for t in self.tensors if t.kind == "f" and len(t.shape) == rank]

    def keep(self, name: str, axes: list[AxisName], value: Value, wrap: bool = False) -> None:
        shape = tuple(axis.extent for axis in axes)
        self.tensors.append(Tensor(name, shape, value.kind, value.bound, value.bits, wrap))

    def tame(self, value: Value) -> Value:
        """Bounded far below what sums of it may reach."""
        if value.kind == "f":
            return Value(f"clip({value.text}, -4, 4)", "f", 4, value.bits)
        return Value(f"({value.text} % 17)", "i", 17)

    # ------------------------------------------------------------ expressions
    def index(self, extent: int, axes: list[AxisName]) -> str:
        """Now and then an index hashed from data: u32 arithmetic and casts that wrap."""
        sources = [t for t in self.tensors if t.kind == "i" and t.shape]
        if not sources or not axes or self.choose(range(10)):
            return super().index(extent, axes)
        read, last = f"u32({self.read(self.choose(sources), axes).text})", extent - 1
        return self.pick(
            f"clamp(s32(s8({read} * u32(3))), 0, {last})",
            f"s32({read} * u32(2654435761)) % {extent}",
            f"s32(({read} * u32(40503)) >> 3) % {extent}",
            f"clamp(s32({read} - u32(9)), 0, {last})",
            f"min(s32(u8({read})) // 4, {last})",
        )

    def call(self, axes: list[AxisName], depth: int) -> Value:
        if self.pick(True, False):
            return super().call(axes, depth)
        a = self.value("f", axes, depth - 1)
        if a.bits is not None and self.pick(True, False):
            form, bound = self.pick(
                ("sign({})", 1), ("floor({})", a.bound + 1), ("trunc({})", a.bound + 1),
                ("ceil({})", a.bound + 1), ("rne({})", a.bound + 1),
            )  # fmt: skip
            return Value(form.format(a.text), "f", bound, a.bits)
        form, bound = self.pick(
            ("exp2(clip({}, -4, 4))", 16), ("log2(abs({}) + 0.5)", 12), ("cos({})", 1),
            ("tan(clip({}, -1, 1))", 2), ("atan({})", 2), ("silu({})", a.bound + 1),
            ("hswish({})", a.bound + 1), ("softplus(clip({}, -9, 9))", 10), ("relu6({})", 6),
            ("elu(clip({}, -9, 9))", 10), ("leaky_relu({}, 0.125)", a.bound),
            ("pow(abs(clip({}, -9, 9)) + 0.5, 1.5)", 30), ("(clip({}, -9, 9) ** 2)", 82),
            ("(clip({}, -3, 3) ** 3)", 28), ("hsigmoid({})", 1),
        )  # fmt: skip
        return Value(form.format(a.text), "f", bound, None)

    def int_from(self, way: str, axes: list[AxisName], depth: int) -> Value:
        if way != "bits" or self.pick(True, False):
            return super().int_from(way, axes, depth)
        a = self.value("i", axes, depth - 1)
        form, bound = self.pick(
            ("popcount({})", 32), ("(~{})", a.bound + 1), ("abs({})", a.bound), ("sign({})", 1),
            ("s32(s64({}) * s64(5) // s64(3))", 2 * a.bound + 1), ("s32(u32({}) % u32(11))", 10),
            ("s32(u16({}))", (1 << 16) - 1), ("s32(s64(u32({})) >> 30)", 4),
        )  # fmt: skip
        return Value(form.format(a.text), "i", bound)

    # ------------------------------------------------------------ stages
    def product(self, depth: int) -> str:
        """A sum of products of reads along shared axes: matrix products, filters, dot products."""
        kind = self.pick("f", "f", "i")
        sources = [t for t in self.tensors if t.kind == kind and t.shape] or self.tensors[:1]
        first, second = self.choose(sources), self.choose(sources)
        if first.kind == "b" or second.kind == "b":
            return self.stage(depth)
        axes = [AxisName(self.fresh("i"), extent) for extent in first.shape[:-1]]
        axes += [AxisName(self.fresh("j"), extent) for extent in second.shape[1:2]]
        inner = AxisName(self.fresh("k"), first.shape[-1])
        left = [*(a.name for a in axes[: len(first.shape) - 1]), inner.name]
        text = f"{first.name}[{', '.join(left)}]"
        a = Value(f"s32({text})" if first.wrap else text, first.kind, first.bound, first.bits)
        b = self.read(second, [*axes, inner])
        body = f"{self.tame(a).text} * {self.tame(b).text}"
        name = self.fresh("st")
        bound = 300 * inner.extent
        result_kind = "f" if "f" in (first.kind, second.kind) else "i"
        self.keep(name, axes, Value("", result_kind, bound, None if result_kind == "f" else 0))
        marks = ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
        head = f"{name}[{marks}]" if axes else name
        return f"{head} = sum[{inner.name}: {inner.extent}]({body})"

    def scatter(self, depth: int) -> str:
        """What lands on an element says an integer tensor."""
        tables = [t for t in self.tensors if t.kind == "i" and len(t.shape) == 1]
        if not tables:
            return self.stage(depth)
        table = self.choose(tables)
        place = AxisName(self.fresh("v"), self.choose(self.extents))
        inner = AxisName(self.fresh("p"), table.shape[0])
        axes = [place, *self.axes(1)]
        kind = self.pick("f", "i")
        read = f"{table.name}[{inner.name}]"
        read = f"s32({read})" if table.wrap else read
        where = self.pick(f"{read} == {place.name}", f"{place.name} == {read}")
        body = self.inside(lambda: self.leaf(kind, [*axes, inner]))
        how = self.pick("sum", "sum", "max")
        if how == "max":
            kind, body = "i", Value(inner.name, "i", inner.extent)
        text = f"{how}[{inner.name}: {inner.extent} where {where}]({body.text})"
        text = f"max({text}, -1)" if how == "max" else text
        bound = body.bound * inner.extent + 1
        name = self.fresh("sc")
        self.keep(name, axes, Value("", kind, bound, body.bits))
        marks = ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
        return f"{name}[{marks}] = {text}"

    def combined(self, depth: int) -> str:
        """A reduction with a combiner: its components are stages of their own."""
        self.uses.add("combiner")
        axes, names = self.axes(2), [self.fresh("st") for _ in range(3)]
        head, inner, extents = self.reduction_head(axes, depth)
        how = self.pick("lse", "spread", "best", "parity")
        kind = "i" if how in ("best", "parity") else "f"
        body = self.tame(self.inside(lambda: self.value(kind, inner, depth - 1)))
        count, last = math.prod(extents), inner[-1].name
        float_ = Value("", "f", 16.0 * 4 * count, None)
        match how:
            case "lse":
                values, out = f"{body.text}, 1", [Value("", "f", 1e30, None), float_]
            case "spread":
                values, out = f"{body.text}, 0, 1", [float_, float_, float_]
            case "best":
                values = f"f32({body.text}), {last}"
                out = [Value("", "f", 1e30, 0), Value("", "i", 2**31)]
            case _:
                values, out = body.text, [Value("", "i", 32)]
        made = list(zip(names, out, strict=False))
        marks = ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
        left = ", ".join(f"{name}[{marks}]" if axes else name for name, _ in made)
        text = f"{left} = {how}[{head}]({values})"
        for name, value in made:
            if how == "best":  # of nothing, these are the extreme values of the dtypes
                continue
            self.keep(name, axes, value)
        return text

    def bind(self, depth: int) -> str:
        """A template applied to a float tensor."""
        rank = self.pick(1, 2)
        sources = self.floats(rank)
        if not sources:
            return self.stage(depth)
        self.uses.add("template")
        source = self.choose(sources)
        template = self.pick("scaled", "running") if rank == 1 else self.pick("near", "rows")
        name = self.fresh("tm")
        bound = 4 * source.bound * (source.shape[-1] if template == "rows" else 1) + 4
        self.tensors.append(Tensor(name, source.shape, "f", bound, None))
        return f"{name} = {template}({source.name})"

    def macro(self, depth: int) -> str:
        self.uses.add("def")
        axes, name = self.axes(2), self.fresh("st")
        vectors = self.floats(1)
        a, b = self.value("f", axes, depth - 1), self.value("f", axes, depth - 1)
        text = f"mixed({a.text}, {b.text})"
        if vectors and self.pick(True, False):
            vector = self.choose(vectors)
            text += f" + first({vector.name}, {self.index(vector.shape[0], axes)})"
        self.keep(name, axes, Value("", "f", a.bound + b.bound + 4, None))
        marks = ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
        return f"{name}[{marks}] = {text}" if axes else f"{name} = {text}"

    def table(self, depth: int) -> str:
        """A constant, and a stage that may read it."""
        count = self.pick(1, 2, 4, 5)
        name = self.fresh("tb")
        if self.pick(True, False):
            values = [self.pick("0.5", "-1", "2.25", "1e-2") for _ in range(count)]
            dtype, tensor = "f32", Tensor(name, (count,), "f", 3, None)
        else:
            values = [str(self.pick(0, 1, 3, -2, 7)) for _ in range(count)]
            dtype, tensor = "s32", Tensor(name, (count,), "i", 7)
        self.tensors.append(tensor)
        return f"table {name}: {dtype}[{count}] = [{', '.join(values)}]\n    {self.stage(depth)}"

    def wide(self, depth: int) -> str:
        """A stage stored as s64 whose sums are 64-bit."""
        axes, name, inner = self.axes(2), self.fresh("st"), self.fresh("k")
        extent = self.choose(self.extents)
        body = self.inside(lambda: self.value("i", [*axes, AxisName(inner, extent)], 1))
        text = f"sum[{inner}: {extent}](s64({body.text}) * s64(3)) % s64(1001)"
        self.keep(name, axes, Value("", "i", 1001), wrap=True)
        marks = ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
        return f"{name}: s64[{marks}] = {text}" if axes else f"{name}: s64 = {text}"

    # ------------------------------------------------------------ loops
    def wavefront(self, depth: int) -> str:
        """Two nested loops, upwards or downwards, whose iterations read neighbours of both."""
        rows, columns = self.choose(self.extents), self.choose(self.extents)
        s, t, name, part = self.fresh("r"), self.fresh("t"), self.fresh("h"), self.fresh("z")
        axes = [AxisName(s, rows), AxisName(t, columns)]
        kind = self.pick("f", "i")
        new = self.tame(self.value(kind, axes, depth - 1))
        ways = [self.pick("", "", " reversed") for _ in axes]
        back = [f"{axis.name} {'+' if way else '-'}" for axis, way in zip(axes, ways, strict=True)]
        ahead = f"{t} {'-' if ways[1] else '+'}"
        old = f"min(pad({name}[{back[0]} 1, {t}], 1), pad({name}[{s}, {back[1]} 1], 2))"
        old += self.pick(
            "",
            f" + pad({name}[{back[0]} 1, {back[1]} 1], 0)",
            f" + pad({name}[{back[0]} 2, {back[1]} {self.pick(1, 3)}], 0)",
            f" + pad({name}[{back[0]} 1, {ahead} {self.pick(1, 2)}], 0)",
        )
        state = self.pick("", "", f"{part}[{t}]")
        halved = f"({old}) * 0.25" if kind == "f" else f"({old}) % 9"
        self.tensors.append(Tensor(name, (rows, columns), kind, 40, None if kind == "f" else 0))
        lines = [f"{name}[{s}, {t}] = {halved} + {state or new.text}"]
        if state:  # one that keeps the inner loop only
            half = f"{part}[{back[1]} 1]"
            carried = f"pad({half}, 0) * 0.5" if kind == "f" else f"pad({half}, 0) // 2"
            lines.insert(0, f"{state} = {carried} + {new.text}")
        elif self.pick(True, False):
            lines = [f"{part} = {new.text}", f"{name}[{s}, {t}] = {halved} + {part}"]
        body = "".join(f"      {line}\n" for line in lines)
        return f"seq {s}: {rows}{ways[0]} {{ seq {t}: {columns}{ways[1]} {{\n{body}    }} }}"

    def chain(self, depth: int) -> str:
        """A history that reads two and three iterations back, and one that reads it."""
        length, axes = self.choose(self.extents), self.axes(1)
        t, first, second = self.fresh("t"), self.fresh("h"), self.fresh("g")
        own = "".join(f", {axis.name}" for axis in axes)
        left = "".join(f", {axis.name}: {axis.extent}" for axis in axes)
        back, again = self.pick(1, 2, 3), self.pick(1, 2)
        new = self.tame(self.value("f", [AxisName(t, length), *axes], depth - 1))
        shape = (length, *(axis.extent for axis in axes))
        self.tensors.append(Tensor(second, shape, "f", 60, None))
        if self.pick(True, False):
            self.tensors.append(Tensor(first, shape, "f", 60, None))
        return (
            f"seq {t}: {length} {{\n"
            f"      {first}[{t}{left}] = pad({first}[{t} - {back}{own}], 0) * 0.5 + {new.text}\n"
            f"      {second}[{t}{left}] = {first}[{t}{own}] + "
            f"pad({second}[{t} - {again}{own}], {first}[{t}{own}]) * 0.25\n    }}"
        )

    def chunked(self, depth: int) -> str:
        """An ``each`` loop around stages that live for one iteration, reductions among them."""
        c = AxisName(self.fresh("c"), self.choose(self.extents))
        a = AxisName(self.fresh("i"), self.choose(self.extents))
        local, total, out = self.fresh("z"), self.fresh("z"), self.fresh("st")
        value = self.tame(self.value("f", [c, a], depth - 1))
        self.tensors.append(Tensor(out, (c.extent, a.extent), "f", 200, None))
        return (
            f"each {c.name}: {c.extent} {{\n"
            f"      {local}[{a.name}: {a.extent}] = {value.text}\n"
            f"      {total} = sum[{a.name}: {a.extent}]({local}[{a.name}])\n"
            f"      {out}[{c.name}, {a.name}: {a.extent}] = "
            f"{local}[{a.name}] - {total} * 0.125\n    }}"
        )


def well_formed(seed: int) -> str:
    """A kernel that the verifier should accept."""
    rng = random.Random(f"well formed {seed}")
    maker = WideMaker(lambda options: rng.choice(list(options)))
    maker.input_dtypes = _DTYPES
    maker.extents = _palette(rng)
    return make_kernel(maker, rng.choice((1, 2, 2, 3)), rng.choice((1, 2, 3, 5))).text


def _palette(rng: random.Random) -> Sequence[int]:
    """A few extents for one kernel, so that shapes meet."""
    wide = rng.random() < 0.35
    chosen = [rng.choice(_SMALL) for _ in range(3)]
    return [*chosen, rng.choice(_WIDE), rng.choice(_WIDE)] if wide else chosen


def reckless(seed: int) -> str:
    """A kernel whose indices are in range or not."""
    draw = Draw(seed)
    return draw.recurrence() if seed % 3 == 0 else draw.program()
