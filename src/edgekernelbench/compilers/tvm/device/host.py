"""Reads the compiler's host function into a launch plan. What it does not know, it refuses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx

from edgekernelbench.compilers.launch import (
    Argument,
    Branch,
    BufferArgument,
    Expr,
    Launch,
    LaunchPlan,
    Op,
    Operation,
    Repeat,
    ScalarArgument,
    Step,
    Workspace,
)
from edgekernelbench.compilers.tvm.device.rules import HOST_CODE, ON_HOST
from edgekernelbench.ir.diagnostics import Rule

_LAUNCH = "tirx.call_ffi_kernel"
_BUFFER_DATA = "tirx.buffer_data"
_AXES = {f"{kind}.{axis}": (kind, n) for kind in ("blockIdx", "threadIdx")
         for n, axis in enumerate("xyz")}  # fmt: skip
_SHARED = "tirx.use_dyn_shared_memory"
_LOOPS = (tirx.ForKind.SERIAL, tirx.ForKind.UNROLLED)

_OPS: dict[str, Op] = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "FloorDiv": "floordiv", "FloorMod": "floormod",
    "Min": "min", "Max": "max", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge", "EQ": "eq",
    "NE": "ne", "And": "and", "Or": "or",
}  # fmt: skip


class Unreadable(Exception):
    """The host function holds something that is no plan; says which rule it breaks, and how."""

    def __init__(self, rule: Rule, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message


def read_host(function: Any, names: Sequence[str], kernels: dict[str, Any]) -> LaunchPlan:
    """The plan of a host function after the compiler has split off its kernels.

    Args:
        function: its `PrimFunc`.
        names: what the plan is to call its parameters, in order.
        kernels: the device functions by symbol; their signatures decide the types of scalars.

    Raises:
        Unreadable: see the class.
    """
    reader = _Reader(function.params, names, kernels)
    steps = reader.block(function.body)
    return LaunchPlan(params=tuple(names), workspaces=tuple(reader.workspaces), steps=tuple(steps))


class _Reader:
    def __init__(
        self, params: Sequence[Any], names: Sequence[str], kernels: dict[str, Any]
    ) -> None:
        if len(params) != len(names):
            raise ValueError(f"{len(names)} names for {len(params)} parameters")
        self._kernels = kernels
        self._buffers: list[tuple[Any, str]] = list(zip(params, names, strict=True))
        self._values: list[tuple[Any, Expr]] = []
        self.workspaces: list[Workspace] = []

    # ------------------------------------------------------------ statements
    def block(self, statement: Any) -> list[Step]:
        match statement:
            case tirx.SeqStmt():
                return [step for inner in statement.seq for step in self.block(inner)]
            case tirx.AllocBuffer():
                self._allocate(statement.buffer)
            case tirx.DeclBuffer():
                self._declare(statement)
            case tirx.Bind():
                self._bind(statement)
            case tirx.For():
                return [self._loop(statement)]
            case tirx.IfThenElse():
                return [self._branch(statement)]
            case tirx.Evaluate():
                return self._evaluate(statement.value)
            case tirx.BufferStore():
                name = statement.buffer.name
                raise Unreadable(ON_HOST, f"a store to '{name}' is left to the host")
            case _:
                kind = type(statement).__name__
                raise Unreadable(HOST_CODE, f"the host side has a statement {kind}")
        return []

    def _allocate(self, buffer: Any) -> None:
        if buffer.scope() != "global":
            what = f"'{buffer.name}' in {buffer.scope()} memory is allocated by the host"
            raise Unreadable(ON_HOST, what)
        dtype = tvm.DataType(str(buffer.dtype))
        elements = math.prod(self._constant(extent) for extent in buffer.shape)
        size = elements * ((dtype.bits * dtype.lanes + 7) // 8)
        name = f"{buffer.name}#{len(self.workspaces)}"
        self._buffers.append((buffer, name))
        self.workspaces.append(Workspace(name=name, bytes=max(1, size)))

    def _declare(self, declaration: Any) -> None:
        buffer = declaration.buffer
        if self._constant(buffer.elem_offset) != 0:
            raise Unreadable(HOST_CODE, f"the host side has a part '{buffer.name}' of a buffer")
        self._buffers.append((buffer, self._buffer(declaration.data)))

    def _bind(self, bind: Any) -> None:
        if str(bind.var.ty).startswith("T.handle"):
            self._buffers.append((bind.var, self._buffer(bind.value)))
        else:
            self._values.append((bind.var, self._expr(bind.value)))

    def _loop(self, loop: Any) -> Repeat:
        if loop.kind not in _LOOPS:
            raise Unreadable(ON_HOST, f"the host side has a loop of kind {loop.kind}")
        low, extent = self._expr(loop.min), self._expr(loop.extent)
        var = f"{loop.loop_var.name}#{len(self._values)}"
        self._values.append((loop.loop_var, var))
        return Repeat(var=var, low=low, extent=extent, body=tuple(self.block(loop.body)))

    def _branch(self, branch: Any) -> Branch:
        other = branch.else_case
        return Branch(
            condition=self._expr(branch.condition),
            then=tuple(self.block(branch.then_case)),
            otherwise=() if other is None else tuple(self.block(other)),
        )

    # ------------------------------------------------------------ launches
    def _evaluate(self, value: Any) -> list[Step]:
        if isinstance(value, tirx.IntImm):
            return []
        operation = getattr(getattr(value, "op", None), "name", type(value).__name__)
        if operation != _LAUNCH:
            raise Unreadable(HOST_CODE, f"the host side calls {operation}")
        return [self._launch(value)]

    def _launch(self, call: Any) -> Launch:
        name = str(call.args[0].value)
        axes = [str(axis) for axis in call.attrs.launch_params]
        given, shared = call.args[1:], 0
        if axes[-1:] == [_SHARED]:
            *given, last = given
            shared, axes = self._constant(last), axes[:-1]
        unknown = [axis for axis in axes if axis not in _AXES]
        if unknown:
            raise Unreadable(HOST_CODE, f"kernel {name} is launched with {unknown[0]}")
        split = len(given) - len(axes)
        given, extents = given[:split], given[split:]
        shape: dict[str, list[Expr]] = {"blockIdx": [1, 1, 1], "threadIdx": [1, 1, 1]}
        for axis, extent in zip(axes, extents, strict=True):
            kind, number = _AXES[axis]
            shape[kind][number] = self._expr(extent)
        x, y, z = shape["blockIdx"]
        return Launch(
            kernel=name,
            arguments=self._arguments(name, given),
            groups=(x, y, z),
            group_size=self._group_size(name, shape["threadIdx"]),
            shared_bytes=shared,
        )

    @staticmethod
    def _group_size(kernel: str, shape: list[Expr]) -> tuple[int, int, int]:
        x, y, z = (extent if isinstance(extent, int) else 0 for extent in shape)
        if min(x, y, z) < 1:
            raise Unreadable(HOST_CODE, f"kernel {kernel} has groups of changing size")
        return x, y, z

    def _arguments(self, kernel: str, given: Sequence[Any]) -> tuple[Argument, ...]:
        wanted = self._kernels[kernel].params
        if len(wanted) != len(given):
            what = f"kernel {kernel} takes {len(wanted)} arguments and is given {len(given)}"
            raise Unreadable(HOST_CODE, what)
        out: list[Argument] = []
        for parameter, value in zip(wanted, given, strict=True):
            if str(parameter.ty).startswith("T.handle"):
                out.append(BufferArgument(buffer=self._buffer(value)))
            else:
                out.append(ScalarArgument(dtype=str(parameter.ty.dtype), value=self._expr(value)))
        return tuple(out)

    # ------------------------------------------------------------ names and numbers
    def _buffer(self, pointer: Any) -> str:
        target = pointer
        if getattr(getattr(pointer, "op", None), "name", None) == _BUFFER_DATA:
            target = pointer.args[0]
        for buffer, name in reversed(self._buffers):
            if target.same_as(buffer):
                return name
        raise Unreadable(HOST_CODE, f"the host side uses {pointer} without declaring it")

    def _constant(self, value: Any) -> int:
        found = self._expr(value)
        if not isinstance(found, int):
            raise Unreadable(HOST_CODE, f"the size {value} is not known beforehand")
        return found

    def _expr(self, value: Any) -> Expr:
        match value:
            case int():
                return int(value)
            case tirx.IntImm():
                return int(value.value)
            case tirx.Var():
                return self._variable(value)
            case tirx.Cast():
                return self._cast(value)
            case tirx.Not():
                return Operation(op="not", operands=(self._expr(value.a),))
        op = _OPS.get(type(value).__name__)
        if op is None:
            raise Unreadable(HOST_CODE, f"the host side computes {value}")
        return Operation(op=op, operands=(self._expr(value.a), self._expr(value.b)))

    def _variable(self, var: Any) -> Expr:
        for known, value in reversed(self._values):
            if var.same_as(known):
                return value
        raise Unreadable(HOST_CODE, f"the host side reads '{var.name}', which no loop sets")

    def _cast(self, cast: Any) -> Expr:
        """A widening of an integer, which keeps its value."""
        before, after = (tvm.DataType(str(e.ty.dtype)) for e in (cast.value, cast))
        integers = all(str(t).startswith(("int", "uint", "bool")) for t in (before, after))
        if not integers or after.bits < before.bits:
            raise Unreadable(HOST_CODE, f"the host side computes {cast}")
        return self._expr(cast.value)
