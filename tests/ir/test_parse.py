"""What texts are read as, and where the nodes say they stand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.diagnostics import Span, render
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.words import RESERVED

EXAMPLES = sorted((Path(__file__).parent.parent / "data").glob("examples*/*.ekir"))


def read(text: str) -> s.Kernel:
    result = parse(text)
    assert result.kernel is not None, "\n".join(render(d, text) for d in result.diagnostics)
    return result.kernel


def body(statements: str) -> tuple[s.Stmt, ...]:
    return read(f"kernel k() -> (y: f32) {{ compute {{ {statements} }} }}").compute.body


def nodes(root: Any) -> Iterator[Any]:
    """A node and all nodes below it."""
    yield root
    for field in fields(root):
        value = getattr(root, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if hasattr(child, "span"):
                yield from nodes(child)


EXPRESSIONS = (
    s.Num, s.Name, s.Index, s.Call, s.CastExpr, s.Reduction, s.Unary, s.Binary, s.Compare,
    s.IfExpr, s.TupleExpr, s.ListExpr, s.BlockExpr,
)  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES[::4], ids=lambda p: p.stem)
def test_spans_hold_their_expressions(path: Path) -> None:
    """The text under the span of an expression is that expression."""
    text = path.read_text("utf-8")
    kernel = read(text)
    found = [n for n in nodes(kernel.compute) if isinstance(n, EXPRESSIONS)]
    assert found
    for start in range(0, len(found), 200):
        part = found[start : start + 200]
        stages = " ".join(f"y = {text[n.span.start : n.span.end]};" for n in part)
        assert [stage.value for stage in body(stages) if isinstance(stage, s.StageStmt)] == part


@pytest.mark.parametrize("path", EXAMPLES[1::9], ids=lambda p: p.stem)
def test_spans_nest(path: Path) -> None:
    text = path.read_text("utf-8")
    kernel = read(text)
    first = next(i for i, line in enumerate(text.split("\n")) if line and line[0] != "#")
    begin = sum(len(line) + 1 for line in text.split("\n")[:first])
    assert kernel.span == Span(begin, len(text.rstrip()))
    for node in nodes(kernel):
        assert node.span.start < node.span.end, node
        for child in nodes(node):
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end


def test_name_spans() -> None:
    text = "kernel k() -> (y: f32) { compute { acc: f16[i: 3] = 1  a, b = f(2) } }"
    first, second = read(text).compute.body
    assert isinstance(first, s.StageStmt) and isinstance(second, s.StageStmt)
    assert text[first.name_span.start : first.name_span.end] == "acc"
    assert text[second.name_span.start : second.name_span.end] == "a"


def test_parentheses_belong_to_the_span() -> None:
    text = "kernel k() -> (y: f32) { compute { y = (a + b) * c } }"
    stage = read(text).compute.body[0]
    assert isinstance(stage, s.StageStmt) and isinstance(stage.value, s.Binary)
    assert stage.value.left.span == Span(text.index("("[0], 20), text.index(") *") + 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = 1", s.StageStmt(("y",), None, None, s.Num(1))),
        ("y: f16 = 1.5", s.StageStmt(("y",), DType.F16, None, s.Num(1.5))),
        ("y[] = 1", s.StageStmt(("y",), None, (), s.Num(1))),
        (
            "y: s8[i: 3, t] = i",
            s.StageStmt(
                ("y",),
                DType.S8,
                (s.LeftAxis("i", s.Num(3)), s.LeftAxis("t", None)),
                s.Name("i"),
            ),
        ),
        ("a, b = f(x)", s.StageStmt(("a", "b"), None, None, s.Call("f", (s.Name("x"),)))),
        ("let P = D//2", s.LetStmt("P", s.Binary("//", s.Name("D"), s.Num(2)))),
        ("table G: f32[2] = [1, 2,]", s.TableStmt("G", DType.F32, (s.Num(2),),
                                                  s.ListExpr((s.Num(1), s.Num(2))))),
        ("def f() = 1", s.DefStmt("f", (), s.Num(1))),
        (
            "seq t: 0..L reversed {}",
            s.LoopStmt("seq", s.RangeAxis("t", s.Num(0), s.Name("L")), True, ()),
        ),
        ("each c: C {;}", s.LoopStmt("each", s.RangeAxis("c", None, s.Name("C")), False, ())),
        ("template f(x,) -> (y) {}", s.TemplateStmt("f", ("x",), ("y",), ())),
    ],
)  # fmt: skip
def test_statements(text: str, expected: s.Stmt) -> None:
    assert body(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-x**2", s.Unary("-", s.Binary("**", s.Name("x"), s.Num(2)))),
        ("2**-x", s.Binary("**", s.Num(2), s.Unary("-", s.Name("x")))),
        ("a<b<=c", s.Compare(("<", "<="), (s.Name("a"), s.Name("b"), s.Name("c")))),
        ("1<<2<3", s.Compare(("<",), (s.Binary("<<", s.Num(1), s.Num(2)), s.Num(3)))),
        (
            "a if b else c if d else e",
            s.IfExpr(
                s.Name("b"), s.Name("a"), s.IfExpr(s.Name("d"), s.Name("c"), s.Name("e"))
            ),
        ),
        ("sum[k: 0..3 where k > 1](k)", s.Reduction(
            "sum", (s.RangeAxis("k", s.Num(0), s.Num(3)),),
            s.Compare((">",), (s.Name("k"), s.Num(1))), s.Name("k"))),
        ("sum[i: 2, j: i](1)", s.Reduction(
            "sum", (s.RangeAxis("i", None, s.Num(2)), s.RangeAxis("j", None, s.Name("i"))),
            None, s.Num(1))),
        ("u8(x[i,])", s.CastExpr(DType.U8, s.Index("x", (s.Name("i"),)))),
        ("{ return 1; }", s.BlockExpr((), s.Num(1))),
        ("{ let (a,) = f(); return a }",
         s.BlockExpr((s.BlockLet(("a",), s.Call("f", ())),), s.Name("a"))),
        ("9223372036854775808", s.Num(1 << 63)),
        ("0xff", s.Num(255)),
        ("1e3", s.Num(1000.0)),
    ],
)  # fmt: skip
def test_expressions(text: str, expected: s.Expr) -> None:
    (stage,) = body(f"y = {text}")
    assert isinstance(stage, s.StageStmt)
    assert stage.value == expected


def test_integers_and_floats_are_told_apart() -> None:
    (stage,) = body("y = [1, 1.0, 1.]")
    assert isinstance(stage, s.StageStmt) and isinstance(stage.value, s.ListExpr)
    assert [type(item.value) for item in stage.value.items if isinstance(item, s.Num)] == [
        int,
        float,
        float,
    ]


def test_layers() -> None:
    text = """kernel k() -> (y: f32) { compute { y = 1 }
      schedule for cuda { loops a.u (parallel o = i by 8, vectorize j); place p, q.sum in a.u.j0 }
      schedule for cpu { inline p, q }
      memory for cuda { layout w [k, j] -> [j // ?{16, 32}, k] } }"""
    kernel = read(text)
    assert kernel.schedules == (
        s.ScheduleLayer(
            "cuda",
            (
                s.LoopsLine(
                    s.Ref("a.u"),
                    (
                        s.Piece("parallel", "i", s.Num(8), "o"),
                        s.Piece("vectorize", "j", None),
                    ),
                ),
                s.PlaceLine((s.Ref("p"), s.Ref("q.sum")), s.Ref("a.u"), "j0"),
            ),
        ),
        s.ScheduleLayer("cpu", (s.InlineLine((s.Ref("p"), s.Ref("q"))),)),
    )
    hole = s.Hole((s.Num(16), s.Num(32)))
    assert kernel.memories == (
        s.MemoryLayer(
            "cuda",
            (
                s.LayoutLine(
                    s.Ref("w"), ("k", "j"), (s.Binary("//", s.Name("j"), hole), s.Name("k"))
                ),
            ),
        ),
    )


def test_words_that_are_not_reserved_can_be_names() -> None:
    soft = ["table", "kernel", "compute", "schedule", "memory", "loops", "place", "inline"]
    soft += ["layout", "in", "by", "const", "shape", "lambda"]
    for word in soft:
        assert word not in RESERVED
        read(
            f"kernel {word}[N=4]({word}: const f32[N]) -> (y: f32[N]) {{ compute {{\n"
            f"a = {word}[0]\n{word}_ = {word}[1] + {word}\ny[i] = {word}[i]\n}} }}"
        )
        if word not in ("compute", "schedule", "memory"):
            read(f"kernel k() -> (y: f32) {{ compute {{ a = 1\n{word} = 2\n{word}[i: 3] = 4 }} }}")


def test_reserved_words_cannot_be_names() -> None:
    for word in sorted(RESERVED):
        assert parse(f"kernel k({word}: f32) -> (y: f32) {{ compute {{ y = 1 }} }}").kernel is None


def test_the_grammar_file_alone_reads_the_same_language() -> None:
    """`grammar.lark` with lark's own contextual lexer takes what `parse` takes."""
    from lark import Lark, Tree

    path = resources.files("edgekernelbench.ir").joinpath("grammar.lark")
    plain = Lark(path.read_text("utf-8"), parser="lalr", lexer="contextual")
    for example in EXAMPLES:
        text = example.read_text("utf-8")
        assert isinstance(plain.parse(text), Tree)
        assert isinstance(plain.parse(print_kernel(read(text))), Tree)


def test_importing_the_parser_loads_no_lark() -> None:
    code = (
        "import sys, edgekernelbench.ir.parse, edgekernelbench.ir.printer; "
        "sys.exit('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
