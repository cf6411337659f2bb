"""How a kernel's time divides: estimated, or measured by nest and estimated within each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgekernelbench.analysis.estimate import Estimate, PartShare
from edgekernelbench.evaluator.stages import StageProfile


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of 1; None on GPUs. See `observe.Observation`.

    Attributes:
        profile: the one that was used.
    """

    serial: float | None = None
    scalar: float | None = None
    apart: float | None = None
    stages: tuple[tuple[str, float], ...] = ()
    buffers: Mapping[str, float] = field(default_factory=dict)
    profile: StageProfile | None = None

    @classmethod
    def of(cls, guess: Estimate | None, profile: StageProfile | None) -> Shares:
        """Where a profile does not tell of the same nests as the estimate, it does not count."""
        if guess is None:
            return cls()
        named = [] if profile is None else [(p.label, p.stages) for p in profile.parts]
        if profile is None or named != [(p.label, p.stages) for p in guess.parts]:
            whole = sum(share.seconds for share in guess.stages.values())
            stages = {n: s.seconds / whole for n, s in guess.stages.items()} if whole else {}
            what = (guess.share("serial"), guess.share("scalar"), guess.share("apart"))
            return cls(*what, tuple(stages.items()), stages)
        weights = [part.share for part in profile.parts]
        ordered = sorted(((p.label, p.share) for p in profile.parts), key=lambda one: -one[1])
        pairs = list(zip(weights, guess.parts, strict=True))
        serial, scalar, apart = (
            sum(weight * _share(part, what) for weight, part in pairs)
            for what in ("serial", "scalar", "apart")
        )
        buffers = _buffers(weights, guess.parts)
        return cls(serial, scalar, apart, tuple(ordered), buffers, profile)


def _share(part: PartShare, what: str) -> float:
    whole = part.whole
    return float(getattr(whole, what)) / whole.seconds if whole.seconds else 0.0


def _buffers(weights: Sequence[float], parts: Sequence[PartShare]) -> dict[str, float]:
    found: dict[str, float] = {}
    for weight, part in zip(weights, parts, strict=True):
        seconds = part.whole.seconds
        for name, share in part.buffers.items():
            more = weight * share.seconds / seconds if seconds else 0.0
            found[name] = found.get(name, 0.0) + more
    return found
