"""What was tried: candidates by the compute form that they share, and which branch is worked on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from edgekernelbench.agents.leka.layers import Layer
from edgekernelbench.agents.leka.screen import Screened
from edgekernelbench.evaluator.model import Evaluation


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate that was on the device. ``us``: median of a call; None unless it is correct."""

    screened: Screened
    evaluation: Evaluation

    @property
    def us(self) -> float | None:
        performance = self.evaluation.performance
        return None if performance is None else performance.median_us

    @property
    def text(self) -> str:
        return self.screened.text


@dataclass(slots=True)
class Branch:
    """All candidates with one compute form.

    Attributes:
        form: text of the compute layer.
        root: what the branch began with; measured first when the branch is taken up.
        best: the fastest correct one.
        tried: rounds of proposals since the best one was found, by layer.
        dead: given up.
    """

    form: str
    root: Screened
    best: Measured | None = None
    tried: dict[Layer, int] = field(default_factory=dict)
    dead: bool = False

    @property
    def head(self) -> Screened:
        """What the next patch is applied to."""
        return self.root if self.best is None else self.best.screened

    @property
    def us(self) -> float:
        return math.inf if self.best is None or self.best.us is None else self.best.us


class Archive:
    """Candidates and branches of one attempt. A regression never becomes the head of a branch.

    Attributes:
        current: the branch that is worked on.
        times: microseconds of every kernel text that was measured; None where it is not correct.
    """

    def __init__(self) -> None:
        self.branches: dict[str, Branch] = {}
        self.current: Branch | None = None
        self.times: dict[str, float | None] = {}

    @property
    def best(self) -> Measured | None:
        """The fastest correct candidate of all branches."""
        measured = [b.best for b in self.branches.values() if b.best is not None]
        return min(measured, key=lambda m: m.us or math.inf, default=None)

    def is_new(self, screened: Screened) -> bool:
        """Whether the very same kernel was never measured."""
        return screened.text not in self.times

    def begin(self, screened: Screened) -> Branch:
        """The branch of a candidate's compute form, a new one if there is none."""
        return self.branches.setdefault(screened.form, Branch(screened.form, screened))

    def tell(self, measured: Measured) -> bool:
        """Files a measurement; says whether it is the best of its branch so far."""
        self.times[measured.text] = measured.us
        branch = self.begin(measured.screened)
        if measured.us is None or measured.us >= branch.us:
            return False
        branch.best = measured
        branch.tried.clear()
        return True

    def spent(self, branch: Branch, layer: Layer) -> None:
        """Notes a round of proposals that brought nothing."""
        branch.tried[layer] = branch.tried.get(layer, 0) + 1

    def alive(self) -> Iterator[Branch]:
        """Branches that may still be worked on, the most promising first: measured ones by time,
        then the others by their estimates."""
        living = [b for b in self.branches.values() if not b.dead]
        yield from sorted(living, key=lambda b: (b.us, b.root.estimated_us or math.inf))
