"""What the model is told: a true example of the layers, and nothing that is not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from edgekernelbench.agents.base import Task
from edgekernelbench.agents.leka.layers import Layer
from edgekernelbench.agents.leka.propose import ModelProposer, Situation
from edgekernelbench.agents.leka.route import Route
from edgekernelbench.agents.model import Message, Scripted
from edgekernelbench.agents.prompts import MAX_TOKENS, estimate_tokens, gpu_guide, guide
from edgekernelbench.agents.talk import Talk
from edgekernelbench.ir.check import check_text
from edgekernelbench.suite import load_suite
from edgekernelbench.suite.gallery import load_gallery, shown_for
from tests.agents.leka.support import TARGET, Bench, task

WHOLE = (Path(__file__).parents[3] / "docs" / "ir.md").read_text(encoding="utf-8")


def prompt(about: Task, layer: Layer = "compute") -> tuple[Message, ...]:
    asked: list[tuple[Message, ...]] = []

    def answer(messages: Sequence[Message]) -> str:
        asked.append(tuple(messages))
        return ""

    proposer = ModelProposer(Talk(Scripted(answer), Bench(8).device()), 3)
    proposer.propose(Situation(about, Route(layer, "because"), None, None))
    return asked[0]


def test_the_first_prompt_keeps_its_limit_and_shows_all_three_layers() -> None:
    for workload in load_suite().workloads.values():
        if workload.level != 1:
            continue
        system, user = prompt(Task(workload, TARGET))
        (name,) = re.findall(r"what layers look like \((\w+)\)", user.text)
        example = load_gallery()[name]
        tokens = estimate_tokens(system.text) + estimate_tokens(user.text)
        shortest = example == shown_for(workload, 0, layer="memory")
        assert tokens <= MAX_TOKENS or (shortest and tokens < 1.02 * MAX_TOKENS), workload.id
        assert example.workload.pattern != workload.pattern
        shown = example.kernel_for("cpu").strip()
        assert shown in user.text and check_text(shown).program is not None
        assert "schedule for cpu" in shown and "memory for cpu" in shown


def test_it_says_that_layers_are_not_mixed() -> None:
    _, user = prompt(task(), "schedule")
    assert "`schedule for cpu { ... }`" in user.text and "never two together" in user.text


def test_the_guide_names_no_recipe_and_no_page_that_is_not_there() -> None:
    recipes = re.findall(r"^kernel (\w+)\[", WHOLE.partition("Recipes")[2], re.M)
    assert "gemm_s8" in recipes
    for page in (guide(), gpu_guide()):
        named = set(re.findall(r"recipe `(\w+)`", page))
        assert not named and "`gemm_s8`" not in page and "their page" not in page
    chapters = set(re.findall(r"^## (\d+) ", guide(), re.M))
    assert set(re.findall(r"section (\d+)", guide() + gpu_guide())) <= chapters
