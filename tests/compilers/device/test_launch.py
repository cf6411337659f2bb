"""Launch plans: what they mean, and that those from strangers end."""

from __future__ import annotations

import pytest

from edgekernelbench.compilers.launch import (
    Branch,
    BufferArgument,
    Expr,
    Launch,
    LaunchPlan,
    Operation,
    PlanError,
    Repeat,
    ScalarArgument,
    Step,
    TooManyLaunches,
    Workspace,
    calls,
    count_launches,
    evaluate,
)


def launch(kernel: str = "k", groups: Expr = 1, *scalars: Expr, buffer: str = "x") -> Launch:
    numbers = tuple(ScalarArgument(dtype="int32", value=value) for value in scalars)
    return Launch(
        kernel=kernel,
        arguments=(BufferArgument(buffer=buffer), *numbers),
        groups=(groups, 1, 1),
        group_size=(8, 1, 1),
    )


def plan(*steps: Step) -> LaunchPlan:
    return LaunchPlan(params=("x",), workspaces=(Workspace(name="w", bytes=4),), steps=steps)


def op(name: str, *operands: Expr) -> Operation:
    return Operation.model_validate({"op": name, "operands": operands})


def test_loops_and_branches_in_order() -> None:
    inner = Branch(
        condition=op("eq", op("floormod", "i", 2), 0),
        then=(launch("even", "i", op("sub", "i", 7)),),
        otherwise=(launch("odd", 2, "i", buffer="w"),),
    )
    loop = Repeat(var="i", low=op("add", 0, 1), extent=3, body=(inner,))
    made = list(calls(plan(loop, launch("last"))))
    assert [c.kernel for c in made] == ["odd", "even", "odd", "last"]
    assert [c.arguments for c in made[:2]] == [("w", ("int32", 1)), ("x", ("int32", -5))]
    assert made[1].groups == (2, 1, 1)
    again = LaunchPlan.model_validate_json(plan(loop).model_dump_json())
    assert again == plan(loop) and count_launches(again) == 3


def test_empty_grids_are_left_out() -> None:
    assert count_launches(plan(launch(groups=0), launch(groups=op("sub", 1, 2)))) == 0


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (op("floordiv", -7, 2), -4),
        (op("floormod", -7, 2), 1),
        (op("min", 3, op("max", 1, 2)), 2),
        (op("and", op("lt", 1, 2), op("not", 0)), 1),
        (op("or", 0, op("ge", 1, 2)), 0),
        (op("mul", 3, op("ne", 1, 1)), 0),
    ],
)
def test_values(expr: Expr, value: int) -> None:
    assert evaluate(expr, {}) == value


NOTHING = Repeat(var="i", low=0, extent=10**12, body=())
NESTED = Repeat(var="j", low=0, extent=10**6, body=(NOTHING,))
IDLE = Repeat(var="i", low=0, extent=10**12, body=(Branch(condition=0, then=(launch(),)),))
EMPTY = Repeat(var="i", low=0, extent=10**12, body=(launch(groups=0),))


@pytest.mark.parametrize("step", [NOTHING, NESTED, IDLE, EMPTY])
def test_plans_without_end_are_refused(step: Step) -> None:
    with pytest.raises(TooManyLaunches):
        count_launches(plan(step))


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (launch(buffer="y"), "unknown buffer 'y'"),
        (launch("k", "n"), "unknown variable 'n'"),
        (launch("k", op("floordiv", 1, 0)), "not defined"),
        (launch("k", op("not", 1, 2)), "not defined"),
    ],
)
def test_plans_that_make_no_sense(step: Step, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        count_launches(plan(step))
