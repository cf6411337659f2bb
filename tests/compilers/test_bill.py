"""Operations counted from loop programs."""

from __future__ import annotations

import pytest

from edgekernelbench.compilers.cost import unfolded_operations
from edgekernelbench.ir.core import Expr, Load, Tensor, VarRef
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.facts import function_facts
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.host import host_target
from tests.compilers.nests import k, loop, op, var
from tests.lowering.support import DATA, load_text

F32, S32 = DType.F32, DType.S32


def count(body: nest.Stmt) -> float:
    return function_facts(nest.Function("f", (), body)).flops


def accumulate(y: Tensor, x: Tensor, i: Expr, j: Expr) -> nest.Stmt:
    product = op("mul", Load(x, (j,)), Load(x, (op("add", i, k(0)),)))
    return nest.Store(y, (i,), op("add", Load(y, (i,)), product))


X, Y = Tensor("x", F32, (64,), "input"), Tensor("y", F32, (64,), "output")
P = Tensor("p", S32, (65,), "input")


def test_index_arithmetic_is_free() -> None:
    body = loop("serial", 8, lambda i: loop("serial", 4, lambda j: accumulate(Y, X, i, j)))
    assert count(body) == 8 * 4 * 2


def test_triangles_count_half() -> None:
    def row(i: Expr) -> nest.Stmt:
        j = var("j")
        extent = op("add", i, k(1))
        return nest.For(j, k(0), extent, "serial", accumulate(Y, X, i, VarRef(j)))

    assert count(loop("serial", 64, row)) == 2 * 64 * 65 / 2


def test_extents_read_from_data_count_the_least() -> None:
    def row(i: Expr) -> nest.Stmt:
        j, n = var("j"), var("n")
        let = nest.LetValue(n, op("min", Load(P, (i,)), k(64)))
        return nest.Seq(
            (let, nest.For(j, k(0), VarRef(n), "serial", accumulate(Y, X, i, VarRef(j))))
        )

    assert count(loop("serial", 64, row)) == 64  # the minimum itself


def test_branches_count_half() -> None:
    store = nest.Store(Y, (k(0),), op("add", Load(X, (k(0),)), Load(X, (k(1),))))
    assert count(nest.If(op("eq", k(0), k(1)), store)) == 0.5
    assert count(nest.If(op("eq", k(0), k(1)), store, store)) == 1


@pytest.mark.parametrize(
    ("name", "sizes", "flops"),
    [("matmul_bias_relu", {"M": 16, "K": 8, "N": 64}, 2 * 16 * 8 * 64),
     ("linear_nt", {"M": 16, "K": 7, "N": 64}, 2 * 16 * 7 * 64)],
)  # fmt: skip
def test_lowered_kernels(name: str, sizes: dict[str, int | float], flops: int) -> None:
    text = (DATA / "examples-layered" / f"{name}.ekir").read_text()
    kernel, program = load_text(text, sizes)
    module = lower(kernel, program, host_target()).module
    assert module is not None
    assert flops <= function_facts(module.main).flops <= 1.3 * flops


def test_size_of_unrolled_code() -> None:
    step = nest.Store(Y, (k(0),), op("add", Load(X, (k(0),)), Load(X, (k(1),))))
    assert unfolded_operations(loop("serial", 1000, lambda i: step), 512) == 4
    assert unfolded_operations(loop("unroll", 10, lambda i: step), 512) == 40
    wide = loop("unroll", 10, lambda i: loop("vectorize", 32, lambda j: step))
    assert unfolded_operations(wide, 512) == 70
