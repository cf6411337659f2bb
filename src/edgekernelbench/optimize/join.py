"""One kernel of many: the kernels of a model's groups, one behind the other, under one header.

Every group keeps its compute layer and its layers for the target, word for word but for names:
what it defines gets a prefix of its own, its inputs are what the groups before it made, its
weights those of the whole. A result that is an output no more becomes a stage, which the rules
would be free to compute where the next group reads it; the group was measured with it stored, so a
layout that changes nothing holds it in place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edgekernelbench.ir import surface as s
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.directives.resolve import select_layers
from edgekernelbench.optimize.refit import Refitted, refit
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class Piece:
    """A group's kernel at its place in the whole.

    Attributes:
        tensors: its inputs and outputs to what they are called in the model.
        weight: how much its wishes count where a kernel can have one thing only (an option).
    """

    kernel: s.Kernel
    tensors: Mapping[str, str]
    weight: float = 1.0


class CannotJoin(ValueError):
    """A piece does not fit into a larger kernel. ``piece``: its number."""

    def __init__(self, piece: int, reason: str) -> None:
        super().__init__(reason)
        self.piece = piece


def join(
    header: s.Kernel, pieces: Sequence[Piece], target: Target, borders: bool = True
) -> s.Kernel:
    """The kernel that runs ``pieces`` in order.

    Args:
        header: a kernel with the header of the whole.
        target: whose layers are kept; the joined kernel has layers for it alone.
        borders: what one group hands to the next is stored, as it was when the groups were
            measured; else the rules decide.

    Raises:
        CannotJoin: a piece does something that only a whole kernel can do.
    """
    names = _Names(header, pieces)
    body: list[s.Stmt] = []
    schedule: list[s.ScheduleLine] = []
    memory: list[s.MemoryLine] = []
    sections: dict[str, set[str]] = {"schedule": set(), "memory": set()}
    for number, piece in enumerate(pieces):
        lines, layouts = select_layers(piece.kernel, target)
        fitted = refit(piece.kernel, lines, layouts, names.of(number), borders)
        if isinstance(fitted, str):
            raise CannotJoin(number, fitted)
        names.settle(number, fitted)
        body += fitted.body
        schedule += fitted.schedule
        memory += fitted.memory
        for kind, layer in (("schedule", lines), ("memory", layouts)):
            if layer is not None:
                sections[kind].add(layer.target)
    options = _options(pieces, target)
    return replace(
        header,
        prelude=(),
        compute=s.ComputeLayer(tuple(body)),
        schedules=_layers(
            s.ScheduleLayer, (*options, *schedule), sections["schedule"], target, bool(options)
        ),
        memories=_layers(s.MemoryLayer, memory, sections["memory"], target),
    )


def joined_text(
    header: s.Kernel, pieces: Sequence[Piece], target: Target, borders: bool = True
) -> str:
    """The same as canonical text."""
    return print_kernel(join(header, pieces, target, borders))


def _layers(make, lines, found: set[str], target: Target, backend: bool = False):
    """The one layer of a kind, if it has lines; of the target's class unless a piece (or an option)
    is for the backend alone."""
    own, general = target.section_names
    return (make(own if backend or own in found else general, tuple(lines)),) if lines else ()


def _options(pieces: Sequence[Piece], target: Target) -> tuple[s.OptionLine, ...]:
    """An option holds for a whole kernel: of each the value that counts most, pieces without it
    included; of limits the highest."""
    votes: dict[str, Counter[s.Expr | None]] = {}
    total = sum(piece.weight for piece in pieces)
    for piece in pieces:
        schedule, _ = select_layers(piece.kernel, target)
        for line in schedule.lines if schedule is not None else ():
            if isinstance(line, s.OptionLine):
                votes.setdefault(line.name, Counter())[line.value] += piece.weight  # type: ignore[assignment]
    chosen: list[s.OptionLine] = []
    for name, counted in sorted(votes.items()):
        if name == "unroll_limit":
            limits = [value for value in counted if isinstance(value, s.Num)]
            value = max(limits, key=lambda number: number.value, default=None)
        else:
            counted[None] = total - sum(counted.values())  # type: ignore[assignment]
            value = counted.most_common(1)[0][0]
        if value is not None:
            chosen.append(s.OptionLine(name, value))
    return tuple(chosen)


# ---------------------------------------------------------------- names
@dataclass(frozen=True)
class Place:
    """What a piece is told of its place in the whole.

    Attributes:
        prefix: of everything that it defines.
        inputs: its inputs to tensors of the joined kernel.
        outputs: its outputs likewise; those of the whole under the names of the header.
        stages: outputs that are none of the whole.
        shared: inputs that other pieces read too, or that this one reads under two names.
        copies: caches that pieces before it keep of the tensor behind an input.
    """

    prefix: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    stages: frozenset[str]
    shared: frozenset[str]
    copies: Mapping[str, int]


class _Names:
    """Who is called what in the joined kernel."""

    def __init__(self, header: s.Kernel, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._prefix = _free_prefix(header, pieces)
        self._own = {param.name for param in (*header.inputs, *header.outputs)}
        self._called = {name: name for name in self._own}
        self._caches: Counter[str] = Counter()
        self._readers = Counter(
            piece.tensors[param.name] for piece in pieces for param in piece.kernel.inputs
        )

    def of(self, number: int) -> Place:
        piece = self._pieces[number]
        prefix = f"{self._prefix}{number}_"
        outputs: dict[str, str] = {}
        for param in piece.kernel.outputs:
            tensor = piece.tensors[param.name]
            called = self._called.setdefault(tensor, f"{prefix}{param.name}")
            outputs[param.name] = called
        inputs = {
            param.name: self._called[piece.tensors[param.name]] for param in piece.kernel.inputs
        }
        shared = {name for name in inputs if self._readers[piece.tensors[name]] > 1}
        return Place(
            prefix,
            inputs,
            outputs,
            frozenset(name for name, called in outputs.items() if called not in self._own),
            frozenset(shared),
            {name: self._caches[called] for name, called in (*inputs.items(), *outputs.items())},
        )

    def settle(self, number: int, fitted: Refitted) -> None:
        self._caches.update(fitted.caches)


def _free_prefix(header: s.Kernel, pieces: Sequence[Piece]) -> str:
    """Letters that no name of any piece begins with, if a number follows."""
    words = set(_words(header)) | {word for piece in pieces for word in _words(piece.kernel)}
    stem = "g"
    while any(re.match(rf"{stem}\d", word) for word in words):
        stem += "g"
    return stem


def _words(kernel: s.Kernel) -> Iterator[str]:
    yield from re.findall(r"[A-Za-z]\w*", print_kernel(kernel))
