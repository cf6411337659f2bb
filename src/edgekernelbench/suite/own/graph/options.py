"""What a user says of ONNX models beside the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekernelbench.suite.model import ToleranceClass


@dataclass(frozen=True)
class Options:
    """What a user says of inputs, by their names in the model.

    Attributes:
        used: names that some model had; for the complaint about the others.
        tolerance: the class of all models; made of their operators if left out.
        weights: initializers that are const inputs, where another model decides that; found by how
            they are read if left out.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    tolerance: ToleranceClass | None = None
    weights: frozenset[str] | None = None
