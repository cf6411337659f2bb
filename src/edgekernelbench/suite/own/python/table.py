"""``@task``: a NumPy function and its table, as a user's file states them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError

from edgekernelbench.suite.draw import Generator
from edgekernelbench.suite.model import ToleranceClass
from edgekernelbench.suite.own.guard import users_code
from edgekernelbench.suite.patterns.registry import Pattern, Reference
from edgekernelbench.suite.rows import first_fault


class TableError(ValueError):
    """A task's table is malformed: names task and field."""


def _number(value: Any) -> Any:
    """True is an `int` to Python, and hardly ever meant as one."""
    if isinstance(value, (bool, str)):
        raise ValueError(f"{value!r} is not a number")
    return value


Numbers = dict[str, Annotated[int | FiniteFloat, BeforeValidator(_number)]]


class Table(BaseModel):
    """What `task` takes; see there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inputs: str
    outputs: str
    shapes: tuple[Numbers, ...] = Field(min_length=1)
    tolerance: ToleranceClass
    const: str
    accumulation: str
    derived: str
    flops: str
    level: Literal[1, 2, 3]
    notes: str
    small: Numbers
    lsb_share: float = Field(ge=0, le=1)
    canonical: str


@dataclass(eq=False, kw_only=True)
class TaskPattern(Pattern):
    """A pattern that brings its own row of the table."""

    table: Table

    def guard(self) -> AbstractContextManager[object]:
        return users_code()


def task(
    *,
    inputs: str,
    outputs: str,
    shapes: Sequence[Mapping[str, int | float]],
    tolerance: str,
    const: str = "",
    accumulation: str = "",
    derived: str = "",
    flops: str = "",
    level: int = 2,
    notes: str = "",
    small: Mapping[str, int | float] | None = None,
    lsb_share: float = 0.001,
    canonical: str = "",
    draw: Mapping[str, Generator] | None = None,
    no_twin: str | None = None,
    exempt: Mapping[str, str] | None = None,
    inert: Mapping[str, str] | None = None,
    sparse_output: str = "",
) -> Callable[[Reference], TaskPattern]:
    """Makes a task of a NumPy function; ``docs/own-tasks.md`` shows one.

    Args:
        inputs: ``name:[dims]:dtype; ...``; dims are formulas of the names in ``shapes``.
        outputs: the same, in the order in which the function returns them.
        shapes: one workload for each: numbers for every free name.
        tolerance: a class of `edgekernelbench.suite.tolerance`.
        const: names of inputs that are known before deployment, separated by ``;``.
        accumulation: how many terms are summed into one output element.
        derived: ``NAME=formula; ...`` sizes that follow from the others.
        flops: formula of the operations of one call; a multiply-add counts 2.
        small: sizes at which a check of meaning is quick.
        lsb_share: share of a rounded output that may be one step off.
        canonical: a kernel file beside this one that computes the same.
        draw: how single inputs are drawn where the default is wrong.
        no_twin: why there is no ONNX twin; needed only to silence the warning.
        exempt, inert, sparse_output: see `edgekernelbench.suite.patterns.registry.Pattern`.

    Raises:
        TableError: a field is malformed.
    """
    fields: dict[str, Any] = {
        "inputs": inputs,
        "outputs": outputs,
        "shapes": shapes,
        "tolerance": tolerance,
        "const": const,
        "accumulation": accumulation,
        "derived": derived,
        "flops": flops,
        "level": level,
        "notes": notes,
        "small": small or {},
        "lsb_share": lsb_share,
        "canonical": canonical,
    }

    def register(reference: Reference) -> TaskPattern:
        name = getattr(reference, "__name__", repr(reference))
        try:
            table = Table.model_validate(fields)
        except ValidationError as error:
            raise TableError(f"task {name}: {first_fault(error)}") from error
        for field, given in (("draw", draw), ("exempt", exempt), ("inert", inert)):
            if not isinstance(given or {}, Mapping):
                raise TableError(f"task {name}: {field}: not a mapping from names")
        strange = [key for key, made in (draw or {}).items() if not callable(made)]
        if strange:
            raise TableError(f"task {name}: draw: {strange[0]!r} is given no function")
        return TaskPattern(
            name,
            reference,
            draw or {},
            no_twin,
            exempt or {},
            inert or {},
            sparse_output,
            table=table,
        )

    return register
