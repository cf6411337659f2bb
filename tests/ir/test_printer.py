"""Printing is canonical, and what is printed is read back as the same tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.diagnostics import render
from edgekernelbench.ir.edit import replace_header, with_layers
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import kernel_hash, print_expr, print_header, print_kernel
from tests.ir import strategies

DATA = Path(__file__).parent.parent / "data"
EXAMPLES = sorted(DATA.glob("examples*/*.ekir"))
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def read(text: str) -> s.Kernel:
    result = parse(text)
    assert result.kernel is not None, "\n".join(render(d, text) for d in result.diagnostics)
    assert result.diagnostics == ()
    return result.kernel


def test_there_are_93_examples() -> None:
    assert len(EXAMPLES) == 93


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_round_trip(path: Path) -> None:
    kernel = read(path.read_text("utf-8"))
    text = print_kernel(kernel)
    assert read(text) == kernel
    assert print_kernel(read(text)) == text


@given(strategies.kernels)
@settings(max_examples=60, deadline=None, suppress_health_check=_SLOW)
def test_any_tree_round_trips(kernel: s.Kernel) -> None:
    text = print_kernel(kernel)
    assert read(text) == kernel


@given(strategies.exprs)
@settings(max_examples=200, deadline=None, suppress_health_check=_SLOW)
def test_any_expression_round_trips(expr: s.Expr) -> None:
    assert expression(print_expr(expr)) == expr


def expression(text: str) -> s.Expr:
    """The expression that a text is."""
    stage = read(f"kernel k() -> (y: f32) {{ compute {{ y = {text} }} }}").compute.body[0]
    assert isinstance(stage, s.StageStmt)
    return stage.value


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("a+b*c", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "a - b - c"),
        ("-x**2", "-x ** 2"),
        ("(-x)**2", "(-x) ** 2"),
        ("2**-x", "2 ** -x"),
        ("(a**b)**c", "(a ** b) ** c"),
        ("a**b**c", "a ** b ** c"),
        ("- -x", "--x"),
        ("-(a*b)", "-(a * b)"),
        ("not (a and b) or c", "not (a and b) or c"),
        ("(not a) and b", "not a and b"),
        ("not (a<b)", "not a < b"),
        ("(a<b)<c", "(a < b) < c"),
        ("0<=a<N", "0 <= a < N"),
        ("a if b else (c if d else e)", "a if b else c if d else e"),
        ("(a if b else c) if d else e", "(a if b else c) if d else e"),
        ("a if (b if c else d) else e", "a if (b if c else d) else e"),
        ("(a if b else c)+1", "(a if b else c) + 1"),
        ("a<<b&c|d^e", "a << b & c | d ^ e"),
        ("(a|b)<c", "a | b < c"),
        ("a|(b<c)", "a | (b < c)"),
        ("~-x", "~-x"),
        ("sum[k:0..i+1 where k!=i](x[k])", "sum[k: 0..i + 1 where k != i](x[k])"),
        ("max[k:K,](x[k,])", "max[k: K](x[k])"),
        ("(a,)", "(a,)"),
        ("(a, b,)", "(a, b)"),
        ("0x1F", "31"),
        ("1e-5", "1e-05"),
        (".5", "0.5"),
        ("2.", "2.0"),
        ("1.e3", "1000.0"),
        ("f32(x)", "f32(x)"),
        ("{let a=1;let (b,c)=(a,2);return a+b*c}", None),
    ],
)
def test_parentheses_are_those_needed(written: str, canonical: str | None) -> None:
    printed = print_expr(expression(written))
    if canonical is None:
        canonical = "{\n  let a = 1\n  let (b, c) = (a, 2)\n  return a + b * c\n}"
    assert printed == canonical


def test_shape_of_a_whole_text() -> None:
    text = (
        "def f(a)=a*2;template t(u)->(v){v[i:dim(u,0)]=u[i]} table G:f32[2]=[1,2]\n"
        "kernel k[N=4](x:f32[N],w:const s8[N,2])->(y:f32[N]) {\n"
        "schedule for cpu{loops y(parallel i by ?{2,4},vectorize i);place a,b.u in y.i0;inline c}\n"
        "memory for llvm{layout w[n,k]->[k,n]}\n"
        "compute{seq t:0..N reversed{h[t]=pad(h[t-1],0)} a,b=t(x) c:f16=1 y[i]=f(x[i])}\n"
        "}"
    )
    assert print_kernel(read(text)) == (
        "def f(a) = a * 2\n"
        "template t(u) -> (v) {\n"
        "  v[i: dim(u, 0)] = u[i]\n"
        "}\n"
        "table G: f32[2] = [1, 2]\n"
        "kernel k[N=4](x: f32[N], w: const s8[N, 2]) -> (y: f32[N]) {\n"
        "  compute {\n"
        "    seq t: 0..N reversed {\n"
        "      h[t] = pad(h[t - 1], 0)\n"
        "    }\n"
        "    a, b = t(x)\n"
        "    c: f16 = 1\n"
        "    y[i] = f(x[i])\n"
        "  }\n"
        "  schedule for cpu {\n"
        "    loops y (parallel i by ?{2, 4}, vectorize i)\n"
        "    place a, b.u in y.i0\n"
        "    inline c\n"
        "  }\n"
        "  memory for llvm {\n"
        "    layout w [n, k] -> [k, n]\n"
        "  }\n"
        "}\n"
    )


def test_long_headers_and_tables_are_broken() -> None:
    inputs = ", ".join(f"input_number_{i}: f32[N]" for i in range(6))
    rows = ", ".join("[" + ", ".join(str(i * j) for j in range(20)) + "]" for i in range(3))
    text = f"table T: s32[3, 20] = [{rows}]\nkernel k[N=4]({inputs}) -> (y: f32) {{ compute {{}} }}"
    printed = print_kernel(read(text))
    assert read(printed) == read(text)
    assert max(map(len, printed.splitlines())) <= 100


def test_hash_is_of_the_canonical_text() -> None:
    text = EXAMPLES[0].read_text("utf-8")
    kernel = read(text)
    assert kernel_hash(kernel) == kernel_hash(read("# remark\n" + text.replace(" + ", "  +  ")))
    assert kernel_hash(kernel) != kernel_hash(replace(kernel, name=kernel.name + "_"))
    assert len(kernel_hash(kernel)) == 64


def test_replacing_the_header_keeps_the_rest() -> None:
    kernel, other = (read(path.read_text("utf-8")) for path in EXAMPLES[:2])
    new = replace_header(kernel, other)
    assert print_header(new) == print_header(other)
    assert (new.compute, new.schedules, new.prelude) == (
        kernel.compute,
        kernel.schedules,
        kernel.prelude,
    )


def test_exchanging_layers() -> None:
    kernel = read((DATA / "examples-layered" / "linear_nt.ekir").read_text("utf-8"))
    assert kernel.schedules
    bare = with_layers(kernel, schedules=(), memories=())
    assert (bare.schedules, bare.memories, bare.compute) == ((), (), kernel.compute)
    assert with_layers(bare, kernel.schedules, kernel.memories) == kernel
    with pytest.raises(ValueError, match="same target"):
        with_layers(kernel, schedules=kernel.schedules * 2)
