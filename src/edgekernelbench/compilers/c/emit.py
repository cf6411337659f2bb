"""Loop programs as C source, statement by statement: no loop is moved, split or dropped here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from edgekernelbench.compilers.c.dots import dot
from edgekernelbench.compilers.c.expressions import ExpressionPrinter, Place, Text
from edgekernelbench.compilers.c.facts import (
    index_variables,
    on_stack,
    tiles,
    unrolls_alone,
    written,
)
from edgekernelbench.compilers.c.functions import c_type
from edgekernelbench.compilers.c.halves import Halves, halves_of
from edgekernelbench.compilers.c.names import Names
from edgekernelbench.compilers.contraction import FenceSet, accumulation
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Expr, Tensor
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.expr.linear import Range
from edgekernelbench.lowering.expr.ranges import range_of
from edgekernelbench.lowering.options import Options


def storage(tensor: Tensor) -> str:
    """The type of a stored element: halves are their bits, bools a byte of 0 or 1."""
    match tensor.dtype:
        case DType.F16:
            return "uint16_t"
        case DType.BOOL:
            return "uint8_t"
    return c_type(tensor.dtype)


@dataclass(slots=True)
class _Captured:
    """What the body of a parallel loop takes from around it: names with their types. What the body
    defines itself leaves ``variables`` and ``arrays``, which are from around it."""

    variables: set[int]
    arrays: set[str]
    found: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class FunctionPrinter:
    """Prints one function. ``parts`` are the bodies of its parallel loops, functions too."""

    function: nest.Function
    fences: FenceSet
    options: Options
    symbol: str
    parts: list[str] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _depth: int = 1
    _names: Names = field(default_factory=Names)
    _variables: dict[int, Text] = field(default_factory=dict)
    _arrays: dict[str, str] = field(default_factory=dict)
    _pointers: dict[str, str] = field(default_factory=dict)
    _ranges: dict[core.Var, Range] = field(default_factory=dict)
    _indices: set[int] = field(default_factory=set)
    _tiles: set[str] = field(default_factory=set)
    _halves: dict[core.Load, str] = field(default_factory=dict)
    _stored: dict[int, str] = field(default_factory=dict)
    _lane: str = ""
    _part: str = ""
    _captured: _Captured | None = None

    def text(self) -> str:
        """The function, its parallel bodies in front of it."""
        self._indices = index_variables(self.function)
        self._tiles = tiles(self.function)
        changed = written(self.function)
        params = [self._parameter(tensor, changed) for tensor in self.function.params]
        self._statement(self.function.body)
        names = ", ".join(f"{pointer}restrict {name}" for name, pointer in params)
        head = f"static int {self.symbol}({names or 'void'}) {{"
        aligned = [f"  {n} = __builtin_assume_aligned({n}, 64);" for n, _ in params]
        whole = [head, *aligned, "  int failed = 0;", *self._lines, "  return failed;", "}"]
        return "\n".join([*self.parts, *whole]) + "\n"

    def pointers(self) -> list[str]:
        """The types of the parameters."""
        return [self._pointers[tensor.name] for tensor in self.function.params]

    def _parameter(self, tensor: Tensor, changed: set[str]) -> tuple[str, str]:
        name = self._array(tensor, constant=tensor.name not in changed)
        return name, self._pointers[tensor.name]

    def _array(self, tensor: Tensor, constant: bool = False) -> str:
        name = self._names.new(tensor.name)
        self._arrays[tensor.name] = name
        if self._captured is not None:
            self._captured.arrays.discard(tensor.name)
        self._pointers[tensor.name] = f"{'const ' if constant else ''}{storage(tensor)} *"
        return name

    # -------------------------------------------------------------- lines
    def _line(self, text: str) -> None:
        self._lines.append("  " * self._depth + text)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self._line(f"{head} {{".lstrip())
        self._depth += 1
        with self._names.block():
            yield
        self._depth -= 1
        self._line("}")

    def _declare(self, kind: str, wish: str, value: str) -> str:
        name = self._names.new(wish)
        self._line(f"const {kind} {name} = {value};")
        return name

    # -------------------------------------------------------------- names
    def _name(self, var: core.Var) -> Text:
        text = self._variables[var.uid]
        captured = self._captured
        if captured and var.uid in captured.variables and not text.text.isdigit():
            captured.found[text.text] = f"const {c_type(var.dtype)} "
        return text

    def _define(self, var: core.Var, text: Text) -> None:
        self._variables[var.uid] = text
        if self._captured is not None:
            self._captured.variables.discard(var.uid)

    def array(self, tensor: Tensor) -> str:
        """The name of a buffer at this place."""
        name = self._arrays[tensor.name]
        if self._captured is not None and tensor.name in self._captured.arrays:
            self._captured.found[name] = self._pointers[tensor.name]
        return name

    def printer(self, lanes: bool = False, fenced: bool = False) -> ExpressionPrinter:
        """A printer of the expressions of one statement at this place."""
        place = Place(self._name, self.array, self._declare, self._ranges, lanes, self._converted)
        return ExpressionPrinter(place, fenced)

    def _converted(self, load: core.Load) -> str | None:
        """Where the float of a half is that was converted in front of the loop."""
        name = self._halves.get(load) if self._halves else None
        return None if name is None else f"{name}[{self._lane}]"

    def index(self, expr: Expr, lanes: bool = False) -> Text:
        """An expression that decides what is read, written or run."""
        return self.printer(lanes).print(expr, index=True)

    # -------------------------------------------------------------- statements
    def _statement(self, statement: nest.Stmt, lanes: bool = False) -> None:
        match statement:
            case nest.Seq():
                self._sequence(statement, lanes)
            case nest.For():
                self._loop(statement)
            case nest.Store():
                self._store(statement, lanes)
            case nest.LetValue(var=var, value=value):
                self._let(var, value, lanes, self.fences.covers_let(statement))
            case nest.If():
                self._branch(statement)
            case nest.Prefetch(tensor=tensor, indices=indices):
                self._line(f"__builtin_prefetch(&{self._element(tensor, indices, lanes)}, 0, 3);")
            case nest.Dot():
                self._line(dot(statement, self))
            case nest.Stamp(tensor=tensor, place=place):
                self._line(f"{self.array(tensor)}[{place}] = now_ns();")
            case nest.Alloc():
                self._allocate(statement)
            case _:
                raise NotImplementedError(f"a CPU has no {type(statement).__name__}")

    def _sequence(self, sequence: nest.Seq, lanes: bool) -> None:
        if isinstance(sequence, nest.Part):
            self._part = f"/* {', '.join(sequence.stages) or sequence.label} */"
            self._line(self._part)
        for statement in sequence.body:
            self._statement(statement, lanes)
        for statement in reversed(sequence.body):
            if isinstance(statement, nest.Alloc) and not on_stack(statement):
                name = self._arrays[statement.tensor.name]
                self._line(f"__TVMBackendFreeWorkspace(1, 0, {name});")

    def _allocate(self, allocation: nest.Alloc) -> None:
        tensor = allocation.tensor
        name, kind = self._array(tensor), storage(tensor)
        if on_stack(allocation):
            is_tile = tensor.name in self._tiles
            room = name if is_tile else self._names.new(f"{tensor.name}_room")
            self._line(f"{kind} {room}[{max(1, tensor.size)}] __attribute__((aligned(64)));")
            if not is_tile:
                self._line(f"{kind} *restrict {name} = hidden({room});")
            return
        memory = f"__TVMBackendAllocWorkspace(1, 0, {max(1, tensor.bytes)}u, 2, 32)"
        self._line(f"{kind} *restrict {name} = {memory};")
        self._line(f"if (!{name}) return -1;")
        self._line(f"{name} = __builtin_assume_aligned({name}, 64);")

    def _element(self, tensor: Tensor, indices: tuple[Expr, ...], lanes: bool) -> str:
        printed = [self.index(i, lanes) for i in indices]
        return self.printer(lanes).element(tensor, indices, printed)

    def _store(self, store: nest.Store, lanes: bool) -> None:
        tensor, value = store.tensor, store.value
        printer = self.printer(lanes, self.fences.covers_store(store))
        if isinstance(value, core.Load) and value.tensor.dtype is tensor.dtype:
            text = self._element(value.tensor, value.indices, lanes)  # a copy, bit by bit
        elif id(store) in self._stored:
            text = printer.rounded_later(printer.print(value, unfenced=accumulation(store)), value)
            self._line(f"{self._stored[id(store)]}[{self._lane}] = {text};")
            return
        else:
            text = printer.stored(printer.print(value, unfenced=accumulation(store)), value, tensor)
        self._line(f"{self._element(tensor, store.indices, lanes)} = {text};")

    def _let(self, var: core.Var, value: Expr, lanes: bool, fenced: bool) -> None:
        text = self.printer(lanes, fenced).print(value, index=var.uid in self._indices).text
        name = self._declare(c_type(value.dtype), var.name, text)
        self._define(var, Text(name, leaf=True))
        if not value.dtype.is_float:
            self._ranges[var] = range_of(value, self._ranges)

    def _branch(self, branch: nest.If) -> None:
        with self._block(f"if ({self.index(branch.cond).text})"):
            self._statement(branch.then)
        if branch.other is not None:
            self._lines[-1] += " else {"
            self._depth += 1
            with self._names.block():
                self._statement(branch.other)
            self._depth -= 1
            self._line("}")

    # -------------------------------------------------------------- loops
    def _loop(self, loop: nest.For) -> None:
        low, extent = self.index(loop.lo), self.index(loop.extent)
        first = range_of(loop.lo, self._ranges)
        most = max(1, range_of(loop.extent, self._ranges)[1])
        self._ranges[loop.var] = (first[0], first[1] + most - 1)
        if loop.kind == "parallel":
            self._parallel(loop, low, extent)
        elif loop.kind == "unroll" and not unrolls_alone(loop.body):
            self._unrolled(loop, low, int(extent.text))
        elif loop.kind == "vectorize" and (halves := halves_of(loop)):
            self._lanes(loop, extent, halves)
        else:
            self._plain(loop, low, extent)

    def _plain(self, loop: nest.For, low: Text, extent: Text) -> None:
        if not extent.leaf:
            extent = self.printer().keep(extent, loop.extent.dtype)
        if not low.leaf:
            low = self.printer().keep(low, loop.lo.dtype)
        end = extent.text if low.text == "0" else f"{low.text} + {extent.within(1)}"
        if loop.kind == "vectorize":
            self._line("SIMD")
        elif loop.kind == "unroll":
            self._line(f"UNROLL({min(int(extent.text), 65534)})")
        with self._named(loop, low.text, end):
            self._statement(loop.body, loop.kind == "vectorize")

    def _lanes(self, loop: nest.For, extent: Text, halves: Halves) -> None:
        """A vectorised loop, and around it what is converted as whole vectors."""
        self._define(loop.var, Text("0", leaf=True))
        with self._block(""):
            for load in halves.loads:
                self._halves[load] = self._floats(load.tensor, extent)
                first = self._element(load.tensor, load.indices, False)
                self._line(f"load_halves({self._halves[load]}, &{first}, {extent.text});")
            places = {}
            for store in halves.stores:
                places[id(store)] = self._floats(store.tensor, extent)
            firsts = [self._element(s.tensor, s.indices, False) for s in halves.stores]
            self._stored = places
            self._line("SIMD")
            with self._named(loop, "0", extent.text):
                self._lane = self._variables[loop.var.uid].text
                self._statement(loop.body, True)
            for store, first in zip(halves.stores, firsts, strict=True):
                self._line(f"store_halves(&{first}, {places[id(store)]}, {extent.text});")
            self._halves, self._stored = {}, {}

    def _floats(self, tensor: Tensor, extent: Text) -> str:
        name = self._names.new(f"{tensor.name}_lanes")
        self._line(f"float {name}[{extent.text}] __attribute__((aligned(64)));")
        return name

    @contextmanager
    def _named(self, loop: nest.For, low: str, end: str, step: str = "") -> Iterator[None]:
        """The head of a loop, and a block for its body."""
        with self._names.block():
            name = self._names.new(loop.var.name)
            self._define(loop.var, Text(name, leaf=True))
            kind, counted = c_type(loop.var.dtype), f"{name} += {step}" if step else f"++{name}"
            with self._block(f"for ({kind} {name} = {low}; {name} < {end}; {counted})"):
                yield

    def _unrolled(self, loop: nest.For, low: Text, count: int) -> None:
        """Written out: compilers unroll no loop that has loops in it."""
        if not low.leaf:
            low = self.printer().keep(low, loop.lo.dtype)
        for step in range(count):
            if low.text.isdigit():
                value = Text(str(int(low.text) + step), leaf=True)
            else:
                value = Text(self._declare(c_type(loop.var.dtype), loop.var.name,
                                           f"{low.text} + {step}"), leaf=True)  # fmt: skip
            self._define(loop.var, value)
            with self._block(""):
                self._statement(loop.body)

    def _parallel(self, loop: nest.For, low: Text, extent: Text) -> None:
        """A function for the body, and a call of it by every thread of the pool."""
        captured = _Captured(set(self._variables), set(self._arrays))
        if not low.text.isdigit():
            low = self.printer().keep(low, loop.lo.dtype)
            captured.found[low.text] = f"const {c_type(loop.lo.dtype)} "
        lines, self._lines, depth, self._depth = self._lines, [], self._depth, 1
        self._captured = captured
        number = f"{self.symbol}_{len(self.parts) + 1}"
        with self._names.block():
            self._share(loop, low.text, extent.text)
        self._captured = None
        body, self._lines, self._depth = self._lines, lines, depth
        self._close(number, captured.found, body)

    def _share(self, loop: nest.For, low: str, extent: str) -> None:
        """The iterations of one task."""
        end = extent if low == "0" else f"{low} + {extent}"
        if self.options.parallel_order == "cyclic":
            first = "task" if low == "0" else f"{low} + task"
            with self._named(loop, first, end, "tasks"):
                self._statement(loop.body)
            return
        self._line(f"const int32_t share = ({extent} + tasks - 1) / tasks;")
        self._line(f"const int32_t begin = {'' if low == '0' else f'{low} + '}task * share;")
        self._line(f"const int32_t end = begin + share < {end} ? begin + share : {end};")
        with self._named(loop, "begin", "end"):
            self._statement(loop.body)

    def _close(self, number: str, captured: dict[str, str], body: list[str]) -> None:
        fields = [f"  {kind}{name};" for name, kind in captured.items()] or ["  char nothing;"]
        unpacked = []
        for name, kind in captured.items():
            if kind.endswith("*"):
                value = f"__builtin_assume_aligned(at->{name}, 64)"
                unpacked.append(f"  {kind}restrict {name} = {value};")
            else:
                unpacked.append(f"  {kind}{name} = at->{name};")
        text = [
            f"struct {number} {{",
            *fields,
            "};",
            f"static int {number}(int task, group *all, void *data) {{",
            *([f"  {self._part}"] if self._part else []),
            f"  const struct {number} *at = data;",
            "  const int32_t tasks = all->tasks;",
            "  int failed = 0;",
            "  (void)at;",
            *unpacked,
            *body,
            "  return failed;",
            "}",
            "",
        ]
        self.parts.append("\n".join(text))
        listed = ", ".join(captured) or "0"
        with self._block(""):
            self._line(f"struct {number} data = {{{listed}}};")
            self._line(f"failed |= __TVMBackendParallelLaunch({number}, &data, 0);")
