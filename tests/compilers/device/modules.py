"""Modules with loops bound to threads, written by hand: what a lowering for devices yields.

Each is a map of NumPy functions' worth: `CASES` gives the module, its interface and what it
computes. They are plain TIR (`plain`) or scheduled blocks (`scheduled`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import ir, s_tir, te, tirx

Value = Any
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """``inputs`` and ``outputs`` by name, in the order of the function's parameters."""

    make: Callable[[], ir.IRModule]
    inputs: Mapping[str, tuple[str, tuple[int, ...]]]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]
    expected: Callable[..., tuple[np.ndarray, ...]]
    blocks: bool = False
    launches: int = 1


def i32(value: int) -> Value:
    return tirx.IntImm("int32", value)


def f32(value: float) -> Value:
    return tirx.FloatImm("float32", value)


def buffer(name: str, *shape: int, dtype: str = "float32", scope: str = "global") -> Value:
    return tirx.decl_buffer(shape, dtype, name=name, scope=scope)


def bound(
    groups: int, items: int, body: Callable[[Value, Value], Any], axes: tuple[str, str] = ("x", "x")
) -> Any:
    """``body(group, item)`` in a grid of groups."""
    block, thread = tirx.Var("bx", "int32"), tirx.Var("tx", "int32")
    inner = body(block, thread)
    for var, extent, tag in (
        (thread, items, f"threadIdx.{axes[1]}"),
        (block, groups, f"blockIdx.{axes[0]}"),
    ):
        axis = tirx.IterVar((0, extent), var, tirx.IterVar.ThreadIndex, tag)
        inner = tirx.AttrStmt(axis, "thread_extent", i32(extent), inner)
    return inner


def module(params: list[Value], body: Any, name: str = "main") -> ir.IRModule:
    function = tirx.PrimFunc(params, body).with_attr("global_symbol", name)
    return ir.IRModule({name: function.with_attr("tirx.noalias", True)})


def sequence(*statements: Any) -> Any:
    return tirx.SeqStmt(list(statements))


def barrier() -> Any:
    return tirx.Evaluate(tirx.call_intrin("void", "tirx.tvm_storage_sync", ir.StringImm("shared")))


# ---------------------------------------------------------------- plain loops
def element_wise() -> ir.IRModule:
    x, y = buffer("x", 1024), buffer("y", 1024)

    def body(group: Value, item: Value) -> Any:
        at = group * 64 + item
        return tirx.BufferStore(y, x[at] * f32(2) + f32(1), [at])

    return module([x, y], bound(16, 64, body))


def reduction_in_groups() -> ir.IRModule:
    """Row sums: each group adds one row up in local memory, halving it between barriers."""
    x, y = buffer("x", 32, 128), buffer("y", 32)
    part = buffer("part", 64, scope="shared")

    def body(group: Value, item: Value) -> Any:
        steps = [tirx.BufferStore(part, x[group, item] + x[group, item + 64], [item]), barrier()]
        for half in (32, 16, 8, 4, 2, 1):
            added = tirx.BufferStore(part, part[item] + part[item + half], [item])
            steps += [tirx.IfThenElse(item < half, added, None), barrier()]
        steps.append(tirx.IfThenElse(tirx.EQ(item, 0), tirx.BufferStore(y, part[0], [group]), None))
        return sequence(tirx.AllocBuffer(part), *steps)

    return module([x, y], bound(32, 64, body))


def host_loop() -> ir.IRModule:
    """Steps that depend on each other: a loop and a branch of the host, two workspaces."""
    x, y = buffer("x", 4, 64), buffer("y", 4, 64)
    w, w2 = buffer("w", 64), buffer("w2", 64)
    t = tirx.Var("t", "int32")

    def kernel(make: Callable[[Value], Any]) -> Any:
        return bound(2, 32, lambda group, item: make(group * 32 + item))

    first = kernel(lambda i: tirx.BufferStore(w, x[t, i] * f32(2), [i]))
    early = kernel(lambda i: tirx.BufferStore(y, w[i] + tirx.Cast("float32", t), [t, i]))
    copy = kernel(lambda i: tirx.BufferStore(w2, w[i] + f32(1), [i]))
    late = kernel(lambda i: tirx.BufferStore(y, w2[i], [t, i]))
    branch = tirx.IfThenElse(t > 1, sequence(tirx.AllocBuffer(w2), copy, late), early)
    loop = tirx.For(t, 0, 4, tirx.ForKind.SERIAL, sequence(first, branch))
    return module([x, y], sequence(tirx.AllocBuffer(w), loop))


def _host_loop(x: np.ndarray) -> tuple[np.ndarray, ...]:
    added = np.array([0, 1, 1, 1], np.float32)
    return (x * 2 + added[:, None],)


# ---------------------------------------------------------------- scheduled blocks
def _tensors() -> tuple[Any, Any, Any]:
    a = te.placeholder((64, 96), "float32", name="A")
    b = te.placeholder((96, 64), "float32", name="B")
    k = te.reduce_axis((0, 96), name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return a, b, c


def tiled_matmul() -> ir.IRModule:
    """Both operands in local memory, a tile a step."""
    schedule = s_tir.Schedule(te.create_prim_func(list(_tensors())))
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    by, ty = schedule.split(i, [None, 16])
    bx, tx = schedule.split(j, [None, 16])
    ko, ki = schedule.split(k, [None, 16])
    schedule.reorder(by, bx, ty, tx, ko, ki)
    for loop, tag in (
        (by, "blockIdx.y"),
        (bx, "blockIdx.x"),
        (ty, "threadIdx.y"),
        (tx, "threadIdx.x"),
    ):
        schedule.bind(loop, tag)
    for operand in (0, 1):
        cached = schedule.cache_read(block, operand, "shared")
        schedule.compute_at(cached, ko)
        fused = schedule.fuse(*schedule.get_loops(cached)[-2:])
        y, x = schedule.split(fused, [16, None])
        schedule.bind(y, "threadIdx.y")
        schedule.bind(x, "threadIdx.x")
    return schedule.mod


def several_kernels() -> ir.IRModule:
    """A product, its exponential, row sums, by the compiler's own rules."""
    from tvm.s_tir import dlight

    a, b, c = _tensors()
    e = te.compute((64, 64), lambda i, j: te.exp(c[i, j] * 0.1), name="E")
    k = te.reduce_axis((0, 64), name="k2")
    s = te.compute((64,), lambda i: te.sum(e[i, k], axis=k), name="S")
    made = ir.IRModule({"main": te.create_prim_func([a, b, s])})
    target = tvm.target.Target({"kind": "opencl", "max_num_threads": 256}, host={"kind": "llvm"})
    with target:
        return dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(made)


CASES = {
    "element_wise": Case(
        element_wise,
        {"x": ("float32", (1024,))},
        {"y": ("float32", (1024,))},
        lambda x: (x * 2 + 1,),
    ),
    "reduction_in_groups": Case(
        reduction_in_groups,
        {"x": ("float32", (32, 128))},
        {"y": ("float32", (32,))},
        lambda x: (x.sum(1),),
    ),
    "host_loop": Case(
        host_loop,
        {"x": ("float32", (4, 64))},
        {"y": ("float32", (4, 64))},
        _host_loop,
        launches=10,
    ),
    "tiled_matmul": Case(
        tiled_matmul,
        {"A": ("float32", (64, 96)), "B": ("float32", (96, 64))},
        {"C": ("float32", (64, 64))},
        lambda A, B: (A @ B,),
        blocks=True,
    ),
    "several_kernels": Case(
        several_kernels,
        {"A": ("float32", (64, 96)), "B": ("float32", (96, 64))},
        {"S": ("float32", (64,))},
        lambda A, B: (np.exp((A @ B) * 0.1).sum(1),),
        blocks=True,
        launches=2,
    ),
}
