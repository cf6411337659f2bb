"""Launch plans: what a host does to run device kernels, as data.

A plan names buffers and kernels, and holds the loops and branches around the launches; nothing in
it is code. Whoever runs it needs the device's source and this module, not the compiler.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

MOST_LAUNCHES = 50_000
"""Launches of one call. Each costs microseconds whatever it does, and is prepared beforehand."""

Op = Literal[
    "add", "sub", "mul", "floordiv", "floormod", "min", "max",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
]  # fmt: skip


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Operation(_Stored):
    """An operation on integers; comparisons yield 0 or 1, division rounds down."""

    op: Op
    operands: tuple[Expr, ...]


Expr = StrictInt | str | Operation
"""A number, the name of a variable of an enclosing loop, or an operation."""


class BufferArgument(_Stored):
    """A parameter or workspace of the plan, from its beginning."""

    kind: Literal["buffer"] = "buffer"
    buffer: str


class ScalarArgument(_Stored):
    """A number passed by value; ``dtype`` is NumPy's name of its type."""

    kind: Literal["scalar"] = "scalar"
    dtype: str
    value: Expr


Argument = Annotated[BufferArgument | ScalarArgument, Field(discriminator="kind")]


class Launch(_Stored):
    """Starts a kernel: ``arguments`` in its own order, extents of grid and group by axis, and the
    bytes of shared memory that the launch decides, beside what the kernel itself allocates."""

    kind: Literal["launch"] = "launch"
    kernel: str
    arguments: tuple[Argument, ...]
    groups: tuple[Expr, Expr, Expr]
    group_size: tuple[int, int, int]
    shared_bytes: int = Field(default=0, ge=0)


class Repeat(_Stored):
    """``for var in low .. low + extent - 1``, one after another."""

    kind: Literal["repeat"] = "repeat"
    var: str
    low: Expr
    extent: Expr
    body: tuple[Step, ...]


class Branch(_Stored):
    kind: Literal["branch"] = "branch"
    condition: Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()


Step = Annotated[Launch | Repeat | Branch, Field(discriminator="kind")]


class Workspace(_Stored):
    """Memory of the device that one call needs for itself."""

    name: str
    bytes: int = Field(gt=0)


class LaunchPlan(_Stored):
    """One host function. ``params`` name the buffers it is given, in order."""

    params: tuple[str, ...]
    workspaces: tuple[Workspace, ...] = ()
    steps: tuple[Step, ...]

    @property
    def workspace_bytes(self) -> int:
        return sum(space.bytes for space in self.workspaces)


Operation.model_rebuild()
Repeat.model_rebuild()
Branch.model_rebuild()
LaunchPlan.model_rebuild()


# ---------------------------------------------------------------- carrying it out
@dataclass(frozen=True, slots=True)
class Call:
    """One launch with everything known. An argument is a buffer's name or (dtype, value)."""

    kernel: str
    arguments: tuple[str | tuple[str, int], ...]
    groups: tuple[int, int, int]
    group_size: tuple[int, int, int]
    shared_bytes: int = 0


class PlanError(ValueError):
    """A plan that cannot be carried out; says why."""


class TooManyLaunches(PlanError):
    """One call would start more kernels than are allowed."""


def calls(plan: LaunchPlan, most: int = MOST_LAUNCHES) -> Iterator[Call]:
    """The launches of one call of the plan, in order.

    Launches of an empty grid are left out: there is nothing to do, and drivers refuse them.

    Raises:
        TooManyLaunches: there are more than ``most``.
        PlanError: a variable or buffer is unknown, or a divisor is 0.
    """
    yield from _Run(plan, most).steps(plan.steps, {})


def count_launches(plan: LaunchPlan) -> int:
    """How many launches one call makes.

    Raises:
        PlanError: see `calls`.
    """
    return sum(1 for _ in calls(plan))


class _Run:
    """One carrying out of a plan, which may come from a process that is not trusted: iterations
    that launch nothing are counted, too."""

    def __init__(self, plan: LaunchPlan, most: int) -> None:
        self._known = {*plan.params, *(space.name for space in plan.workspaces)}
        self._most, self._left = most, most

    def steps(self, steps: tuple[Step, ...], env: Mapping[str, int]) -> Iterator[Call]:
        for step in steps:
            match step:
                case Launch():
                    self._count()
                    call = _launch(step, env, self._known)
                    if all(call.groups):
                        yield call
                case Repeat():
                    low = evaluate(step.low, env)
                    for value in range(low, low + evaluate(step.extent, env)):
                        self._count(0 if _launches(step.body) else 1)
                        yield from self.steps(step.body, {**env, step.var: value})
                case Branch():
                    taken = step.then if evaluate(step.condition, env) else step.otherwise
                    yield from self.steps(taken, env)

    def _count(self, by: int = 1) -> None:
        self._left -= by
        if self._left < 0:
            raise TooManyLaunches(f"one call needs more than {self._most} launches")


def _launches(steps: tuple[Step, ...]) -> bool:
    return any(isinstance(step, Launch) for step in steps)


def _launch(launch: Launch, env: Mapping[str, int], known: set[str]) -> Call:
    arguments: list[str | tuple[str, int]] = []
    for argument in launch.arguments:
        match argument:
            case BufferArgument(buffer=name):
                if name not in known:
                    raise PlanError(f"kernel {launch.kernel} is given an unknown buffer {name!r}")
                arguments.append(name)
            case ScalarArgument(dtype=dtype, value=value):
                arguments.append((dtype, evaluate(value, env)))
    x, y, z = (max(0, evaluate(extent, env)) for extent in launch.groups)
    return Call(launch.kernel, tuple(arguments), (x, y, z), launch.group_size, launch.shared_bytes)


_OPERATIONS: dict[Op, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "min": min,
    "max": max,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": operator.not_,
}


def evaluate(expr: Expr, env: Mapping[str, int]) -> int:
    """The value of an expression where loop variables have these values.

    Raises:
        PlanError: a variable is unknown, or an operation is not defined for its operands.
    """
    match expr:
        case Operation(op=op, operands=operands):
            values = [evaluate(operand, env) for operand in operands]
            try:
                return int(_OPERATIONS[op](*values))
            except (TypeError, ZeroDivisionError) as error:
                raise PlanError(f"{op} of {values} is not defined") from error
        case str():
            if expr not in env:
                raise PlanError(f"unknown variable {expr!r}")
            return env[expr]
        case _:
            return expr
