"""What an optimisation is asked to do, and who watches it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.runs.order import Order
from edgekernelbench.runs.run import Observer
from edgekernelbench.suite.model import ToleranceClass, Workload


@dataclass(frozen=True, slots=True)
class Request:
    """An optimisation.

    Attributes:
        model: an ONNX file.
        budget: evaluations of all parts together.
        folder: of the result and of all that leads there.
        shapes, ranges, tolerance: as for `suite.own.add`.
        options: of the agent.
        language_model: whom the agent asks, for the record.
        bundle: whether a bundle is made at the end.
    """

    model: Path
    target: str
    agent: str
    budget: int
    folder: Path
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tolerance: ToleranceClass | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    language_model: str | None = None
    seed: int = 0
    bundle: bool = True

    def arguments(self) -> dict[str, Any]:
        """All that decides what is done; a bundle can be had later.

        Raises:
            UsageError: the model cannot be read.
        """
        return {
            "model": _digest(self.model),
            "target": self.target,
            "agent": self.agent,
            "agent_options": dict(self.options),
            "language_model": self.language_model,
            "budget": self.budget,
            "seed": self.seed,
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "ranges": {name: list(bounds) for name, bounds in self.ranges.items()},
            "tolerance": self.tolerance,
        }

    def order(self, workload: Workload, evaluations: int) -> Order:
        """An agent's work on one part."""
        return Order(
            agent=self.agent,
            target=self.target,
            workloads=(workload,),
            subset="named",
            limits=Spent(evaluations=evaluations),
            epochs=1,
            seed=self.seed,
            folder=self.folder / "runs" / workload.id,
            resume=True,
            options=self.options,
        )


class Watch(Observer, Protocol):
    """Who watches: as of a run, and a line for each thing that is done besides."""

    def say(self, line: str) -> None: ...


Hands = Callable[[Order, Evaluator, Observer], list[Record]]
"""Lets the agent of an order work; returns the records of its folder."""


def _digest(path: Path) -> str:
    """SHA-256 of a model's file; the agreement of a resumed optimisation hangs on it."""
    if path.suffix != ".onnx":
        raise UsageError(f"{path}: not an .onnx file", "give an ONNX model (.onnx)")
    try:
        if not path.is_file():
            told = "not a regular file" if path.exists() else "there is no such file"
            raise UsageError(f"{path}: {told}", "give an ONNX model (.onnx)")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror})", "give an ONNX model (.onnx)"
        ) from error
