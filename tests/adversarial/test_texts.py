"""Hostile kernel texts through the real compiler: each gets its own status, none harms the next."""

from __future__ import annotations

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.model import Evaluation
from tests.adversarial.texts import RIGHT, TASK, TEXTS


@pytest.mark.parametrize("name", TEXTS)
def test_text(evaluator: Evaluator, name: str) -> None:
    exploit = TEXTS[name]
    with evaluator.session(TASK) as session:
        result = session.evaluate(exploit.given)
        after = session.evaluate(RIGHT)
    assert result.status == exploit.status, result.message
    assert exploit.says in result.message
    assert result.performance is None
    assert Evaluation.model_validate_json(result.model_dump_json()) == result, "a record holds it"
    assert after.status == "correct", after.message


def test_right(evaluator: Evaluator) -> None:
    result = evaluator.evaluate(RIGHT, TASK)
    assert result.status == "correct", result.message
