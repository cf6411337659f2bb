"""One budget for every agent: it counts, refuses politely, and pardons the wait for the device."""

from __future__ import annotations

from edgekernelbench.agents.base import Budget, Device, Refused
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.records.schema import Spent
from tests.factories import correct


def _device(budget: Budget, wait: float = 0.0) -> Device:
    def evaluate(_text: str) -> Evaluation:
        return correct("a__01", {}, None).model_copy(update={"lock_wait_seconds": wait})

    return Device(evaluate, budget)


def test_the_evaluation_after_the_last_is_refused_with_what_to_do() -> None:
    device = _device(Budget(Spent(evaluations=2)))
    assert isinstance(device.evaluate("k"), Evaluation)
    assert isinstance(device.evaluate("k"), Evaluation)
    refused = device.evaluate("k")
    assert isinstance(refused, Refused)
    assert "all 2 evaluations are used" in refused.message
    assert "best kernel" in refused.message
    assert device.budget.spent.evaluations == 2
    assert [step.action for step in device.trajectory] == ["evaluate", "evaluate"]


def test_time_spent_waiting_for_the_device_does_not_count() -> None:
    now = [0.0]
    budget = Budget(Spent(seconds=10), clock=lambda: now[0])
    now[0] = 12.0
    assert budget.exhausted() is not None
    budget.pardon_wait(5.0)
    assert budget.exhausted() is None
    assert budget.seconds == 7.0


def test_what_costs_nobody_knows_how_much_ends_an_attempt_that_has_so_many_dollars() -> None:
    for limits, ends in ((Spent(cost=1.0), True), (Spent(tokens=100), False)):
        budget = Budget(limits)
        budget.charge(tokens=10, cost=0.5)
        assert budget.all_spent() is None
        budget.charge(tokens=10)
        assert ("is not told" in (budget.all_spent() or "")) is ends


def test_tokens_are_a_limit_of_their_own() -> None:
    budget = Budget(Spent(tokens=100))
    budget.charge(tokens=99)
    assert budget.exhausted() is None
    budget.charge(tokens=1)
    assert "100 tokens" in (budget.exhausted() or "")
