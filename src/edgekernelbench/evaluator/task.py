"""What the evaluator needs of a workload, and the secret draws of its inputs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from edgekernelbench.baselines.base import Materials, Port
from edgekernelbench.evaluator.regions import Layout, Sealed, packed
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness as Comparison

if TYPE_CHECKING:
    from edgekernelbench.suite import Workload

Arrays = dict[str, np.ndarray]


class Spec(Protocol):
    """A tensor of a task's interface; `suite.TensorSpec` is one."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def const(self) -> bool: ...


class EvalTask(Protocol):
    """A task to be evaluated; `suite.Workload` is one. ``flops`` and ``bytes_touched`` are what
    one call needs at least, nominally."""

    @property
    def id(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def tolerance(self) -> str: ...
    @property
    def sizes(self) -> Mapping[str, int | float]: ...
    @property
    def flops(self) -> int: ...
    @property
    def bytes_touched(self) -> int: ...
    @property
    def input_specs(self) -> tuple[Spec, ...]: ...
    @property
    def output_specs(self) -> tuple[Spec, ...]: ...

    def header(self) -> str: ...
    def canonical(self) -> str: ...
    def inputs(self, seed: int, const_seed: int | None = None) -> Arrays: ...
    def truth(self, inputs: Mapping[str, np.ndarray], *, cache: bool = True) -> Arrays: ...
    def twin(self, inputs: Mapping[str, np.ndarray]) -> Any: ...
    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Comparison: ...


def as_task(workload: Workload) -> EvalTask:
    """A workload as the evaluator sees it. (Type checkers do not match its cached properties with
    the protocol's.)"""
    return cast(EvalTask, workload)


def ports(task: EvalTask) -> tuple[Port, ...]:
    """The interface in the header's order."""
    inputs = tuple(
        Port(name=s.name, dtype=s.dtype, shape=s.shape, role="const" if s.const else "input")
        for s in task.input_specs
    )
    outputs = tuple(
        Port(name=s.name, dtype=s.dtype, shape=s.shape, role="output") for s in task.output_specs
    )
    return inputs + outputs


class InvalidReference(Exception):
    """The task's own inputs, truth or twin are unusable; says which and why."""


@dataclass(frozen=True)
class InputSet:
    """One draw of the non-const inputs and what the outputs should be."""

    inputs: Arrays
    truth: Arrays
    region: Sealed


class Pool:
    """Secret draws: one set of constants, several sets of inputs, and their truths.

    The seeds come from the system's randomness. Memory: one copy of everything here, one in
    sealed files.

    Raises:
        InvalidReference: the reference fails, or yields what no kernel could be compared with.
    """

    def __init__(self, task: EvalTask, n_sets: int) -> None:
        self.const_seed = secrets.randbits(62)
        self.input_seeds = tuple(secrets.randbits(62) for _ in range(n_sets))
        self.age = 0
        inputs = [s for s in task.input_specs if not s.const]
        consts = [s for s in task.input_specs if s.const]
        self.layout: Layout = packed((s.name, s.dtype, s.shape) for s in inputs)
        self.const_layout: Layout = packed((s.name, s.dtype, s.shape) for s in consts)
        names = [s.name for s in inputs]
        self.sets: list[InputSet] = []
        drawn: Arrays = {}
        for seed in self.input_seeds:
            drawn = _draw(task, seed, self.const_seed)
            region = Sealed.of_arrays(self.layout, drawn)
            truth = _truth(task, drawn)
            self.sets.append(InputSet({n: drawn[n] for n in names}, truth, region))
        self.consts = Sealed.of_arrays(self.const_layout, drawn)
        self._twin: Sealed | None = None
        self._twin_of = (task, drawn)

    def twin(self) -> Sealed | None:
        """The ONNX twin with this pool's constants, serialized; made when first asked for.

        Raises:
            InvalidReference: it cannot be made.
        """
        if self._twin is None:
            task, drawn = self._twin_of
            model = _model(task, drawn)
            if model is not None:
                self._twin = Sealed(model.SerializeToString())
        return self._twin

    def close(self) -> None:
        for item in self.sets:
            item.region.close()
        self.consts.close()
        if self._twin is not None:
            self._twin.close()


def _draw(task: EvalTask, seed: int, const_seed: int) -> Arrays:
    try:
        return task.inputs(seed, const_seed)
    except Exception as error:
        raise InvalidReference(f"inputs cannot be drawn: {error}") from error


def _truth(task: EvalTask, inputs: Arrays) -> Arrays:
    try:
        # These seeds are used once, so the disk cache would only fill up.
        truth = task.truth(inputs, cache=False)
    except Exception as error:
        raise InvalidReference(f"the reference fails: {type(error).__name__}: {error}") from error
    for name, values in truth.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InvalidReference(f"the reference's {name} has values that are not finite")
    return truth


def _model(task: EvalTask, inputs: Arrays) -> Any:
    try:
        return task.twin(inputs)
    except Exception as error:
        raise InvalidReference(f"the ONNX twin cannot be made: {error}") from error


def materials(task: EvalTask) -> Materials:
    """What baselines are built from. The twin's constants are one draw under a fixed seed.

    Raises:
        InvalidReference: inputs cannot be drawn, or the twin cannot be made.
    """
    try:
        canonical = task.canonical()
    except FileNotFoundError:
        canonical = None
    draws = _DRAWS if any(spec.const for spec in task.input_specs) else 1
    models = [_model(task, _draw(task, 0, const_seed)) for const_seed in range(draws)]
    model = models[0]
    return Materials(
        workload=task.id,
        header=task.header(),
        ports=ports(task),
        canonical=canonical,
        twin=None if model is None else model.SerializeToString(),
        fixed=() if model is None else _fixed(models),
    )


_DRAWS = 3
"""Draws of the constants that show which initializers depend on them. One that is the same in all
by chance is noticed when a program that relies on it is bound."""


def _fixed(models: list[Any]) -> tuple[str, ...]:
    """Initializers that have the same value in all twins."""
    first, *others = [{i.name: i for i in model.graph.initializer} for model in models]
    return tuple(name for name, value in first.items() if all(o[name] == value for o in others))
