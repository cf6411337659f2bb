"""Search under a budget of evaluations: from the best guess, one changed stage at a time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from edgekernelbench.agents.tuner.choices import Choice
from edgekernelbench.agents.tuner.space import Space

Legal = Callable[[dict[str, Choice]], bool]


class Search:
    """Proposes states; is told how each did. Never proposes the same kernel twice.

    A move changes one root, or all roots of one structure alike: which, by work; to what, by the
    rank of the guess.

    Args:
        legal: whether a state lowers; costs no evaluation.
        identity: what makes two states the same kernel.
    """

    def __init__(
        self,
        space: Space,
        rng: random.Random,
        legal: Legal,
        identity: Callable[[dict[str, Choice]], str],
    ) -> None:
        self._space = space
        self._rng = rng
        self._legal = legal
        self._identity = identity
        self._seen: set[str] = set()
        self._best: dict[str, Choice] = {}
        self._best_time = math.inf
        self._tried: dict[str, int] = {}

    def proposals(self, patience: int = 200) -> Iterator[tuple[str, dict[str, Choice]]]:
        """Reason and state, until nothing new is found within ``patience`` draws."""
        for reason, state in self._openings():
            if self._new(state):
                yield reason, state
        while True:
            for _ in range(patience):
                reason, state = self._move()
                if self._new(state):
                    yield reason, state
                    break
            else:
                return

    def tell(self, state: dict[str, Choice], microseconds: float | None) -> bool:
        """Records a measurement (None: not correct); says whether it is the best so far."""
        if microseconds is None or microseconds >= self._best_time:
            return False
        self._best, self._best_time = dict(state), microseconds
        return True

    def _openings(self) -> Iterator[tuple[str, dict[str, Choice]]]:
        yield "default rules", {}
        yield "best guess for every stage", self.repair(self._space.best_guess())
        reductions = {v.name for v in self._space.views if v.kind == "reduce"}
        if len(self._space.views) > len(reductions) > 0:
            guess = self._space.best_guess(reductions)
            yield "best guess for the reductions", self.repair(guess)
        if len(self._space.roots) > 2:
            heaviest = self._space.roots[0]
            guess = self._space.best_guess(self._alike(heaviest))
            yield f"best guess for {heaviest} and its like", self.repair(guess)

    def _alike(self, root: str) -> set[str]:
        """Roots with the same structure of axes and reads, this one included."""
        signature = self._space.view(root).signature
        return {r for r in self._space.roots if self._space.view(r).signature == signature}

    def repair(self, state: dict[str, Choice]) -> dict[str, Choice]:
        """Drops or replaces the choices that do not lower, lightest root first."""
        kept: dict[str, Choice] = {}
        for root in self._space.roots:
            if root not in state:
                continue
            for choice in (state[root], *self._space.choices[root][:4]):
                if self._legal({**kept, root: choice}):
                    kept[root] = choice
                    break
        return kept

    def _new(self, state: dict[str, Choice]) -> bool:
        key = self._identity(state)
        if key in self._seen:
            return False
        self._seen.add(key)
        return self._legal(state)

    def _move(self) -> tuple[str, dict[str, Choice]]:
        root = self._pick_root()
        self._tried[root] = self._tried.get(root, 0) + 1
        options = self._space.choices[root]
        rank = min(int(self._rng.expovariate(1 / 5)), len(options) - 1)
        state = dict(self._best)
        if root in state and self._rng.random() < 0.05:
            del state[root]
            return f"{root}: back to the default rules", state
        alike = self._alike(root) if self._rng.random() < 0.5 else {root}
        for other in sorted(alike):
            same = [c for c in self._space.choices[other] if c.label == options[rank].label]
            self._settle(state, same[0] if same and other != root else self._at(other, rank))
        more = f" and {len(alike) - 1} like it" if len(alike) > 1 else ""
        return f"{root}{more}: {options[rank].label}", state

    def _at(self, root: str, rank: int) -> Choice:
        options = self._space.choices[root]
        return options[min(rank, len(options) - 1)]

    @staticmethod
    def _settle(state: dict[str, Choice], choice: Choice) -> None:
        for other in [r for r, c in state.items() if c.claims & choice.claims]:
            del state[other]
        state[choice.root] = choice

    def _pick_root(self) -> str:
        roots = self._space.roots
        weights = [
            math.sqrt(self._space.view(r).work) / (1 + 0.1 * self._tried.get(r, 0)) for r in roots
        ]
        return self._rng.choices(roots, weights)[0]
