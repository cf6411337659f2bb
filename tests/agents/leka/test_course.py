"""Whole attempts: a script of good, illegal, wrong and slow patches, and the tuner's moves."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from edgekernelbench.agents.base import Answer
from edgekernelbench.agents.leka import Leka, LekaMoves, Options
from edgekernelbench.agents.model import Message, Scripted
from edgekernelbench.agents.registry import make_agent
from edgekernelbench.agents.tuner import Tuner
from edgekernelbench.analysis.report import NoReport, ReportOptions, report
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.surface import Kernel
from tests.agents.leka.support import SOFTMAX, Bench, block, pretended_us, scripted, task

GOOD = [
    f"schedule for cpu {{ loops y (parallel m by {n}, m, vectorize c)\n place mx, e, s in y.m0 }}"
    for n in (1, 2, 3, 4, 6, 8, 12, 16)
]
ILLEGAL = [
    "schedule for cpu { loops y (parallel q) }",
    "schedule for cpu { loops z (m) }",
    "schedule for cpu { loops y (m by 0, m, c) }",
    "schedule for cpu { loops y (m) }",
    "schedule for cpu { place mx in y.k }",
    "schedule for cpu { loops y (m, , c) }",
    "memory for cpu { layout y [m, c] -> [c, m] }",
    "memory for cpu { layout nothing [a] -> [a] }",
]
WRONG = [
    SOFTMAX.replace(before, after)
    for before, after in (
        ("/ s[m]", "/ s[m] + 0.1"),
        ("/ s[m]", "* s[m]"),
        ("/ s[m]", "/ mx[m]"),
        ("sum[c", "max[c"),
        ("- mx[m]", "* mx[m]"),
        ("exp(", "tanh("),
        ("(e[m, c])", "(e[m, c] * e[m, c])"),
        ("e[m, c] / s", "x[m, c] / s"),
    )
]
SLOW = [
    f"schedule for cpu {{ loops y (c by {n}, m, c)\n loops e (c, m)\n loops mx (c, m)\n "
    "loops s (c, m) }"
    for n in range(1, 9)
]
KINDS = {"good": GOOD, "illegal": ILLEGAL, "wrong": WRONG, "slow": SLOW}


_SLOW_US = 4000.0
"""More than four times what any other kernel is said to take."""


def _us(text: str) -> float:
    """Of a call; one without cores that takes columns first is slow."""
    quick = "parallel" in text or "schedule" not in text
    return pretended_us(text) + (0 if quick else _SLOW_US)


def _answers(seed: int) -> list[str]:
    """Answers of a quarter good, illegal, wrong and slow patches each, shuffled."""
    parts = [part for kind in KINDS.values() for part in kind]
    random.Random(seed).shuffle(parts)
    return [block(SOFTMAX, "begin"), *(block(part) for part in parts)]


def _kernel(patch: str) -> str:
    """What a patch makes of the program that the script begins with, tried by itself."""
    body = patch if patch.startswith("compute") else f"{SOFTMAX}\n{patch}"
    return f"{task().workload.header()} {{\n{body}\n}}"


def _kind(text: str) -> str:
    """What a kernel is, by other means than LEKA's: a draw that it does not make, and the device's
    time."""
    small = task().workload.small()
    program = check_text(text, small.bindings).program
    if program is None or isinstance(report(text, ReportOptions(target=task().target)), NoReport):
        return "illegal"
    inputs = small.inputs(77)
    outputs = interpret(program, inputs, "declared")
    if not small.compare(outputs, small.truth(inputs, cache=False)).passed:
        return "wrong"
    return "slow" if _us(print_kernel(_parsed(text))) > _SLOW_US else "good"


def _parsed(text: str) -> Kernel:
    kernel = parse(text).kernel
    assert kernel is not None
    return kernel


def _exhaustive() -> str:
    """The fastest right kernel of all that the script's patches make."""
    texts = [_kernel(patch) for patch in ("", *itertools.chain.from_iterable(KINDS.values()))]
    right = [text for text in texts if _kind(text) in ("good", "slow")]
    return min((print_kernel(_parsed(text)) for text in right), key=_us)


def _attempt(seed: int, evaluations: int = 30, **options) -> tuple[Answer, Bench, list]:
    bench = Bench(evaluations, _us)
    device = bench.device()
    agent = Leka(scripted(_answers(seed)), Options(rounds=60, patience=60, **options))
    return agent.attempt(task(), device, seed), bench, device.trajectory


@pytest.mark.parametrize(("kind", "patches"), KINDS.items(), ids=KINDS)
def test_the_script_has_a_quarter_of_each_kind(kind: str, patches: list[str]) -> None:
    assert len(set(patches)) == 8
    assert {patch: _kind(_kernel(patch)) for patch in patches} == dict.fromkeys(patches, kind)


@pytest.mark.parametrize("seed", range(3))
def test_it_ends_with_the_best_kernel_of_the_script(seed: int) -> None:
    answer, bench, trajectory = _attempt(seed)
    assert answer.kernel == _exhaustive()
    assert len(bench.measured) <= 30 and len(set(bench.measured)) == len(bench.measured)
    assert {_kind(text) for text in bench.measured} == {"good"}
    again, other, _ = _attempt(seed)
    assert again == answer and other.measured == bench.measured
    assert trajectory[-1].action == "stop" and "refused" in trajectory[-1].reason


@pytest.mark.parametrize("evaluations", [1, 2, 5])
def test_a_small_budget_is_kept_to_and_used_up(evaluations: int) -> None:
    answer, bench, _ = _attempt(1, evaluations)
    assert len(bench.measured) == evaluations
    assert answer.kernel == min(bench.measured, key=_us)


def test_illegal_wrong_and_slow_patches_never_reach_the_device() -> None:
    _, bench, trajectory = _attempt(0)
    stopped = [step.reason for step in trajectory if step.action == "screen"]
    assert sum("wrong results" in reason for reason in stopped) == 8
    assert sum(reason.startswith("error") for reason in stopped) == 8
    assert sum("estimated at" in reason for reason in stopped) == 8
    assert len(bench.measured) == 1 + len(GOOD)


def test_without_a_screen_they_do() -> None:
    _, bench, _ = _attempt(0, screen=False)
    assert len(bench.measured) > 1 + len(GOOD)


def test_without_the_report_the_model_sees_none() -> None:
    for shown in (True, False):
        asked: list[str] = []

        def answer(messages, asked: list[str] = asked) -> str:
            asked.append(messages[-1].text)
            return block(SOFTMAX)

        Leka(Scripted(answer), Options(rounds=2, report=shown)).attempt(
            task(), Bench(9).device(), 0
        )
        assert ("What is known of it" in asked[1]) == ("measured: " in asked[1]) == shown


@pytest.mark.parametrize("switch", ["layers", "screen", "holes", "archive", "report"])
def test_each_ablation_is_in_the_record(switch: str) -> None:
    usual, off = Options.of({}).as_dict(), Options.of({switch: "off"}).as_dict()
    assert usual[switch] is True and off == {**usual, switch: False}
    agent = make_agent("leka", scripted([]), options={switch: "off"})
    assert agent.options.items() >= off.items()


def test_every_step_says_what_and_why() -> None:
    _, _, trajectory = _attempt(0)
    first = next(step for step in trajectory if step.action == "evaluate")
    assert first.layer == "compute" and first.patch and first.before_us is None
    later = [step for step in trajectory if step.action == "evaluate"][1:]
    assert all(step.layer == "schedule" and step.patch and step.before_us for step in later)
    kept = [step.median_us for step in trajectory if step.action == "keep"]
    assert kept == sorted(kept, reverse=True)


def test_holes_cost_evaluations_and_their_best_is_kept() -> None:
    holes = GOOD[0].replace("by 1", "by ?{1, 2, 3, 4}")
    bench = Bench(20)
    agent = Leka(scripted([block(SOFTMAX), block(holes)]), Options(rounds=2))
    answer = agent.attempt(task(), bench.device(), 0)
    assert answer.kernel == min(bench.measured, key=pretended_us)
    assert len(bench.measured) == 5 and "?{" not in (answer.kernel or "")
    plain = Bench(20)
    agent = Leka(scripted([block(SOFTMAX), block(holes)]), Options(rounds=2, holes=False))
    agent.attempt(task(), plain.device(), 0)
    assert len(plain.measured) == 2


def test_another_compute_form_is_taken_up_when_one_is_dry() -> None:
    other = SOFTMAX.replace("e[m, c] / s[m]", "exp(x[m, c] - mx[m]) / s[m]")
    times = {"worse": 300.0, "base": 200.0, "tiled": 50.0}

    def time(text: str) -> float:
        if "exp(x[m, c] - mx[m]) / s[m]" in text:
            return times["tiled"] if "parallel" in text else times["worse"]
        return times["base"]

    answers = [block(SOFTMAX), *[""] * 6, block(GOOD[3])]
    answers[2] = block(other)
    bench = Bench(20, time)
    device = bench.device()
    agent = Leka(scripted(answers), Options(rounds=40, patience=2))
    answer = agent.attempt(task(), device, 0)
    assert any(step.action == "back" for step in device.trajectory)
    assert answer.kernel is not None and time(answer.kernel) == 50.0
    bench = Bench(20, time)
    alone = Leka(scripted(answers), Options(rounds=40, patience=2, archive=False))
    answer = alone.attempt(task(), bench.device(), 0)
    assert answer.kernel is not None and time(answer.kernel) == 200.0


@pytest.mark.parametrize("answers", [[], ["sorry"] * 9, [block("kernel (")] * 9, ["\0" * 999] * 9])
def test_bad_answers_end_in_no_kernel(answers: list[str]) -> None:
    bench = Bench(8)
    answer = Leka(scripted(answers)).attempt(task(), bench.device(), 0)
    assert answer.kernel is None and answer.status is EvaluationStatus.NO_KERNEL
    assert not bench.measured


def test_an_answer_that_does_not_parse_is_told_why_and_not_asked_for_ever() -> None:
    asked: list[str] = []
    spoilt = task().workload.canonical().replace("compute {", "comput {", 1)

    def answer(messages: Sequence[Message]) -> str:
        asked.append(messages[-1].text)
        return f"```\n{spoilt}\n```"

    device = Bench(8, _us).device()
    ended = Leka(Scripted(answer), Options()).attempt(task(), device, 0)
    assert ended.kernel is None and "held no layer" in ended.message
    assert len(asked) == 6
    assert "E121" not in asked[0] and "E121" in asked[1] and "comput" in asked[1]
    assert any("E121" in step.reason for step in device.trajectory if step.action == "screen")


def test_notes_pass_to_the_next_task_only_if_wished() -> None:
    for learn in (True, False):
        asked: list[str] = []

        def answer(messages, asked: list[str] = asked) -> str:
            asked.append(messages[-1].text)
            return [block(SOFTMAX), *(block(g, f"rows of {n}") for n, g in enumerate(GOOD))][
                (len(asked) - 1) % 9
            ]

        agent = Leka(Scripted(answer), Options(rounds=9, patience=9, learn=learn))
        agent.attempt(task(), Bench(20).device(), 0)
        began = len(asked)
        agent.attempt(task(), Bench(20).device(), 0)
        assert ("helped in other tasks" in asked[began]) == learn


@pytest.mark.parametrize("workload", ["matmul_nt__01", "lstm_sequence__01"])
def test_the_tuners_moves_measure_what_the_tuner_measures(workload: str) -> None:
    through, alone = Bench(12), Bench(12)
    mine = LekaMoves().attempt(task(workload), through.device(), 3)
    tuned = Tuner().attempt(task(workload), alone.device(), 3)
    assert set(through.measured) == set(alone.measured) and mine.kernel == tuned.kernel
    assert len(through.measured) == 12


def test_a_whole_kernel_at_a_time() -> None:
    header = task().workload.header()
    whole = [f"{header} {{\n{SOFTMAX}\n{good}\n}}" for good in itertools.islice(GOOD, 3)]
    bench = Bench(8)
    agent = Leka(scripted([block(text) for text in whole]), Options(layers=False, rounds=3))
    answer = agent.attempt(task(), bench.device(), 0)
    assert len(bench.measured) == 3 and answer.kernel == min(bench.measured, key=pretended_us)


def test_a_profile_costs_an_evaluation_and_is_taken_once_for_a_kernel() -> None:
    for evaluations, profiles in ((3, 1), (2, 0), (1, 0), (9, 1)):
        bench = Bench(evaluations)
        device = bench.device()
        answers = [block(SOFTMAX), *[block(GOOD[0])] * 3]
        agent = Leka(scripted(answers), Options(rounds=4, profile=True, patience=9))
        agent.attempt(task(), device, 0)
        assert len(bench.profiled) == len(set(bench.profiled)) and len(bench.profiled) <= profiles
        spent = device.budget.spent.evaluations
        assert spent == len(bench.measured) + len(bench.profiled)
        assert spent is not None and spent <= evaluations
        assert bool(bench.profiled) == (profiles > 0)
        steps = [step for step in device.trajectory if step.action == "profile"]
        assert [step.reason for step in steps] == ["no"] * len(bench.profiled)


def test_no_profile_unless_wished_or_of_a_single_nest() -> None:
    bench = Bench(9)
    Leka(scripted([block(SOFTMAX)]), Options(rounds=3)).attempt(task(), bench.device(), 0)
    assert not bench.profiled
    whole = f"{SOFTMAX}\n{GOOD[0]}"
    header = task().workload.header()
    bench = Bench(9)
    agent = Leka(
        scripted([block(f"{header} {{\n{whole}\n}}")]),
        Options(rounds=3, profile=True, layers=False),
    )
    agent.attempt(task(), bench.device(), 0)
    assert len(bench.measured) == 1 and not bench.profiled
