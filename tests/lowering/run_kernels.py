"""An executor of loop programs of GPUs that trusts nothing, beside `run_nest`.

The threads of a block run one after another from one barrier to the next. Besides what `run_nest`
checks: no thread touches between two barriers what another one writes, no block what another block
of the kernel writes, all threads reach the same barriers, and nobody reads the registers of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.core import Tensor
from edgekernelbench.lowering import nest

from .run_nest import UNSET, Action, Buffer, NestError, Region, _fit, _Machine, run_module

_ATOMIC: dict[nest.AtomicOp, int] = {"sum": -3, "min": -4, "max": -5}
"""What stands for an iteration where any of them may add to an element."""


def run_kernels(module: nest.Module, inputs: Mapping[str, np.ndarray], outputs: set[str]):
    """Packs, then runs ``main``; returns the outputs."""
    return run_module(module, inputs, outputs, DeviceMachine)


class DeviceMachine(_Machine):
    """The host's side and its kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[dict[int, Any]] = []
        self.registers: list[dict[str, Buffer]] = []

    def statement(self, statement: nest.Stmt) -> Action:
        if isinstance(statement, nest.For) and statement.kind == "block":
            return self._kernel(statement)
        if isinstance(statement, nest.Atomic):
            return self._atomic(statement)
        return super().statement(statement)

    def _atomic(self, atomic: nest.Atomic) -> Action:
        """Others may do the same to the element meanwhile, and nothing else."""
        self._same(atomic.tensor)
        flat, value = self._flat(atomic.tensor, atomic.indices), self.expr(atomic.value)
        buffers, name, mark = self.buffers, atomic.tensor.name, _ATOMIC[atomic.op]
        fit = _fit(atomic.tensor.dtype)
        combined = {"sum": lambda a, b: a + b, "min": min, "max": max}[atomic.op]

        def run() -> None:
            buffer, at, new = buffers[name], flat(), value()
            if not buffer.writable or buffer.values[at] is UNSET or new is UNSET:
                raise NestError(f"{name}[{at}] or what is added to it is not there")
            key = (id(buffer), at)
            for region in self.regions[buffer.owner :]:
                if {region.written.get(key, mark), region.read.get(key, mark)} != {mark}:
                    raise NestError(f"{region.what} race on {name}[{at}]")
                region.written[key] = mark
            buffer.values[at] = fit(combined(buffer.values[at], new))

        return run

    def _same(self, tensor: Tensor) -> None:
        known = self.shapes.get(tensor.name)
        if known is None or (known.dtype, len(known.shape)) != (tensor.dtype, len(tensor.shape)):
            super()._same(tensor)
        elif len(known.shape) != 1 or tensor.size > known.size:
            super()._same(tensor)  # else: copies of one loop body take turns in a buffer

    # ------------------------------------------------------------ kernels
    def _kernel(self, loop: nest.For) -> Action:
        inner = loop.body.body[0] if isinstance(loop.body, nest.Seq) else loop.body
        assert isinstance(inner, nest.For) and inner.kind == "thread", "one loop of threads"
        assert isinstance(loop.extent, core.Const) and isinstance(inner.extent, core.Const)
        blocks, threads = int(loop.extent.value), int(inner.extent.value)
        body = self._together(inner.body)

        def run() -> None:
            outer, within = Region("blocks"), Region("threads of a block")
            self.regions += [outer, within]
            base = dict(self.vars)
            for block in range(blocks):
                outer.iteration = block
                within.written.clear()
                within.read.clear()
                numbers = {loop.var.uid: block}
                self.threads = [{**base, **numbers, inner.var.uid: t} for t in range(threads)]
                self.registers = [{} for _ in range(threads)]
                body()
            self.vars.clear()
            self.vars.update(base)
            del self.regions[-2:]

        return run

    def _each(self, action: Callable[[], Any]) -> list[Any]:
        """Runs something in every thread."""
        out = []
        for number, values in enumerate(self.threads):
            self.vars.clear()
            self.vars.update(values)
            self.buffers.update(self.registers[number])
            self.regions[-1].iteration = number
            out.append(action())
            values.update(self.vars)
        return out

    def _agreed(self, found: list[Any]) -> Any:
        if any(value != found[0] for value in found):
            raise NestError("threads of a block part on the way to a barrier")
        return found[0]

    def _together(self, statement: nest.Stmt) -> Action:
        """What all threads of a block do, barriers inside."""
        match statement:
            case nest.Barrier():
                return self._barrier
            case nest.Seq(body=body):
                return self._sequence([self._together(inner) for inner in body])
            case nest.Alloc(tensor=tensor, scope=scope):
                return self._allocated(tensor, scope == "shared")
            case nest.For() if _waits(statement):
                return self._lockstep(statement)
            case nest.If(cond=cond, then=then, other=other) if _waits(statement):
                test, yes = self.expr(cond), self._together(then)
                no = self._together(other) if other is not None else lambda: None
                return lambda: yes() if self._agreed(self._each(test)) else no()
            case _:
                action = self.statement(statement)

                def each() -> None:
                    self._each(action)

                return each

    def _barrier(self) -> None:
        self.regions[-1].written.clear()
        self.regions[-1].read.clear()

    def _lockstep(self, loop: nest.For) -> Action:
        low, extent = self.expr(loop.lo), self.expr(loop.extent)
        body = self._together(loop.body)

        def run() -> None:
            first, count = (int(self._agreed(self._each(e))) for e in (low, extent))
            for k in range(first, first + count):
                for values in self.threads:
                    values[loop.var.uid] = k
                body()

        return run

    def _allocated(self, tensor: Tensor, shared: bool) -> Action:
        if tensor.name in self.shapes:
            raise NestError(f"two buffers are called {tensor.name}")
        self.shapes[tensor.name] = tensor
        size = max(1, tensor.size)

        def run() -> None:
            if shared:
                self.buffers[tensor.name] = Buffer([UNSET] * size, 1, True)
                self.alive.append(self.buffers[tensor.name])
                return
            for own in self.registers:
                own[tensor.name] = Buffer([UNSET] * size, len(self.regions), True)
                self.alive.append(own[tensor.name])

        return run


def _waits(statement: nest.Stmt) -> bool:
    return any(isinstance(inner, nest.Barrier) for inner in nest.statements(statement))
