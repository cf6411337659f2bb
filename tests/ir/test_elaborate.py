"""Elaboration: what names, macros, templates and types come to mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.verify import verify
from edgekernelbench.ir.verify.text import show
from tests.ir import well_formed

SIGNATURE = (
    "kernel k[M=4, N=6, eps=0.5](x: f32[M, N], h: f16[N], d: f64[N], s: s8[N], b: u8[N], v: s32[N],"
    " w: s64[N], u: u32[N], m: bool[N]) -> (y: f32[M, N]) {{\n  compute {{\n{body}\n  }}\n}}\n"
)


def program(text: str, **sizes: int | float) -> core.Program:
    kernel = parse(text)
    assert kernel.kernel is not None, kernel.diagnostics
    result = elaborate(kernel.kernel, sizes)
    assert result.program is not None, result.diagnostics
    well_formed.check(result.program)
    return result.program


def body(text: str) -> core.Program:
    return program(SIGNATURE.format(body=text))


def stages(p: core.Program) -> dict[str, core.Stage]:
    return {stage.name: stage for _, stage in core.stages(p.body)}


def value(expression: str) -> core.Expr:
    """The elaborated expression of a stage over axes i: M and j: N."""
    p = body(f"z[i: M, j: N] = {expression}\ny[i, j] = 0")
    return stages(p)["z"].expr


# ---------------------------------------------------------------- sizes
def test_sizes_in_order_and_overridden() -> None:
    text = (
        "kernel k[H=9, p=1, R=3, OH=(H + 2*p - R)//2 + 1, half=H/2, e=1e-5](x: f32[H])"
        " -> (y: f32[OH]) { compute { y[i] = e } }"
    )
    assert dict(program(text).sizes) == {"H": 9, "p": 1, "R": 3, "OH": 5, "half": 4.5, "e": 1e-5}
    reduced = program(text, H=5, e=0.25)
    assert dict(reduced.sizes) == {"H": 5, "p": 1, "R": 3, "OH": 3, "half": 2.5, "e": 0.25}
    assert reduced.outputs[0].shape == (3,)


@pytest.mark.parametrize(
    "sizes, part",
    [
        ({"OH": 3}, "`OH` is computed from others"),
        ({"Hh": 3}, "there is no size `Hh`"),
        ({"H": 2.5}, "`H` is an integer"),
        ({"H": True}, "`H` cannot be True"),
        ({"H": math.nan}, "`H` cannot be nan"),
        ({"H": 0}, "is 0"),
        ({"H": 1 << 40}, "is 1099511627776"),
    ],
)
def test_overrides_that_are_refused(sizes: dict[str, int | float], part: str) -> None:
    kernel = parse("kernel k[H=9, OH=H-1](x: f32[H]) -> (y: f32[OH]) { compute { y[i] = 0 } }")
    assert kernel.kernel is not None
    result = elaborate(kernel.kernel, sizes)
    assert result.program is None
    assert any(part in d.message for d in result.diagnostics), result.diagnostics


# ---------------------------------------------------------------- types
@pytest.mark.parametrize(
    "expression, dtype",
    [
        ("x[i, j]", "f32"), ("h[j]", "f32"), ("d[j]", "f64"), ("s[j]", "s32"), ("b[j]", "s32"),
        ("v[j]", "s32"), ("w[j]", "s64"), ("u[j]", "u32"), ("m[j]", "bool"),
        ("s[j] * s[j]", "s32"), ("v[j] + w[j]", "s64"), ("u[j] + 1", "u32"), ("v[j] * 1.5", "f32"),
        ("w[j] + x[i, j]", "f32"), ("x[i, j] + d[j]", "f64"), ("d[j] * 2", "f64"),
        ("v[j] / 2", "f32"), ("w[j] / w[j]", "f32"), ("d[j] / v[j]", "f64"), ("v[j] // 2", "s32"),
        ("v[j] + 3000000000", "s64"), ("M / N", "f32"), ("M // N", "s32"), ("3000000000", "s64"),
        ("v[j] < 2", "bool"), ("m[j] + m[j]", "s32"), ("m[j] and v[j]", "bool"),
        ("1 if m[j] else 0.5", "f32"), ("0 if m[j] else x[i, j]", "f32"),
        ("1 if m[j] else 0", "s32"),
        ("v[j] if m[j] else w[j]", "s64"), ("m[j] if i > 0 else v[j]", "s32"),
        ("u8(1) if m[j] else 3", "u8"), ("s8(v[j])", "s8"), ("s8(v[j]) + 0", "s32"),
        ("f16(x[i, j])", "f16"), ("f16(x[i, j]) * 2", "f16"), ("exp(v[j])", "f32"),
        ("sqrt(d[j])", "f64"), ("abs(s[j])", "s32"), ("sign(x[i, j])", "f32"),
        ("popcount(u[j])", "s32"), ("floor(d[j])", "f64"), ("v[j] ** 2", "s32"),
        ("x[i, j] ** v[j]", "f32"), ("pow(v[j], 2)", "f32"), ("atan2(v[j], d[j])", "f64"),
        ("w[j] << v[j]", "s64"), ("1 << v[j]", "s32"), ("u[j] >> 3", "u32"), ("~b[j]", "s32"),
        ("m[j] & m[0]", "bool"), ("min(v[j], 2.5)", "f32"), ("clip(s[j], -1, 1)", "s32"),
        ("u[j] ^ (1 if m[j] else 0)", "u32"), ("-m[j]", "s32"), ("i", "s32"), ("i * eps", "f32"),
        ("sum[k2: N](s[k2])", "s32"), ("sum[k2: N](h[k2])", "f32"), ("sum[k2: N](m[k2])", "s32"),
        ("sum[k2: N](s64(v[k2]))", "s64"), ("max[k2: N](u[k2])", "u32"),
        ("any[k2: N](m[k2])", "bool"), ("all[k2: N](v[k2])", "bool"),
        ("argmax[k2: N](x[i, k2])", "s32"), ("max[k2: N](k2)", "s32"),
        ("f16(h[j]) + f16(x[i, j])", "f16"), ("f16(h[j]) + h[j]", "f32"),
        ("f16(h[j]) * v[j]", "f32"), ("fast_tanh(d[j])", "f64"),
        ("f16(h[j]) / d[j]", "f64"), ("1 / f16(h[j])", "f16"), ("exp(f16(h[j]))", "f16"),
        ("-f16(h[j])", "f16"), ("f16(h[j]) ** 3", "f16"), ("f16(h[j]) ** 0.5", "f16"),
        ("sigmoid(f16(h[j]))", "f16"), ("max(f16(h[j]), 0)", "f16"),
        ("max(f16(h[j]), -inf)", "f16"), ("fast_exp(v[j])", "f32"),
        ("f16(h[j]) if m[j] else 0", "f16"), ("f16(h[j]) if m[j] else h[j]", "f32"),
        ("sum[k2: N](f16(h[k2]) * f16(x[i, k2]))", "f16"), ("max[k2: N](f16(h[k2]))", "f16"),
        ("atan2(f16(h[j]), 1)", "f16"), ("pow(f16(h[j]), v[j])", "f32"),
        ("fma(x[i, j], h[j], 1)", "f32"), ("fma(d[j], 2, v[j])", "f64"), ("fma(v[j], 2, 1)", "f32"),
        ("fma(f16(h[j]), f16(h[0]), 0.5)", "f16"), ("fma(f16(h[j]), f16(h[0]), h[1])", "f32"),
        ("nofma(x[i, j] * 2)", "f32"), ("nofma(f16(h[j]) * 2)", "f16"),
        ("fast_sigmoid(f16(h[j]))", "f16"), ("fast_erf(x[i, j])", "f32"),
    ],
)  # fmt: skip
def test_types(expression: str, dtype: str) -> None:
    assert value(expression).dtype.value == dtype


def test_operands_of_the_core_have_one_dtype() -> None:
    expr = value("(s[j] + w[j]) * x[i, j] + (1 if m[j] else 0) / 3 - d[j]")
    for node in core.walk(expr):
        if isinstance(node, core.Binary) and node.op not in ("shl", "shr"):
            assert node.left.dtype is node.right.dtype
        if isinstance(node, core.Select):
            assert node.then.dtype is node.other.dtype is node.dtype


@pytest.mark.parametrize(
    "statement, kept",
    [
        ("z: f16[j: N] = x[0, j]", "f16(x[0, j])"),
        ("z: f32[j: N] = d[j]", "f32(d[j])"),
        ("z: f32[j: N] = v[j]", "f32(v[j])"),
        ("z: s64[j: N] = v[j]", "s64(v[j])"),
        ("z: s64[j: N] = u[j]", "s64(u[j])"),
        ("z: u8[j: N] = 1 if m[j] else 0", "1 if m[j] else 0"),
        ("z: u8[j: N] = m[j]", "u8(m[j])"),
        ("z: f32[j: N] = m[j]", "f32(m[j])"),
        ("z: s8[j: N] = -128", "-128"),
        ("z: f64[j: N] = 1 / 3", repr(1 / 3)),
    ],
)
def test_stores_that_need_no_cast(statement: str, kept: str) -> None:
    stage = stages(body(f"{statement}\ny[i, j] = 0"))["z"]
    assert stage.expr.dtype is stage.tensor.dtype
    assert show(stage.expr) == kept


# ---------------------------------------------------------------- expressions
@pytest.mark.parametrize(
    "expression, text",
    [
        ("x[i, j] + M * N // 5 - 0 * i", "x[i, j] + 4.0 - f32(0 * i)"),
        ("x[(i*1 + 0) // 1, j << 0]", "x[i, j]"),
        ("pad(x[i - 1, j], 0)", "pad(x[i - 1, j], 0.0)"),
        ("pad(x[i, j], 0)", "x[i, j]"),
        ("edge(x[i - 1, j + 1])", "x[max(i - 1, 0), min(j + 1, 5)]"),
        ("edge(x[v[j] + 1, j])", "x[min(max(v[j], -1), 2) + 1, j]"),
        ("edge(x[v[j] + i, j])", "x[min(max(v[j], 0 - i), 3 - i) + i, j]"),
        ("edge(x[i - v[j], j])", "x[i - max(min(v[j], i), i - 3), j]"),
        ("edge(x[s32(floor(i * 0.5)) + 1, j])", "x[s32(floor(f32(i) * 0.5)) + 1, j]"),
        ("x[i, j] if M == 4 else x[0, 0]", "x[i, j]"),
        ("0 <= v[j] < 5", "0 <= v[j] and v[j] < 5"),
        ("v[j] - 1 < 5", "v[j] < 6"),
        ("1 - v[j] < 5", "-4 < v[j]"),
        ("clip(x[i, j], 0, 6)", "min(max(x[i, j], 0.0), 6.0)"),
        ("relu(x[i, j])", "max(x[i, j], 0.0)"),
        ("x[i, j] * inf", "x[i, j] * inf"),
        ("reflect(i - 1, M)", "3 - abs(3 - abs(i - 1))"),
        ("not (v[j] > 0 or m[j])", "not (v[j] > 0 or m[j])"),
        ("i > 0 and x[i - 1, j] > 0", "x[i - 1, j] > 0.0 if i > 0 else 0"),
        ("sum[k2: -1..2](pad(x[i + k2, 0], 0))", "sum[k2](pad(x[i + (k2 + -1), 0], 0.0))"),
        ("sum[k2: 3..3](x[i, k2])", "0.0"),
        ("argmax[k2: 0..0](x[i, k2])", "-1"),
        ("dim(x, 1) + x[i, j]", "6.0 + x[i, j]"),
        ("u32(-1) + u[j]", "4294967295 + u[j]"),
        ("s8(200)", "-56"),
        ("u8(300.7)", "255"),
        ("f16(0.5) + x[i, j]", "0.5 + x[i, j]"),
        ("f16(0.1) + x[i, j]", "f32(0.1) + x[i, j]"),
        ("f32(0.1) + d[j]", "f64(0.1) + d[j]"),
        ("0.1 + d[j]", "0.1 + d[j]"),
        ("max(v[j], 2, i)", "max(max(v[j], 2), i)"),
        ("f16(x[i, j]) * 0.1 + h[j]", "f32(f16(x[i, j]) * 0.1) + h[j]"),
        ("nofma(x[i, j] * h[j] + d[j])", "nofma(f64(nofma(x[i, j] * h[j]))) + nofma(d[j])"),
        ("nofma(x[i, j] * h[j]) + d[j]", "f64(nofma(x[i, j] * h[j])) + d[j]"),
        ("nofma((x[i, j] + 1) * h[j])", "nofma((nofma(x[i, j]) + 1.0) * h[j])"),
        ("nofma(nofma(x[i, j] * h[j]))", "nofma(x[i, j] * h[j])"),
        ("nofma(x[i, j])", "nofma(x[i, j])"),
        ("nofma(2.5)", "2.5"),
        ("nofma(sum[k2: N](x[i, k2] * h[k2]))", "sum[k2](nofma(x[i, k2] * h[k2]))"),
        ("nofma(v[j] * v[0] + x[i, j])", "f32(v[j] * v[0]) + nofma(x[i, j])"),
        ("fast_sigmoid(x[i, j])", "1.0 / (fast_exp(-x[i, j]) + 1.0)"),
        ("fma(x[i, j], 2, v[j])", "fma(x[i, j], 2.0, f32(v[j]))"),
    ],
)
def test_elaborated_form(expression: str, text: str) -> None:
    assert show(value(expression), 200) == text


def test_pad_keeps_only_tests_that_can_fail() -> None:
    expr = value("pad(x[i - 1, j + 1], 0)")
    assert isinstance(expr, core.Select) and expr.border
    assert show(expr.cond) == "i - 1 >= 0 and j + 1 < 6"
    wide = value("pad(x[v[j] - 1, j], 0)")
    assert isinstance(wide, core.Select)
    assert show(wide.cond) == "v[j] >= 1 and v[j] <= 4"


def test_numbers_stay_exact_until_they_are_used() -> None:
    expr = value("x[i, j] * (1 / 2.2) + M / N")
    assert show(expr) == f"x[i, j] * {1 / 2.2!r} + {4 / 6!r}"


# ---------------------------------------------------------------- macros and blocks
def reads(expr: core.Expr) -> int:
    return sum(isinstance(n, core.Load) for n in core.walk(expr))


def test_a_macro_computes_its_arguments_once() -> None:
    p = program("def f(a) = a * a + a\n" + SIGNATURE.format(body="y[i, j] = f(f(x[i, j] + 1))"))
    expr = stages(p)["y"].expr
    assert isinstance(expr, core.Block)
    assert reads(expr) == 1


def test_macros_are_hygienic() -> None:
    text = "def f(a, i) = { let j = 2 * a  return a + i + j }\n" + SIGNATURE.format(
        body="y[i, j] = f(x[i, j], j)"
    )
    p = program(text)
    x = np.arange(24.0).reshape(4, 6)
    got = interpret(p, zeros(p) | {"x": x})["y"]
    np.testing.assert_allclose(got, 3 * x + np.arange(6))


def test_macros_take_tensors_slices_and_tuples() -> None:
    text = "def two(T, n) = (pad(T[n - 1], 0), T[n])\ndef swap(a, b) = (b, a)\n" + SIGNATURE.format(
        body="y[i, j] = { let (a, b) = two(x[i], j)  let (a, b) = swap(a, b)  return a - b }"
    )
    p = program(text)
    x = np.arange(24.0).reshape(4, 6) ** 2
    want = x - np.pad(x, ((0, 0), (1, 0)))[:, :-1]
    np.testing.assert_allclose(interpret(p, zeros(p) | {"x": x})["y"], want)


def test_definitions_see_where_they_are_written() -> None:
    """Not the caller's axes, but sizes, stages before them, and each other."""
    text = "def a1(x) = b1(x) + M\ndef b1(x) = x * 2\n" + SIGNATURE.format(
        body="t[j: N] = v[j] * 1.0\ndef c1(n) = t[n] + a1(t[n])\ny[i, j] = c1(j)"
    )
    p = program(text)
    got = interpret(p, zeros(p) | {"v": np.arange(6, dtype=np.int32)})["y"]
    np.testing.assert_allclose(got[0], 3 * np.arange(6) + 4)


@pytest.mark.parametrize(
    "expression",
    [
        "pad(x[argmax[k2: M](x[k2, 0]) - 1, j], 0)",
        "edge(x[argmax[k2: M](x[k2, 0]) + v[j], j])",
        "pad(x[{ let p = v[j] return p * p }, j], 0)",
        "edge(x[v[j] + s32(any[k2: M](v[k2])), j])",
        "{ let T = x[argmax[k2: M](x[k2, 0])]  return T[0] + T[1] + dim(T, 0) }",
        "(sum[k2: M](v[k2])) ** 3",
        "0 <= sum[k2: M](v[k2]) < 5",
        "elu(sum[k2: M](v[k2]))",
        "x[reflect(argmax[k2: M](x[k2, 0]) - 1, M), j]",
    ],
)
def test_no_binder_stands_twice(expression: str) -> None:
    """`value` checks that every variable is bound once."""
    assert value(expression)


def zeros(p: core.Program) -> dict[str, np.ndarray]:
    return {t.name: np.zeros(t.shape, t.dtype.numpy) for t in p.inputs}


PREDEFINED = {
    "relu(x[i, j])": lambda a: np.maximum(a, 0),
    "relu6(x[i, j])": lambda a: np.clip(a, 0, 6),
    "sigmoid(x[i, j])": lambda a: 1 / (1 + np.exp(-a)),
    "silu(x[i, j])": lambda a: a / (1 + np.exp(-a)),
    "gelu(x[i, j])": lambda a: a * 0.5 * (1 + np.vectorize(math.erf)(a / np.sqrt(2))),
    "hsigmoid(x[i, j])": lambda a: np.clip(a + 3, 0, 6) / 6,
    "hswish(x[i, j])": lambda a: a * np.clip(a + 3, 0, 6) / 6,
    "softplus(x[i, j])": lambda a: np.logaddexp(a, 0),
    "leaky_relu(x[i, j], 0.1)": lambda a: np.where(a >= 0, a, 0.1 * a),
    "elu(x[i, j])": lambda a: np.where(a > 0, a, np.exp(a) - 1),
    "elu(x[i, j], 0.5)": lambda a: np.where(a > 0, a, 0.5 * (np.exp(a) - 1)),
    "sq(x[i, j])": lambda a: a * a,
    "x[i, j] ** 5": lambda a: a**5,
    "abs(x[i, j]) ** 0.5": lambda a: np.abs(a) ** 0.5,
    "x[i, j] ** -1": lambda a: 1 / a,
    "clamp(x[i, j], -2, 2.5)": lambda a: np.clip(a, -2, 2.5),
    "max(x[i, j], 1, -x[i, j])": lambda a: np.maximum(np.abs(a), 1),
}


@pytest.mark.parametrize("expression", PREDEFINED)
def test_predefined_macros(expression: str) -> None:
    p = body(f"y[i, j] = {expression}")
    x = np.linspace(-9, 8, 24).reshape(4, 6)
    want = PREDEFINED[expression](x)
    np.testing.assert_allclose(interpret(p, zeros(p) | {"x": x})["y"], want, rtol=1e-6)


@pytest.mark.parametrize("extent", [1, 2, 5])
def test_reflect_mirrors_without_repeating_the_border(extent: int) -> None:
    text = (
        f"kernel k[N={extent}](x: f32[N], i: s32[1]) -> (y: f32[21]) {{ compute {{\n"
        "y[p] = x[reflect(p - 10, N)] } }"
    )
    p = program(text)
    assert verify(p) != () and all(d.severity == "warning" for d in verify(p))
    x = np.arange(float(extent))
    got = interpret(p, {"x": x, "i": np.zeros(1, np.int32)})["y"]
    for position, index in enumerate(range(-10, 11)):
        if -extent < index < 2 * extent - 1:
            mirrored = -index if index < 0 else index
            mirrored = 2 * (extent - 1) - mirrored if mirrored >= extent else mirrored
            assert got[position] == mirrored
        assert 0 <= got[position] < extent


# ---------------------------------------------------------------- templates
NET = """
def act(a) = max(a, 0)
table G: f32[2] = [1, 0.5]
template pair(t, w, n) -> (lo, hi) {
  let L = dim(t, 0)
  u[i: L] = t[i] * n + w[0]
  lo[i: L] = min(u[i], 0)
  hi[i: L] = act(u[i]) * G[1]
}
template twice(t, w) -> (o) {
  a, b = pair(t, w, 2)
  o = add(a, b)
}
template add(p, q) -> (r) { r[i: dim(p, 0)] = p[i] + q[i] }
kernel net[N=5](x: f32[3, N], w: const f32[3, 2]) -> (y: f32[N], z: f32[N]) {
  compute {
    y = twice(x[1], w[2])
    a, b = pair(y, w[0], 1)
    seq l: 3 {
      c = twice(x[l], w[l])
      h[l, i: N] = pad(h[l - 1, i], 0) + c[i]
    }
    z[i] = a[i] + b[i] + h[2, i]
  }
}
"""


def test_template_stages_are_named_after_their_bind() -> None:
    p = program(NET)
    assert [s.name for _, s in core.stages(p.body)] == [
        "y.a.u", "y.a", "y.b", "y", "a.u", "a", "b", "c.a.u", "c.a", "c.b", "c", "h", "z",
    ]  # fmt: skip
    assert stages(p)["y"].tensor.kind == "output"
    assert [t.tensor.name for t in p.tables] == ["G"]
    assert verify(p) == ()


def test_template_result() -> None:
    p = program(NET)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 5)), rng.normal(size=(3, 2))

    def pair(t: np.ndarray, c: float, n: int) -> tuple[np.ndarray, np.ndarray]:
        return np.minimum(t * n + c, 0), np.maximum(t * n + c, 0) * 0.5

    got = interpret(p, {"x": x, "w": w})
    y = sum(pair(x[1], w[2, 0], 2))
    np.testing.assert_allclose(got["y"], y)
    h = sum(sum(pair(x[n], w[n, 0], 2)) for n in range(3))
    np.testing.assert_allclose(got["z"], sum(pair(got["y"], w[0, 0], 1)) + h)


# ---------------------------------------------------------------- loops
def test_dtypes_of_histories_follow_from_each_other() -> None:
    p = body(
        "seq t: N {\n"
        "  a[t] = pad(c[t - 1], 0)\n"
        "  c[t] = pad(e[t - 1], 0)\n"
        "  e[t] = pad(a[t - 1], 0) + u[t]\n"
        "  f[t] = pad(f[t - 1], 0) + 1\n"
        "  g[t] = pad(g[t - 1], 0) * 0.5\n"
        "  k[t] = min(1 if t == 0 else 3000000000, pad(k[t - 1], 7))\n"
        "}\ny[i, j] = 0"
    )
    dtypes = {name: stage.tensor.dtype for name, stage in stages(p).items()}
    assert {dtypes[n] for n in "ace"} == {DType.U32}
    assert dtypes["f"] is DType.S32 and dtypes["g"] is DType.F32 and dtypes["k"] is DType.S64


def chain(length: int) -> str:
    """Histories of which each reads the next: a dtype travels up one stage in each pass."""
    lines = [f"g{n}[t] = pad(g{n + 1}[t - 1], 0)" for n in range(length)]
    return "seq t: M {\n" + "\n".join(lines) + f"\ng{length}[t] = x[t, 0]\n}}\ny[i, j] = g0[i]"


def test_dtypes_that_take_too_long_to_settle_are_refused() -> None:
    assert {s.tensor.dtype for s in stages(body(chain(20))).values()} == {DType.F32}
    kernel = parse(SIGNATURE.format(body=chain(200))).kernel
    assert kernel is not None
    (item,) = elaborate(kernel).diagnostics
    assert item.rule.code == "E291" and "`g" in item.message


def test_loop_indices_scopes_and_left_sides() -> None:
    p = body(
        "seq t: M {\n  let Q = 2\n  def f(n) = x[t, n] * Q\n"
        "  z[j: N] = f(j)\n  r[t, j: N] = z[j]\n  y[t, j] = r[t, j] + pad(r[t - 1, j], 1)\n}\n"
        "seq t: N reversed { q[t, i: M] = x[i, t] }"
    )
    (first, second) = p.body
    assert isinstance(first, core.Loop) and isinstance(second, core.Loop)
    assert second.reverse and (second.lo, second.hi) == (0, 6)
    made = stages(p)
    assert made["z"].lhs == tuple(a.var for a in made["z"].axes)
    assert made["r"].tensor.shape == (4, 6) and made["r"].lhs[0] is first.var
    assert made["q"].tensor.shape == (6, 4) and len(made["q"].axes) == 1


def test_uids_are_unique_and_below_the_next() -> None:
    p = program(NET)
    seen: list[int] = []
    for loops, stage in core.stages(p.body):
        seen += [a.var.uid for a in stage.axes]
        for node in core.walk(stage.expr):
            if isinstance(node, core.Reduce):
                seen += [a.var.uid for a in node.axes]
            elif isinstance(node, core.Block):
                seen += [var.uid for var, _ in node.lets]
        assert all(loop.var.uid < p.next_uid for loop in loops)
    assert len(seen) == len(set(seen))
    assert max(seen) < p.next_uid


def test_schedule_lines_are_not_looked_at() -> None:
    text = "kernel k[N=4](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] }\n"
    p = program(text + "schedule for cpu { loops nothing (parallel q) place A in B.c } }")
    assert [s.name for _, s in core.stages(p.body)] == ["y"]
