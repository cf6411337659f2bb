"""Accesses beside buffers, put into loop programs on purpose, are found in compiled code."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from tests.fuzz.engine import Finding, Most, run_batches
from tests.fuzz.execute import check_accesses, compiled
from tests.fuzz.guards import Guards

N, BIG = 15, 2048
TEXT = f"kernel k(x: f32[{N}]) -> (y: f32[{N}]) {{ compute {{ y[i] = x[i] * 2 }} }}"
X = core.Tensor("x", DType.F32, (N,), "input")
Y = core.Tensor("y", DType.F32, (N,), "output")
LOCAL = core.Tensor("l", DType.F32, (N,), "stage")
GLOBAL = core.Tensor("w", DType.F32, (BIG,), "stage")
BUFFERS = {"x": X, "y": Y, "l": LOCAL, "w": GLOBAL}


def index(value: int) -> tuple[core.Expr, ...]:
    return (core.Const(value, DType.S32),)


def module(buffer: str, at: int, writes: bool) -> nest.Module:
    """``y = 2 x`` by way of ``l`` and ``w``, and one access to element ``at`` of a buffer."""
    var = core.Var("i", 900)
    here: tuple[core.Expr, ...] = (core.VarRef(var),)
    tensor = BUFFERS[buffer]
    two = core.Const(2.0, DType.F32)
    doubled = core.Binary("mul", core.Load(X, here), two, DType.F32)
    last = index(tensor.size - 1)
    odd: nest.Stmt = nest.Store(Y, index(0), core.Load(tensor, index(at)))
    if writes:
        odd = nest.Store(tensor, index(at), core.Const(7.0, DType.F32))
    back = nest.Store(Y, here, core.Load(LOCAL, here))
    through = core.Load(GLOBAL, here)
    statements = (
        nest.Alloc(GLOBAL, "global"),
        nest.Alloc(LOCAL, "local"),
        loop(var, nest.Store(GLOBAL, here, doubled)),
        loop(var, nest.Store(LOCAL, here, through)),
        *((nest.Store(tensor, last, core.Const(1.0, DType.F32)),) if buffer == "w" else ()),
        loop(var, back),
        odd,
        nest.Store(Y, index(1), core.Load(LOCAL, index(1))),
    )
    main = nest.Function("main", (X, Y), nest.Seq(statements))
    return nest.Module(main, None, (), 0, "")


def loop(var: core.Var, body: nest.Stmt) -> nest.For:
    return nest.For(var, index(0)[0], index(N)[0], "serial", nest.Seq((body,)))


@dataclass
class Planted:
    """Compiles and runs the module with an access; its seed is no matter."""

    buffer: str
    at: int
    writes: bool
    name: str = "planted"
    batch: int = 1
    cpu_s: float = 60.0
    wall_s: float = 300.0
    memory_bytes: int | None = None

    def prepare(self) -> None:
        """Nothing."""

    def text(self, seed: int) -> str:
        return TEXT

    def check(self, text: str, seed: int, most: Most) -> str:
        from edgekernelbench.targets.host import host_target

        program = check_text(text).program
        assert program is not None
        inputs = {"x": np.arange(N, dtype=np.float32)}
        nest_ = module(self.buffer, self.at, self.writes)
        with TemporaryDirectory() as folder:
            code, results = compiled(nest_, program, host_target(), inputs, Path(folder))
        assert not code and len(results) == 2
        return "ran"


def outcome(job: Planted) -> str:
    (batch,) = run_batches(job, [(0, 1)], 1)
    return batch.failures[0].kind if batch.failures else next(iter(batch.counts))


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("side", ["last", "behind", "before"])
def test_accesses_beside_buffers_are_found(buffer: str, writes: bool, side: str) -> None:
    size = BUFFERS[buffer].size
    found = outcome(Planted(buffer, {"last": size - 1, "behind": size, "before": -1}[side], writes))
    if side == "last":
        assert found == ("input written" if buffer == "x" and writes else "ran")
    else:
        assert found in ("crash SIGSEGV", "guard written", "runs differ")


@pytest.mark.parametrize("at", [-100, N + 100])
def test_accesses_far_beside_small_buffers_are_found(at: int) -> None:
    for writes in (True, False):
        assert outcome(Planted("l", at, writes)) in ("crash SIGSEGV", "guard written")


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("at", [-1, 1])
def test_the_loop_program_is_checked_access_by_access(buffer: str, writes: bool, at: int) -> None:
    program = check_text(TEXT).program
    assert program is not None
    inputs = {"x": np.arange(N, dtype=np.float32)}
    place = at if at < 0 else BUFFERS[buffer].size
    with pytest.raises(Finding, match="outside"):
        check_accesses(module(buffer, place, writes), program, inputs)


def test_guards_see_a_byte_on_either_side() -> None:
    for at_end in (False, True):
        for offset in (-1, 12):
            guards = Guards(at_end, 0xA5)
            array = guards.empty((3,), np.dtype(np.float32))
            array[:] = 0
            assert array.ctypes.data % 64 == 0 and not guards.damage()
            inside = (array.ctypes.data + offset) // 4096 == array.ctypes.data // 4096
            if inside:
                ctypes.memset(array.ctypes.data + offset, 0, 1)
                assert guards.damage() == "1 bytes beside an array of 12"
            guards.close()
