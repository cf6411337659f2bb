"""The loop program: what a kernel does on a target, step by step. Compilers translate it 1:1.

Expressions are those of `edgekernelbench.ir.core` without `Reduce` and `Block`; `Load.tensor` and
`Store.tensor` name buffers of the function. All decisions of schedule and memory layers are
already taken: a compiler back end neither moves nor splits loops.

The lowering guarantees that **every load is in bounds and every integer divisor positive even if
both branches of every `core.Select` are evaluated**, except under an `If` statement, whose body
runs only when the condition holds. So a back end may evaluate both branches (and vectorise), or
branch. What the branch not taken loads may be uninitialised, or just being written by another
thread or lane: it is not used. A cache may copy such elements, and lanes of an accumulator that no
one reads may be computed from them. Signed arithmetic that an index depends on never overflows;
other signed arithmetic may overflow only where its result is not used.

On a GPU the function is the host's side, and every ``block`` loop in it a kernel. Outside of them
stand serial loops of constant length, allocations and the lets of loop indices. Directly inside a
``block`` loop stands one ``thread`` loop: together they say how many blocks of how many threads
run the body, which holds no further loop of these two kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from edgekernelbench.ir.core import Expr, Load, Tensor, Var
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering.dots.instructions import Instruction
from edgekernelbench.lowering.options import Options

AtomicOp = Literal["sum", "min", "max"]
LoopKind = Literal["serial", "parallel", "unroll", "vectorize", "block", "thread"]


@dataclass(frozen=True, slots=True)
class For:
    """``for var in lo .. lo+extent-1``. Parallel, unrolled and vectorised extents are constant.

    A ``vectorize`` loop is innermost: its body holds only `Store`, `LetValue` and `Seq`, and no
    iteration reads what another writes, except into an accumulator element of its own lane.
    ``parallel`` loops are never nested in each other; they may stand inside serial loops. A GPU's
    function has ``block`` and ``thread`` loops in their place.
    """

    var: Var
    lo: Expr
    extent: Expr
    kind: LoopKind
    body: Stmt


@dataclass(frozen=True, slots=True)
class Store:
    """``tensor[indices] = value``; ``value.dtype`` is ``tensor.dtype`` or widens from it, in
    which case the store rounds (f16) or wraps (small integers, already in range by a Cast)."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class LetValue:
    """Binds a scalar for the rest of the enclosing `Seq`; never reassigned."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class If:
    cond: Expr
    then: Stmt
    other: Stmt | None = None


@dataclass(frozen=True, slots=True)
class Seq:
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Region(Seq):
    """What each thread of a block does by itself, on the way to a finished module: barriers are
    then placed between regions, and these become plain sequences.

    Attributes:
        stage: what it computes. Regions of one stage never write the same element.
        ahead: double buffers of which it touches the half for the next iteration of the loop
            around it.
    """

    stage: str = ""
    ahead: frozenset[str] = frozenset()


Mode = Literal["host", "block", "blocks", "threads", "serial"]
"""How a ``seq`` or ``each`` loop runs on a GPU.

``host``: counted between kernels. ``block``: a kernel of one block counts. ``blocks``: a block for
each iteration; ``threads``: a thread. ``serial``: counted inside a kernel.
"""

Scope = Literal["global", "shared", "local"]


@dataclass(frozen=True, slots=True)
class Alloc:
    """A buffer that lives for the rest of the enclosing `Seq`, uninitialised.

    ``local``: small, meant for registers or the stack of one thread. ``global``: workspace, never
    allocated inside a kernel. ``shared``: one for all threads of a block, inside kernels only.
    """

    tensor: Tensor
    scope: Scope


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Asks for the cache line of ``tensor[indices]``, which will be read soon. It has no effect on
    results; the indices are in bounds."""

    tensor: Tensor
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of a block wait here for each other, and then see what the others have written
    to shared and global buffers. All of them come here equally often."""


@dataclass(frozen=True, slots=True)
class Atomic:
    """``tensor[indices] = op(tensor[indices], value)`` in one step, whatever others do there.

    Attributes:
        tensor: of s32 or u32, global.
        value: of the same dtype.
    """

    tensor: Tensor
    indices: tuple[Expr, ...]
    op: AtomicOp
    value: Expr


@dataclass(frozen=True, slots=True)
class Quads:
    """Four bytes for each lane of a `Dot`, side by side in memory (row-major).

    Attributes:
        indices: of the first byte of the first lane.
        moving: every lane's four follow those of the lane before; else all have the same four.
        bias: added to each byte (128 to s8, -128 to u8), which makes it one of the other kind.
    """

    tensor: Tensor
    indices: tuple[Expr, ...]
    moving: bool
    bias: int = 0

    @property
    def dtype(self) -> DType:
        """Of the bytes with the bias."""
        if not self.bias:
            return self.tensor.dtype
        return DType.U8 if self.tensor.dtype is DType.S8 else DType.S8


@dataclass(frozen=True, slots=True)
class Dot:
    """``tensor[indices + l] += a[4 l] * b[4 l] + .. + a[4 l + 3] * b[4 l + 3]`` for every lane l,
    exactly; ``+ l`` runs along the last index.

    Attributes:
        tensor: of s32.
        lanes: one after another in memory.
        count: only so many of the four products are due. Moving operands have all their bytes
            within the buffer all the same; what is there may be uninitialised.
        instruction: what the target has for it; its ``lanes`` are these, or any.
    """

    tensor: Tensor
    indices: tuple[Expr, ...]
    a: Quads
    b: Quads
    lanes: int
    count: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Matrices:
    """Brings four matrices of eight rows, 16 bytes each, from shared memory into registers of a
    warp. Lane ``8 m + r`` names row r of matrix m; lane ``4 r + c`` gets word c of row r of every
    matrix, in ``registers[first + m]``.

    Attributes:
        registers: of u32, each thread's own.
        source: the first element of the row that this lane names; it is aligned to 16 bytes.
        transposed: lane ``4 r + c`` gets elements ``2 c`` and ``2 c + 1`` of column r instead, of
            matrices of 8 x 8 elements of two bytes.
    """

    registers: Tensor
    first: int
    source: Load
    transposed: bool


@dataclass(frozen=True, slots=True)
class Packed:
    """``registers[place]``, of u32, becomes the bytes of two or four elements, the first lowest."""

    registers: Tensor
    place: int
    elements: tuple[Load, ...]


@dataclass(frozen=True, slots=True)
class Mma:
    """Adds a product of 16 x K and K x 8 values, K of 32 bytes, on the tensor cores of a warp.

    Lane ``4 r + c`` has rows r and r + 8 of the left factor and column r of the right one, of each
    the words c and c + 4 along K, and results in columns ``2 c`` and ``2 c + 1``.

    Attributes:
        tensor: of f32 or s32, each thread's own.
        indices: of its results: row r, both columns, then row r + 8.
        left: ``left[left_first + h + 2 w]`` is word ``c + 4 w`` of row ``r + 8 h``.
        right: ``right[right_first + w]`` is word ``c + 4 w`` of column r.
        kinds: of the values of both factors.
    """

    tensor: Tensor
    indices: tuple[tuple[Expr, ...], ...]
    left: Tensor
    left_first: int
    right: Tensor
    right_first: int
    kinds: tuple[DType, DType]

    @property
    def operations(self) -> float:
        """Of one thread: products and sums."""
        return 2 * 16 * 8 * (32 // self.kinds[0].bytes) / 32


Stmt = (
    For
    | Store
    | LetValue
    | If
    | Seq
    | Alloc
    | Prefetch
    | Dot
    | Barrier
    | Atomic
    | Matrices
    | Packed
    | Mma
)


@dataclass(frozen=True, slots=True)
class Function:
    """``params`` in call order. Names of its buffers are unique; inner ones have an `Alloc`."""

    name: str
    params: tuple[Tensor, ...]
    body: Stmt


@dataclass(frozen=True, slots=True)
class Module:
    """A kernel ready for a back end.

    Attributes:
        main: called per inference. Its parameters are, in order, the kernel's non-const inputs,
            the const inputs it still reads raw, the packed buffers, the table buffers, the
            outputs (each group in declared order).
        prepack: called once after the constants are known, outside the timed call: parameters
            are the const inputs it reads, the tables it reads, then the packed buffers; None
            when nothing is packed.
        packed: the buffers that ``prepack`` fills and ``main`` reads; their bytes are on the bill.
        workspace_bytes: the sum of all ``global`` allocations of ``main``, per call.
        nest: a readable sketch of the final loop nest of ``main``, for reports and prompts.
        options: what the kernel tells the toolchain.
    """

    main: Function
    prepack: Function | None
    packed: tuple[Tensor, ...]
    workspace_bytes: int
    nest: str
    options: Options = Options()


def statements(body: Stmt) -> Iterator[Stmt]:
    """The statement and all statements below it, outer before inner."""
    stack: list[Stmt] = [body]
    while stack:
        top = stack.pop()
        yield top
        match top:
            case For():
                stack.append(top.body)
            case Seq():
                stack.extend(reversed(top.body))
            case If():
                stack.extend(s for s in (top.other, top.then) if s is not None)
            case _:
                pass


def expressions(statement: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement, without those of the statements inside it."""
    match statement:
        case For(lo=lo, extent=extent):
            return (lo, extent)
        case Store(indices=indices, value=value):
            return (*indices, value)
        case LetValue(value=value):
            return (value,)
        case If(cond=cond):
            return (cond,)
        case Dot(indices=indices, a=a, b=b):
            return (*indices, *a.indices, *b.indices)
        case Atomic(indices=indices, value=value):
            return (*indices, value)
        case Matrices(source=source):
            return (source,)
        case Packed(elements=elements):
            return elements
    return ()
