"""Faults put into the compiler on purpose: does the fuzzing find them, and how soon?

python -m tests.fuzz.planted                  each of them, a table
python -m tests.fuzz.planted ring decide      some
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.fuzz.engine import run_batches
from tests.fuzz.jobs import JOBS

Change = Callable[[Any], Any]
"""From what the compiler has to what takes its place."""

_LOWERING, _TVM = "edgekernelbench.lowering", "edgekernelbench.compilers.tvm"
_PARTS = ("layers", "programs")
_STEP = 10


@dataclass(frozen=True, slots=True)
class Fault:
    """``places``: modules (with the class inside them after a colon) that have ``name``."""

    what: str
    places: tuple[str, ...]
    name: str
    change: Change

    def plant(self) -> None:
        """Puts the fault in, for the rest of this process and its children."""
        for place in self.places:
            module, _, inside = place.partition(":")
            owner: Any = importlib.import_module(module)
            owner = getattr(owner, inside) if inside else owner
            setattr(owner, self.name, self.change(getattr(owner, self.name)))


def _ring(right: Any) -> Any:
    return lambda graph, name: {d: max(1, n - 1) for d, n in right(graph, name).items()}


def _decide(right: Any) -> Any:
    return lambda op, low, high: True if (op, high) == ("lt", 0) else right(op, low, high)


def _modulo(right: Any) -> Any:
    def divide(op: Any, a: Any, c: int, dtype: Any, ranges: Any) -> Any:
        from edgekernelbench.lowering.expr.linear import to_expr
        from edgekernelbench.lowering.expr.ranges import range_of_linear

        low, high = range_of_linear(a, ranges)
        fits = op == "mod" and low >= 0 and high == c
        return to_expr(a, dtype) if fits else right(op, a, c, dtype, ranges)

    return divide


def _tail(right: Any) -> Any:
    def chunks(extent: int, lanes: int, whole: bool) -> Any:
        out = right(extent, lanes, whole)
        return out[:-1] if len(out) > 2 else out

    return chunks


def _life(right: Any) -> Any:
    def life(self: Any, tree: Any, name: str) -> tuple[int, int]:
        first, _ = right(self, tree, name)
        return first, first

    return life


def _tile(right: Any) -> Any:
    def tile(self: Any, role: str, name: str, dtype: Any, shape: Any, out: Any) -> Any:
        shorter = (*shape[:-1], max(1, shape[-1] - 1)) if shape else shape
        return right(self, role, name, dtype, shorter, out)

    return tile


def _ties(right: Any) -> Any:
    def better(op: str, new: Any, old: Any, old_at: Any) -> Any:
        from edgekernelbench.ir import core
        from edgekernelbench.ir.dtypes import DType

        same = core.Binary("eq", new, old, DType.BOOL)
        return core.Binary("or", right(op, new, old, old_at), same, DType.BOOL)

    return better


def _address(right: Any) -> Any:
    def address(self: Any, tensor: Any, indices: Any) -> Any:
        from edgekernelbench.lowering.expr.rewrite import substitute

        storage = self.storages.get(tensor.name)
        if storage is None:
            return tensor, tuple(self.simple(index) for index in indices)
        values = dict(zip(storage.formals, indices, strict=True))
        return storage.buffer, tuple(self.simple(substitute(e, values)) for e in storage.index)

    return address


def _saturate(right: Any) -> Any:
    def convert(x: Any, source: Any, dtype: Any, bind: Any) -> Any:
        from tvm import tirx

        return tirx.Cast(dtype.numpy.name, x)

    return convert


def _owner(right: Any) -> Any:
    def buffer(plan: Any, tree: Any, name: str) -> Any:
        return replace(right(plan, tree, name), owner=None)

    return buffer


_SIMPLIFY = f"{_LOWERING}.expr.simplify"
FAULTS = {
    "ring": Fault("histories keep one slab too few", (f"{_LOWERING}.emit.buffers",),
                  "ring_sizes", _ring),
    "decide": Fault("`a < b` is taken as decided where a may be b",
                    (_SIMPLIFY, f"{_LOWERING}.emit.cuts"), "decide", _decide),
    "modulo": Fault("`a % n` is dropped where a may be n", (_SIMPLIFY,), "_raw_divide", _modulo),
    "tail": Fault("the last lanes of a remainder are left out",
                  (f"{_LOWERING}.emit.walk", f"{_LOWERING}.emit.simd"), "chunks", _tail),
    "life": Fault("buffers share memory while they are alive",
                  (f"{_LOWERING}.emit.slots:Timeline",), "life", _life),
    "tile": Fault("tiles are one element short", (f"{_LOWERING}.emit.context:Context",),
                  "tile", _tile),
    "ties": Fault("argmax takes the last of equals", (f"{_LOWERING}.emit.accumulate",),
                  "_first_or_better", _ties),
    "address": Fault("indices inside tile addresses stay where the program has them",
                     (f"{_LOWERING}.emit.context:Context",), "address", _address),
    "owner": Fault("threads share the buffers of their iterations",
                   (f"{_LOWERING}.emit.buffers",), "_buffer", _owner),
    "wrap": Fault("casts that wrap are taken for casts that fit", (f"{_TVM}.expressions",),
                  "_may_change", lambda right: lambda source, dtype: False),
    "fall": Fault("floor divisions of falling indices are left to TVM", (f"{_TVM}.expressions",),
                  "_may_fall", lambda right: lambda value: False),
    "saturate": Fault("floats become integers without saturation", (f"{_TVM}.scalars",),
                      "float_to_int", _saturate),
}  # fmt: skip


def found(name: str, most: int, jobs: int = 1) -> tuple[int, str] | None:
    """After how many inputs of the two compiled parts in turn a planted fault shows, and how.

    The fault stays planted: one call a process.
    """
    for part in _PARTS:
        JOBS[part].prepare()
    FAULTS[name].plant()
    for start in range(0, most, _STEP):
        for part in _PARTS:
            spans = [(start, start + _STEP)]
            for batch in run_batches(JOBS[part], spans, jobs):
                if batch.failures:
                    first = min(batch.failures, key=lambda failure: failure.seed)
                    return 2 * start + _STEP, f"{part} {first.seed}: {first.kind}"
    return None


def main(names: list[str], most: int = 2000) -> int:
    missed = 0
    for name in names or FAULTS:
        child = os.fork()
        if child == 0:
            how = found(name, most)
            after, kind = how or (2 * most, "NOT FOUND")
            print(f"| {FAULTS[name].what} | {after} | {kind} |", flush=True)
            os._exit(how is None)
        missed |= os.waitpid(child, 0)[1]
    return int(missed != 0)


if __name__ == "__main__":
    os.environ.setdefault("TVM_NUM_THREADS", "2")
    sys.exit(main(sys.argv[1:]))
