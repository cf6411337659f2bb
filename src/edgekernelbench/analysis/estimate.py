"""A guess at the time of a loop program on a CPU, from its nest alone: for ranking, not for tables.

Each statement costs what its operations and accesses take with the loops around it as they are:
lanes of a vectorised loop share an operation, unless their loads lie apart, and so do iterations of
a loop that the compiler vectorises unasked; copies of an unrolled body share what they all load;
iterations of a parallel loop share the cores; a sum that waits for its own last term waits for the
latency of an addition.
Beside that stand the bytes that must come from memory. The larger of the two is the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from edgekernelbench.analysis import vectors
from edgekernelbench.analysis.traffic import footprint_bytes, level_traffic
from edgekernelbench.ir import core
from edgekernelbench.ir.affine import Affine, affine
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Peaks

_COSTLY = 12.0
"""A transcendental function, in operations."""
_DIVISION = 4.0
_ACCESS = 0.5
"""A load or store of lanes that lie together, in operations."""
_LATENCY = 4.0
"""Operations that could have begun while a sum waits for its last term."""
_REGION_US = 5.0
"""Starting and joining the workers of a parallel loop."""
_CALL_US = 1.0
"""Calling a kernel that does nothing."""
_RATE = 2e9
"""Operations a second of one core, where no peak is measured."""
_BANDWIDTH = 1e10
"""Bytes a second from memory, likewise."""


@dataclass(frozen=True, slots=True)
class Share:
    """What becomes of a stage's operations. All figures are seconds of one call.

    Attributes:
        seconds: estimated.
        serial: part of it outside of parallel loops.
        scalar: part of it outside of vectorised loops, those included that are vectorised unasked.
        apart: part of it that loads and stores take whose lanes do not lie together.
    """

    seconds: float = 0.0
    serial: float = 0.0
    scalar: float = 0.0
    apart: float = 0.0


@dataclass(frozen=True, slots=True)
class PartShare:
    """A nest, see `lowering.nest.Part`, and the time of its operations by buffer."""

    label: str
    stages: tuple[str, ...]
    buffers: Mapping[str, Share]

    @property
    def whole(self) -> Share:
        return total(self.buffers.values())


@dataclass(frozen=True, slots=True)
class Estimate:
    """A guess at a call's time.

    Attributes:
        compute_us, memory_us: by operations, and by traffic from memory.
        least_compute_us: where each loop that the compiler may vectorise or not is vectorised.
        stages: by buffer that is written, the slowest first.
        parts: by nest, in the order in which they run.
    """

    compute_us: float
    memory_us: float
    stages: Mapping[str, Share]
    parts: tuple[PartShare, ...] = ()
    least_compute_us: float | None = None

    @property
    def least_us(self) -> float:
        """A guess for who wants to be sure that it does not take less."""
        least = self.compute_us if self.least_compute_us is None else self.least_compute_us
        return _CALL_US + max(least, self.memory_us)

    @property
    def us(self) -> float:
        return _CALL_US + max(self.compute_us, self.memory_us)

    def share(self, what: str) -> float:
        """Of the operations' time, the part that is ``serial``, ``scalar`` or ``apart``."""
        whole = total(self.stages.values())
        return float(getattr(whole, what)) / whole.seconds if whole.seconds else 0.0


def total(shares: Iterable[Share]) -> Share:
    """All of them together."""
    sums = [0.0] * 4
    for share in shares:
        each = (share.seconds, share.serial, share.scalar, share.apart)
        sums = [a + b for a, b in zip(sums, each, strict=True)]
    return Share(*sums)


def estimate(module: nest.Module, target: Target, peaks: Peaks | None = None) -> Estimate:
    """Guesses the time of a lowered kernel on a CPU.

    Args:
        peaks: of the target; without them round numbers stand in, which serve to compare nests.

    Raises:
        ValueError: the target is a GPU.
    """
    if target.gpu is not None:
        raise ValueError("times are estimated for CPUs only")
    lanes = max(1, target.vector_bits // 32)
    rate = _RATE if peaks is None else peaks.flops_f32 / target.threads / lanes / 2
    walker, hopeful = (_Walker(target.threads, lanes, rate, chance) for chance in _CHANCES)
    for one in (walker, hopeful):
        one.walk(module.main.body, _Around())
    levels = level_traffic(module.main, target.cache_bytes)
    touched = footprint_bytes(module.main)
    outer = levels[-1].bytes if levels else touched
    bandwidth = _BANDWIDTH if peaks is None else peaks.bytes_per_s(int(touched))
    ordered = sorted(walker.shares.items(), key=lambda item: -item[1].seconds)
    return Estimate(
        walker.compute_us,
        1e6 * outer / bandwidth,
        dict(ordered),
        tuple(walker.parts),
        hopeful.compute_us,
    )


_CHANCES = (vectors.Chance.SURE, vectors.Chance.SOME)


@dataclass(frozen=True, slots=True)
class _Around:
    """The loops around a statement: how often it runs, and how.

    Attributes:
        times: iterations, those of parallel and vectorised loops aside.
        cores: that share it.
        lanes: uid of the vectorised variable and how many vectors it takes.
        last: the innermost loop that is neither vectorised nor unrolled.
        copies: uid and extent of each unrolled loop inside of ``last``.
    """

    times: float = 1.0
    cores: float = 1.0
    parallel: bool = False
    lane: int | None = None
    extent: float = 1.0
    last: int | None = None
    copies: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class _Walker:
    threads: int
    lanes: int
    rate: float
    chance: vectors.Chance
    shares: dict[str, Share] = field(default_factory=dict)
    starting: float = 0.0
    parts: list[PartShare] = field(default_factory=list)
    variables: set[int] = field(default_factory=set)
    ranges: dict[core.Var, tuple[int, int]] = field(default_factory=dict)
    lets: dict[int, Affine | None] = field(default_factory=dict)
    used: dict[int, set[int]] = field(default_factory=dict)
    registers: set[str] = field(default_factory=set)

    @property
    def compute_us(self) -> float:
        return 1e6 * (total(self.shares.values()).seconds + self.starting)

    def walk(self, body: nest.Stmt, around: _Around) -> None:
        match body:
            case nest.Part():
                self._part(body, around)
            case nest.Seq():
                for inner in body.body:
                    self.walk(inner, around)
            case nest.For():
                self._loop(body, around)
            case nest.If(then=then, other=other):
                self.walk(then, around)
                if other is not None:
                    self.walk(other, around)
            case nest.LetValue():
                self._let(body)
            case nest.Alloc(tensor=tensor, scope="local"):
                self.registers.add(tensor.name)
            case nest.Store(tensor=tensor, value=value, indices=indices):
                cost, apart = self._cost(value, around)
                more, far = self._access(tensor, indices, around)
                cost, apart = cost + more, apart + far
                if self._waits(tensor, indices, value, around):
                    cost = max(cost, _LATENCY)
                self._add(tensor.name, cost, apart, around)
            case nest.Dot(tensor=tensor, lanes=lanes):
                self._add(tensor.name, max(1.0, lanes / self.lanes), 0.0, replace(around, lane=-1))
            case nest.Atomic(tensor=tensor):
                self._add(tensor.name, _LATENCY, 0.0, around)
            case _:
                pass

    def _let(self, let: nest.LetValue) -> None:
        var, value = let.var, let.value
        self.lets[var.uid] = affine(value, self.variables, self.lets)
        self.used[var.uid] = self._uses(value)
        if not value.dtype.is_float:
            self.ranges[var] = range_of(value, self.ranges)

    def _part(self, part: nest.Part, around: _Around) -> None:
        before, self.shares = self.shares, {}
        for inner in part.body:
            self.walk(inner, around)
        self.parts.append(PartShare(part.label, part.stages, dict(self.shares)))
        for name, share in self.shares.items():
            before[name] = total((before.get(name, Share()), share))
        self.shares = before

    def _loop(self, loop: nest.For, around: _Around) -> None:
        least, most = (max(0, bound) for bound in range_of(loop.extent, self.ranges))
        first, last = range_of(loop.lo, self.ranges)
        self.ranges[loop.var] = (first, max(first, last + most - 1))
        self.variables.add(loop.var.uid)
        count = (least + most) / 2
        match loop.kind:
            case "parallel":
                around = replace(around, copies=())
                self.starting += around.times * _REGION_US * 1e-6
                # The slowest core has the most iterations.
                most_each = math.ceil(count / self.threads)
                cores = count / most_each if most_each else 1.0
                inner = replace(
                    around, times=around.times * count, cores=around.cores * cores, parallel=True
                )
            case "vectorize":
                inner = replace(around, lane=loop.var.uid, extent=count)
            case "unroll":
                copies = (*around.copies, (loop.var.uid, count))
                inner = replace(around, times=around.times * count, copies=copies)
            case _ if self._unasked(loop, count, around):
                inner = replace(around, lane=loop.var.uid, extent=count, copies=())
            case _:
                times = around.times * count
                inner = replace(around, times=times, last=loop.var.uid, copies=())
        self.walk(loop.body, inner)

    def _unasked(self, loop: nest.For, count: float, around: _Around) -> bool:
        """Whether the compiler vectorises a loop by itself."""
        if around.lane is not None or count < vectors.LEAST:
            return False
        for let in vectors.lets_in(loop.body):
            self._let(let)
        lane = loop.var.uid
        return vectors.unasked(loop.body, lambda index: self._step(index, lane)) >= self.chance

    def _cost(self, value: core.Expr, around: _Around) -> tuple[float, float]:
        """Operations of an expression for all lanes, and those of them for loads apart."""
        cost = apart = 0.0
        seen: set[int] = set()
        stack = [value]
        lanes = self._vectors(around)
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            match node:
                case core.Load(tensor=tensor, indices=indices):
                    more, far = self._access(tensor, indices, around)
                    cost, apart = cost + more, apart + far
                    continue
                case core.Call():
                    cost += _COSTLY * lanes
                case core.Binary(op="div" | "mod" | "fdiv"):
                    cost += _DIVISION * lanes
                case core.Binary(op="add" | "sub", left=left, right=right) if any(
                    isinstance(side, core.Binary) and side.op == "mul" for side in (left, right)
                ):
                    pass  # one operation with its product
                case core.Binary() | core.Unary() | core.Select():
                    cost += lanes
                case _:
                    pass
            stack.extend(core.children(node))
        return cost, apart

    def _vectors(self, around: _Around) -> float:
        return 1.0 if around.lane is None else math.ceil(around.extent / self.lanes)

    def _access(
        self, tensor: core.Tensor, indices: tuple[core.Expr, ...], around: _Around
    ) -> tuple[float, float]:
        if tensor.name in self.registers:
            return 0.0, 0.0
        shared = self._shared(indices, around)
        cost, apart = self._access_once(indices, around)
        return cost / shared, apart / shared

    def _shared(self, indices: tuple[core.Expr, ...], around: _Around) -> float:
        """How many copies of an unrolled body touch the very same."""
        if not around.copies:
            return 1.0
        used = set[int]().union(*map(self._uses, indices))
        return math.prod((max(1.0, n) for uid, n in around.copies if uid not in used), start=1.0)

    def _access_once(self, indices: tuple[core.Expr, ...], around: _Around) -> tuple[float, float]:
        if around.lane is None:
            return _ACCESS, 0.0
        steps = [self._step(index, around.lane) for index in indices]
        if not any(step != 0 for step in steps):
            return _ACCESS, 0.0  # the same for all lanes
        together = steps[-1] == 1 and not any(step != 0 for step in steps[:-1])
        if together:
            return _ACCESS * self._vectors(around), 0.0
        return around.extent, around.extent

    def _step(self, index: core.Expr, lane: int) -> int | None:
        """By how much an index grows from lane to lane; None where it does so by no fixed step."""
        form = affine(index, self.variables, self.lets)
        if form is not None:
            return dict(form.terms).get(lane, 0)
        return None if lane in self._uses(index) else 0

    def _uses(self, expr: core.Expr) -> set[int]:
        """The variables that an expression depends on, through lets too."""
        found = {n.var.uid for n in core.walk(expr) if isinstance(n, core.VarRef)}
        return found.union(*(self.used[uid] for uid in found if uid in self.used))

    def _waits(
        self,
        tensor: core.Tensor,
        indices: tuple[core.Expr, ...],
        value: core.Expr,
        around: _Around,
    ) -> bool:
        """Whether a store adds to what the iteration before it stored, with nothing beside it."""
        if around.last is None or math.prod(tensor.shape) > 1 or around.lane is not None:
            return False
        reads = (n for n in core.unique_nodes(value) if isinstance(n, core.Load))
        own = any(read.tensor is tensor or read.tensor.name == tensor.name for read in reads)
        forms = [affine(index, self.variables, self.lets) for index in indices]
        return own and all(f is not None and not f.terms for f in forms)

    def _add(self, name: str, cost: float, apart: float, around: _Around) -> None:
        unit = around.times / around.cores / self.rate
        seconds = cost * unit
        more = Share(
            seconds,
            0.0 if around.parallel else seconds,
            seconds if around.lane is None else 0.0,
            apart * unit,
        )
        self.shares[name] = total((self.shares.get(name, Share()), more))
