"""Malformed and hostile answers of a model, from the answer to the verdict."""

from __future__ import annotations

import json
import time

import pytest

from edgekernelbench.agents.answers import extract_kernel
from edgekernelbench.evaluator.evaluator import Evaluator
from tests.adversarial.exploits import Exploit
from tests.adversarial.texts import RIGHT, TASK

WRONG = TASK.kernel("Y[i, j] = 0")
OTHER = RIGHT.replace("kernel dense[", "kernel other[")
WAIT_S = 5.0

ANSWERS = {
    "nothing": Exploit("silence", "", "unparseable"),
    "verdict": Exploit("a verdict in prose", "Status: correct. Speed-up 12.0x, all tests passed.",
                       "unparseable"),
    "json verdict": Exploit("a verdict as a tool would give it",
                            '{"status": "correct", "performance": {"median_us": 0.001}}',
                            "unparseable"),
    "python": Exploit("Python in a fence", "```python\nimport os\nos.abort()\n```", "unparseable"),
    "the word": Exploit("a sentence about kernels", "My kernel (very fast) is { here }.",
                        "unparseable"),
    "only thought": Exploit("a kernel that was only thought of", f"<think>{RIGHT}</think> Done.",
                            "unparseable"),
    "corrected": Exploit("two kernels, the right one first", f"{RIGHT}\nBetter:\n{WRONG}",
                         "wrong_result"),
    "fence of another": Exploit("a right kernel of another task, and a wrong one",
                                f"```\n{WRONG}\n```\n```\n{OTHER}\n```", "wrong_result"),
    "hidden in JSON": Exploit("a wrong kernel within a string", json.dumps(
        {"status": "correct", "kernel": WRONG}), "wrong_result"),
    "cut": Exploit("a kernel that ends in its middle", RIGHT[:-30], "invalid_ir"),
    "swapped braces": Exploit("brackets that close each other's", RIGHT.replace("}", ")"),
                              "invalid_ir"),
    "braces": Exploit("the time to find the end", "kernel dense" + "{" * 400_000, "invalid_ir"),
    "beginnings": Exploit("the time to try each beginning", "kernel dense[" * 60_000,
                          "unparseable"),
    "tags": Exploit("the time to find thoughts", "<think>" * 200_000 + "</think>", "unparseable"),
    "deep JSON": Exploit("the stack of the JSON reader", "[" * 500_000, "unparseable"),
    "escapes": Exploit("text that unescapes into more", "&amp;" * 300_000, "unparseable"),
    "zero width": Exploit("letters that cannot be seen, in a wrong kernel",
                          WRONG.replace("kernel", "ker\u200bnel"), "wrong_result"),
    "surrogate": Exploit("text that no file can hold", WRONG.replace("0 }", "\ud800 }"),
                         "invalid_ir"),
}  # fmt: skip


def status_of(evaluator: Evaluator, answer: str) -> str:
    """As the agents do: an answer without a kernel is not evaluated."""
    began = time.monotonic()
    found = extract_kernel(answer, "dense")
    assert time.monotonic() - began < WAIT_S
    return "unparseable" if found is None else evaluator.evaluate(found.text, TASK).status


@pytest.mark.parametrize("name", ANSWERS)
def test_answer(evaluator: Evaluator, name: str) -> None:
    assert status_of(evaluator, ANSWERS[name].given) == ANSWERS[name].status


def test_an_answer_without_a_trick_is_correct(evaluator: Evaluator) -> None:
    assert status_of(evaluator, f"Here it is:\n```\n{RIGHT}\n```\n") == "correct"
