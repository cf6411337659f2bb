"""Dot products of bytes in TIR: vector loads, and the intrinsics that the lowering chose.

Whole vectors are written here, not loops for TVM to vectorise: it knows no instruction that takes
four bytes a lane. LLVM keeps the accumulators, which are stack slots, in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm import tirx

from edgekernelbench.compilers.tvm import scalars
from edgekernelbench.compilers.tvm.expressions import ExpressionEmitter, Place, Scope
from edgekernelbench.compilers.tvm.scalars import TExpr
from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest

_SIGN_BITS = 0x80808080
_BYTES = 4


def required_features(functions: Iterable[nest.Function]) -> tuple[str, ...]:
    """The CPU features that the dot products of some functions take."""
    found = (s for f in functions for s in nest.statements(f.body) if isinstance(s, nest.Dot))
    return tuple(sorted({feature for dot in found for feature in dot.instruction.needs}))


def dot(statement: nest.Dot, scope: Scope, place: Place) -> tirx.Stmt:
    """The statement of one dot product."""
    return _Emitter(statement, scope, place).statement()


class _Emitter:
    def __init__(self, statement: nest.Dot, scope: Scope, place: Place) -> None:
        self._dot = statement
        self._scope = scope
        self._plain = ExpressionEmitter(scope, place)
        self._lanes = statement.lanes

    def statement(self) -> tirx.Stmt:
        tensor = self._dot.tensor
        where = self._run(self._indices(tensor, self._dot.indices), self._lanes)
        buffer = self._scope.buffers[tensor.name]
        old = tirx.BufferLoad(buffer, where)
        words = {id(q): self._words(q) for q in (self._dot.a, self._dot.b)}
        sides = [(q, words[id(q)]) for q in self._in_order()]
        match self._dot.instruction.form:
            case "bytes":
                value = self._bytes(old, [word for _, word in sides])
            case "pairs":
                value = self._pairs(old, sides)
            case "words":
                value = self._products(old, sides)
        return tirx.BufferStore(buffer, value, where)

    def _in_order(self) -> tuple[nest.Quads, nest.Quads]:
        """The operands as the instruction takes them."""
        a, b = self._dot.a, self._dot.b
        wanted = self._dot.instruction.operands
        swapped = wanted is not None and (a.dtype, b.dtype) != wanted
        return (b, a) if swapped else (a, b)

    # ---------------------------------------------------------- addresses
    def _indices(self, tensor: core.Tensor, indices: Sequence[core.Expr]) -> list[TExpr]:
        emitter = self._plain
        return self._scope.indices(tensor, [emitter.index(emitter.emit(i)) for i in indices])

    @staticmethod
    def _run(indices: list[TExpr], count: int) -> list[TExpr]:
        """The indices of ``count`` elements, one after another in memory."""
        one = tirx.IntImm(scalars.dtype_name(indices[-1]), 1)
        return [*indices[:-1], tirx.Ramp(indices[-1], one, tirx.IntImm("int32", count))]

    # ---------------------------------------------------------- operands
    def _words(self, quads: nest.Quads) -> TExpr:
        """The operand as an s32 a lane, its four bytes from the lowest up, biased."""
        buffer = self._scope.buffers[quads.tensor.name]
        indices = self._indices(quads.tensor, quads.indices)
        sign = _SIGN_BITS
        if quads.moving:
            loaded = tirx.BufferLoad(buffer, self._run(indices, _BYTES * self._lanes))
            word, lanes = tirx.reinterpret(self._vector("int32"), loaded), self._lanes
        elif self._dot.count == _BYTES:
            loaded = tirx.BufferLoad(buffer, self._run(indices, _BYTES))
            word, lanes = tirx.reinterpret("int32", loaded), 1
        else:
            word, lanes = self._some(buffer, indices), 1
            sign &= (1 << 8 * self._dot.count) - 1
        if quads.bias:
            word = tirx.bitwise_xor(word, self._constant(sign, lanes))
        return word if quads.moving else _spread(word, self._lanes)

    def _some(self, buffer: tirx.Buffer, indices: list[TExpr]) -> TExpr:
        """The first few bytes, and zeros behind them."""
        out: TExpr = tirx.IntImm("int32", 0)
        for k in range(self._dot.count):
            last = tirx.Add(indices[-1], tirx.IntImm(scalars.dtype_name(indices[-1]), k))
            byte = tirx.reinterpret("uint8", tirx.BufferLoad(buffer, [*indices[:-1], last]))
            wide = tirx.shift_left(tirx.Cast("int32", byte), tirx.IntImm("int32", 8 * k))
            out = tirx.bitwise_or(out, wide)
        return out

    def _vector(self, element: str, each: int = 1) -> str:
        lanes = each * self._lanes
        return element if lanes == 1 else f"{element}x{lanes}"

    @staticmethod
    def _constant(bits: int, lanes: int, dtype: str = "int32") -> TExpr:
        width = 32 if dtype == "int32" else 16
        signed = bits - (1 << width) if bits >> (width - 1) and dtype.startswith("int") else bits
        value = tirx.IntImm(dtype, signed)
        return value if lanes == 1 else _spread(value, lanes)

    # ---------------------------------------------------------- forms
    def _bytes(self, old: TExpr, words: list[TExpr]) -> TExpr:
        kind = self._vector("int8", _BYTES)
        quads = [tirx.reinterpret(kind, word) for word in words]
        return scalars.llvm(self._vector("int32"), self._dot.instruction.llvm, old, *quads)

    def _pairs(self, old: TExpr, sides: list[tuple[nest.Quads, TExpr]]) -> TExpr:
        """Bytes 0 and 2 of each lane, then 1 and 3, widened to s16."""
        name, out = self._dot.instruction.llvm, old
        for odd in (False, True):
            halves = [self._halves(word, quads.dtype, odd) for quads, word in sides]
            out = tirx.Add(out, scalars.llvm(self._vector("int32"), name, *halves))
        return out

    def _halves(self, word: TExpr, dtype: DType, odd: bool) -> TExpr:
        signed, lanes = dtype is DType.S8, 2 * self._lanes
        kind = "int16" if signed else "uint16"
        halves = tirx.reinterpret(f"{kind}x{lanes}", word)
        eight = self._constant(8, lanes, kind)
        if odd:
            out = tirx.shift_right(halves, eight)
        elif signed:
            out = tirx.shift_right(tirx.shift_left(halves, eight), eight)
        else:
            out = tirx.bitwise_and(halves, self._constant(0xFF, lanes, kind))
        return out if signed else tirx.reinterpret(f"int16x{lanes}", out)

    def _products(self, old: TExpr, sides: list[tuple[nest.Quads, TExpr]]) -> TExpr:
        """Byte by byte, each widened to the s32 of its lane."""
        out = old
        for k in range(self._dot.count):
            a, b = (self._byte(word, quads.dtype, k) for quads, word in sides)
            out = tirx.Add(out, tirx.Mul(a, b))
        return out

    def _byte(self, word: TExpr, dtype: DType, k: int) -> TExpr:
        lanes = self._lanes
        if dtype is DType.S8:
            up = tirx.shift_left(word, self._constant(24 - 8 * k, lanes)) if k < 3 else word
            return tirx.shift_right(up, self._constant(24, lanes))
        down = tirx.shift_right(word, self._constant(8 * k, lanes)) if k else word
        return tirx.bitwise_and(down, self._constant(0xFF, lanes))


def _spread(value: TExpr, lanes: int) -> TExpr:
    return tirx.Broadcast(value, tirx.IntImm("int32", lanes))
