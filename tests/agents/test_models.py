"""Agents that ask a model: what they say, what they make of answers, what they keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from edgekernelbench.agents.base import Answer, Budget, Device, Task
from edgekernelbench.agents.batches import read_answers
from edgekernelbench.agents.model import (
    Message,
    ProviderError,
    Reply,
    Scripted,
    prompt_hash,
)
from edgekernelbench.agents.prompts import estimate_tokens, first_prompt, guide, prompt_version
from edgekernelbench.agents.registry import make_agent
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import BaselineResult, Evaluation, EvaluationStatus
from edgekernelbench.records.schema import Spent
from edgekernelbench.suite import load_suite
from edgekernelbench.suite.gallery import load_gallery
from edgekernelbench.targets.gpus import cuda_target
from edgekernelbench.targets.model import Target
from tests.factories import baseline, correct, performance

TARGET = Target(
    name="llvm",
    backend="llvm",
    description="a CPU",
    threads=2,
    vector_bits=256,
    cache_bytes=(32 << 10, 1 << 20),
    memory_bytes=8 << 30,
)
WORKLOAD = load_suite().workloads["softmax_last__02"]
TASK = Task(WORKLOAD, TARGET)
KERNEL = """kernel softmax_last[M=1536, C=128](x: f32[M, C]) -> (y: f32[M, C]) {
  compute { y[m, c] = x[m, c] }  # %s
}"""


class Bench:
    """Kernels take the time that their comment says; one that says no cannot be built."""

    def __init__(self, **limits: float) -> None:
        self.texts: dict[str, str] = {}
        self.seen: list[str] = []
        self.device = Device(
            self.evaluate,
            Budget(Spent(**limits)),
            check_kernel=self.check,
            keep_text=self.keep,
        )

    def keep(self, text: str) -> str:
        key = str(len(self.texts))
        self.texts[key] = text
        return key

    def check(self, text: str) -> Check:
        if "# no" not in text:
            return Check("ab" * 32, None, "", ())
        finding = {"severity": "error", "rendered": "error[E410]: axes are missing"}
        return Check("ab" * 32, EvaluationStatus.INVALID_IR, "E410", (finding,))

    def evaluate(self, text: str) -> Evaluation:
        self.seen.append(text)
        word = text.rpartition("# ")[2].partition("\n")[0]
        if word == "wrong":
            return Evaluation(
                status=EvaluationStatus.CRASHED, workload=WORKLOAD.id, target="llvm", message="died"
            )
        baselines: dict[str, BaselineResult] = {"tvm": baseline(1.5, 1.4)}
        result = correct(WORKLOAD.id, baselines, "tvm")
        return result.model_copy(update={"performance": performance(float(word))})


class Script:
    """Gives answers one after another, and keeps what it was asked."""

    def __init__(self, *answers: str | Reply) -> None:
        self.answers = list(answers)
        self.asked: list[Sequence[Message]] = []

    def __call__(self, messages: Sequence[Message]) -> str | Reply:
        self.asked.append(messages)
        if not self.answers:
            raise ProviderError("the script is over")
        return self.answers.pop(0)


def attempt(agent: str, script: Callable[[Sequence[Message]], str | Reply], bench: Bench) -> Answer:
    return make_agent(agent, Scripted(script)).attempt(TASK, bench.device, 0)


def fenced(word: str) -> str:
    return f"Here:\n```ekir\n{KERNEL % word}\n```"


# ---------------------------------------------------------------- prompts
def test_every_first_prompt_of_level_1_is_short_and_complete():
    for workload in load_suite().workloads.values():
        system, user = first_prompt(Task(workload, TARGET), Budget(Spent(evaluations=8)))
        if workload.level == 1:
            assert estimate_tokens(system.text) + estimate_tokens(user.text) <= 7000, workload.id
        assert guide() in system.text
        assert workload.header() in user.text
        assert "Tolerance" in user.text and "a CPU" in user.text and "8 evaluations" in user.text


def test_authors_for_a_gpu_are_told_of_blocks_and_shared_memory():
    workload = load_suite().workloads["relu__01"]
    _, user = first_prompt(Task(workload, cuda_target("sm_87")))
    assert "8 multiprocessors" in user.text and "48 KiB of shared memory" in user.text
    assert "PyTorch" in user.text and "-bit vectors" not in user.text


def test_prompts_show_one_expert_kernel_of_another_pattern():
    patterns = {id: example.workload for id, example in load_gallery().items()}
    for workload in load_suite().workloads.values():
        _, user = first_prompt(Task(workload, TARGET))
        shown = [id for id in patterns if f"({id})" in user.text]
        assert len(shown) == 1
        other = patterns[shown[0]]
        assert other.pattern != workload.pattern and not other.heldout


def test_the_guide_has_no_recipes_of_patterns_that_are_tasks():
    assert "## 9 Schedule and memory" in guide() and "## 11 Common mistakes" in guide()
    assert "Recipes" not in guide() and "kernel softmax" not in guide()
    assert len(prompt_version()) == 12


# ---------------------------------------------------------------- direct
def test_direct_hands_in_the_kernel_of_its_one_answer():
    script, bench = Script(Reply(fenced("3"), tokens=70, cost=0.5)), Bench()
    answer = attempt("direct", script, bench)
    assert answer == Answer(KERNEL % "3")
    assert len(script.asked) == 1 and not bench.seen
    assert bench.device.budget.spent.tokens == 70 and bench.device.budget.spent.cost == 0.5
    (step,) = bench.device.trajectory
    assert (step.action, step.tokens) == ("ask", 70)
    assert step.prompt is not None and step.answer is not None
    assert "The kernel must begin" in bench.texts[step.prompt]
    assert bench.texts[step.answer] == fenced("3")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply("I cannot."), "has no kernel"),
        (Reply("", cut=True), "empty, cut at its length limit"),
        (Reply("let me think", cut=True), "no kernel before its length limit"),
    ],
)
def test_an_answer_without_a_kernel_is_unparseable(reply, told):
    answer = attempt("direct", Script(reply), Bench())
    assert answer.kernel is None and answer.status is EvaluationStatus.UNPARSEABLE
    assert told in answer.message


def test_a_kernel_that_was_cut_is_handed_in_and_said_to_be():
    answer = attempt("direct", Script(Reply(fenced("3")[:120], cut=True)), Bench())
    assert answer.kernel is not None and answer.kernel.startswith("kernel softmax_last[")
    assert answer.message == "the kernel is not complete, cut at the answer's length limit"


def test_a_provider_that_fails_is_no_answer():
    with pytest.raises(ProviderError):
        attempt("direct", Script(), Bench())


def test_no_question_without_tokens():
    script, bench = Script(fenced("3")), Bench(tokens=0)
    answer = attempt("direct", script, bench)
    assert answer.kernel is None and "0 tokens are used" in answer.message
    assert not script.asked


# ---------------------------------------------------------------- repair
def test_repair_tells_what_came_of_each_kernel_and_keeps_the_fastest():
    answers = (fenced("no"), "nothing", fenced("wrong"), fenced("7"), fenced("5"), fenced("9"))
    script, bench = Script(*answers), Bench(evaluations=4)
    answer = attempt("repair", script, bench)
    assert answer.kernel == KERNEL % "5"
    assert "all 4 evaluations are used" in answer.message
    assert [text.rpartition("# ")[2][:1] for text in bench.seen] == ["w", "7", "5", "9"]
    told = [messages[-1].text for messages in script.asked]
    assert "axes are missing" in told[1] and "Left: 4 evaluations" in told[1]
    assert "no kernel in your answer" in told[2]
    assert "crashed. died" in told[3] and "3 evaluations" in told[3]
    assert "takes 7 us" in told[4] and "1.50 times as fast as tvm, the one to beat" in told[4]
    assert "best correct kernel so far takes 5 us" in told[5] and "1 evaluation on" in told[5]
    steps = [(s.action, s.status, s.median_us) for s in bench.device.trajectory]
    assert ("check", EvaluationStatus.UNPARSEABLE, None) in steps
    assert ("check", EvaluationStatus.INVALID_IR, None) in steps
    assert ("evaluate", EvaluationStatus.CRASHED, None) in steps
    assert [us for action, _, us in steps if action == "keep"] == [7.0, 5.0]
    assert [s.before_us for s in bench.device.trajectory if s.median_us == 9.0] == [5.0]
    last = bench.device.trajectory[-1]
    assert (last.action, last.reason) == ("stop", "all 4 evaluations are used; 6 questions")
    roles = [message.role for message in script.asked[-1]]
    assert roles == ["system", "user", *["assistant", "user"] * 4]


def test_repair_shows_the_best_kernel_when_it_is_forgotten():
    answers = (fenced("5"), *[fenced("9")] * 6)
    script = Script(*answers)
    attempt("repair", script, Bench(evaluations=7))
    told = [messages[-1].text for messages in script.asked]
    assert [KERNEL % "5" in text for text in told] == [False] * 5 + [True] * 2


def test_repair_ends_with_its_questions():
    def always(_: Sequence[Message]) -> str:
        return fenced("no")

    bench = Bench()
    answer = attempt("repair", always, bench)
    assert answer.message == "all 16 questions are asked"
    assert answer.kernel == KERNEL % "no"  # judged as it is: invalid_ir


def test_repair_without_any_kernel_is_unparseable():
    answer = attempt("repair", lambda _: "no", Bench())
    assert answer.kernel is None and answer.status is EvaluationStatus.UNPARSEABLE


# ---------------------------------------------------------------- models
def test_agents_and_models_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="asks a model") as caught:
        make_agent("direct")
    assert "--model" in caught.value.help
    with pytest.raises(UsageError, match="asks no model"):
        make_agent("tuner", Scripted(lambda _: ""))
    with pytest.raises(UsageError, match="unknown agent 'dirct'") as caught:
        make_agent("dirct")
    assert "did you mean 'direct'?" in caught.value.help


MESSAGES = (Message("system", "s"), Message("user", "u"))
CHAT = {"choices": [{"message": {"content": "b"}, "finish_reason": "length"}]}
PARTS = {"content": [{"type": "text", "text": "c"}], "stop_reason": "end_turn"}


def test_stored_answers_are_given_to_attempts_in_their_order(tmp_path: Path):
    key = prompt_hash(MESSAGES)
    lines = [
        {"prompt_hash": key, "text": "a", "tokens": 3},
        {"custom_id": key, "response": {"body": {**CHAT, "usage": {"prompt_tokens": 2}}}},
        {"custom_id": key, "result": {"message": {**PARTS, "usage": {"output_tokens": 4}}}},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    model = read_answers(path)
    replies = [model.ask(MESSAGES, epoch) for epoch in range(4)]
    assert [r.text for r in replies] == ["a", "b", "c", "c"]
    assert [r.tokens for r in replies] == [3, 2, 4, 4]
    assert [r.cut for r in replies] == [False, True, False, False]
    with pytest.raises(ProviderError, match="no stored answer"):
        model.ask(MESSAGES[1:])


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"a": 1}',
        '{"custom_id": "x"}',
        '{"custom_id": "0123456789012345678901234567890123456789-1", "answer": "a"}',
        '{"prompt_hash": "x", "text": null}',
        '{"prompt_hash": "x", "text": "a", "tokens": 1e999}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_answer_is_named(tmp_path: Path, line: str):
    path = tmp_path / "answers.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=r"answers\.jsonl:1: no answer"):
        read_answers(path)


def test_a_file_without_answers_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_answers(tmp_path / "none")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(UsageError, match="holds no answer"):
        read_answers(tmp_path / "empty")
