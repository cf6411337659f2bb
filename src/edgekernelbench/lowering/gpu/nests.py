"""The nests of all stages on a GPU: those stated, and default rules by where a stage runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from edgekernelbench.lowering.gpu.defaults import (
    device_pieces,
    device_scatter_nest,
    is_small_search,
)
from edgekernelbench.lowering.gpu.device import Level
from edgekernelbench.lowering.gpu.own import mirrored_pieces
from edgekernelbench.lowering.graph import Graph
from edgekernelbench.lowering.passes.scatter import find_scatter
from edgekernelbench.lowering.plan import Nest, Piece, StagePlan
from edgekernelbench.targets.model import Target


@dataclass(slots=True)
class DeviceNests:
    """Chooses the nests of stages without a line.

    Attributes:
        placed: stages computed inside others' loops, with those and the loops' names.
        levels: where each stage would run, were it not placed.
    """

    graph: Graph
    given: Mapping[str, Nest]
    placed: Mapping[str, tuple[str, str]]
    targets: Collection[str]
    target: Target
    levels: Mapping[str, Level]
    known: dict[str, Nest] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    making: set[str] = field(default_factory=set)

    def of(self, name: str) -> Nest:
        """The nest of a stage."""
        if name in self.given:
            return self.given[name]
        if name not in self.known:
            self.making.add(name)
            self.known[name] = self._default(name)
            self.making.discard(name)
        return self.known[name]

    def level(self, name: str) -> Level:
        """Where a stage runs: between kernels, in a block, or in one thread."""
        if name not in self.placed or name in self.waiting:  # placed in a circle: refused elsewhere
            return self.levels[name]
        self.waiting.add(name)
        target, loop = self.placed[name]
        level = level_inside(self.of(target).pieces, loop, self.level(target))
        self.waiting.discard(name)
        return level

    def _default(self, name: str) -> Nest:
        assert self.target.gpu is not None
        stage, level = self.graph.stage(name), self.level(name)
        whole = name not in self.placed and name not in self.targets
        scatter = find_scatter(stage) if whole and not is_small_search(stage) else None
        if scatter is not None:
            return device_scatter_nest(stage, scatter, level)
        mirrored = self._mirrored(name) if level == "block" else None
        pieces = mirrored or device_pieces(stage, level, self.target.gpu)
        sharing = mirrored is None and any(p.reduction and p.kind == "thread" for p in pieces)
        return Nest(pieces, cooperative=sharing)

    def _mirrored(self, name: str) -> tuple[Piece, ...] | None:
        """The loops of the stage that a stage reads and is placed in."""
        if name not in self.placed:
            return None
        target, loop = self.placed[name]
        if target in self.making:  # placed in a circle, too
            return None
        pieces = self.of(target).pieces
        depth = next((k for k, piece in enumerate(pieces) if piece.name == loop), None)
        if depth is None or target not in self.graph.producers(name):
            return None
        return mirrored_pieces(
            self.graph.stage(name), StagePlan(self.graph.stage(target), pieces), depth
        )


def level_inside(pieces: tuple[Piece, ...], loop: str, level: Level) -> Level:
    """Where what is placed in a loop of a nest runs, the nest being at ``level``."""
    kinds: list[str] = []
    for piece in pieces:
        kinds.append(piece.kind)
        if piece.name == loop:
            break
    if level == "thread" or "thread" in kinds or "parallel" in kinds:
        return "thread"
    if "block" in kinds or level == "block":
        return "block"
    return "block" if any(p.kind == "thread" for p in pieces) else "thread"
