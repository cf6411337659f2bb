"""Coding agents without their command lines: what stands between one, its model and the device."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.agent import AgentState, BridgedToolsSpec
from inspect_ai.model import ChatMessageUser, GenerateConfig, GenerateFilter, get_model
from inspect_ai.tool import ToolError
from inspect_ai.util import sandbox

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.llm import coding, tasks
from edgekernelbench.llm.coding import Product
from edgekernelbench.llm.meter import LAST_TURNS
from edgekernelbench.llm.run import Asking, run_with_model
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.scores.score import score
from edgekernelbench.suite import load_suite

from .fakes import MODEL, NAMES, TASKS, Session, asking, kernel, order
from .server import serving

pytestmark = pytest.mark.usefixtures("without_a_device")

NAME = NAMES[0]
TASK = TASKS[:1]


class Line:
    """What a command line can do: ask its model, call the tools, work in the sandbox."""

    def __init__(self, tools: list[BridgedToolsSpec], ask: GenerateFilter) -> None:
        self._ask: Any = ask
        self.check: Any = tools[0].tools[0]
        self.evaluate: Any = tools[0].tools[1]

    async def ask(self, text: str) -> str:
        message = ChatMessageUser(content=text)
        output = await self._ask(get_model(), [message], [], None, GenerateConfig())
        return output.completion

    async def write(self, word: str, file: str = "kernel.ekir") -> None:
        await sandbox().write_file(file, kernel(NAME, word))


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, work: Callable[[Line], Awaitable[Any]]
) -> None:
    """A command line that does ``work``."""

    def start(tools: list[BridgedToolsSpec], ask: GenerateFilter, version: str) -> Any:
        async def agent(state: AgentState) -> None:
            await work(Line(tools, ask))

        return agent

    program = folder / "program"
    program.write_text("#!/bin/sh\necho program 1.2.3\n")
    program.chmod(0o755)
    product = Product(str(program), "none", start, "port")
    monkeypatch.setitem(coding.PRODUCTS, "claude_code", product)


def record_of(folder: Path, url: str, **more: Any) -> Record:
    options = {"workloads": TASK, "sandbox": "local", "limits": Spent(evaluations=3), **more}
    (record,) = run_with_model(order(folder, "claude-code", **options), asking(url))
    return record


def answer(task: str) -> str:
    return "I see."


def test_the_fastest_correct_kernel_counts_and_no_evaluation_beyond_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def work(line: Line) -> None:
        assert await line.ask("# Task one") == "I see."
        for word in ("slow", "fast", "wrong", "fast"):
            await line.write(word)
            told.append(await line.evaluate())
        told.append(await line.check())

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url)
    assert "takes 20 us" in told[0] and "takes 5 us" in told[1] and "crashed" in told[2]
    assert told[3].startswith("Not evaluated: all 3 evaluations are used.")
    assert "kernel.ekir" in told[3] and "Left: 0 evaluations" in told[3]
    assert "can be built" in told[4], "checks stay free"
    assert record.status is EvaluationStatus.CORRECT and "# fast" in (record.kernel or "")
    assert (record.spent.evaluations, record.spent.tokens) == (3, 15)
    assert record.isolated is False and record.agent_options["sandbox"] == "local"
    actions = [step.action for step in record.trajectory]
    assert actions == ["start", "ask", "evaluate", "evaluate", "evaluate", "check"]
    assert "1.2.3" in record.trajectory[0].reason, "the command line's version"
    assert score([record])["correct_at"]["1"]["count"] == 1


def test_the_workspace_holds_the_task_and_nothing_that_gives_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}

    async def work(line: Line) -> None:
        listed = await sandbox().exec(["find", ".", "-type", "f"])
        for file in listed.stdout.split():
            seen[file.removeprefix("./")] = await sandbox().read_file(file)

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url)
    assert record.status is EvaluationStatus.NO_KERNEL
    assert seen.keys() >= {"TASK.md", "GUIDE.md"} and len(seen) > 20
    assert load_suite().workloads[NAME].header() in seen["TASK.md"]
    shown = {Path(file).stem for file in seen if file.startswith("gallery/")}
    assert shown and not any(load_suite().workloads[name].heldout for name in shown)
    assert not {n for n in shown if load_suite().workloads[n].pattern == TASK[0].pattern}


def test_side_by_side_calls_are_measured_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def work(line: Line) -> None:
        async def one() -> None:
            told.append(await line.evaluate("fast.ekir"))

        await line.write("fast", "fast.ekir")
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(one)

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url)
    assert Session.overlaps == 0 and record.spent.evaluations == 3
    assert sum("Not evaluated" in text for text in told) == 2


def test_a_file_that_is_no_kernel_is_told_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        await sandbox().exec(["sh", "-c", "mkfifo pipe; mkdir folder; printf '\\377' > bytes"])
        await sandbox().write_file("long", "x" * 300_000)
        for file in ("missing.ekir", "pipe", "folder", "bytes", "long"):
            with pytest.raises(ToolError, match=file):
                await line.evaluate(file)

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url)
    assert record.spent.evaluations == 0 and record.message == ""


def test_the_model_is_asked_no_more_when_the_tokens_are_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    async def work(line: Line) -> None:
        await line.write("slow")
        said.extend([await line.ask(f"# Task {number}") for number in range(4)])

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url, limits=Spent(evaluations=3, tokens=30))
    assert said[:2] == ["I see."] * 2 and all("all 30 tokens are used" in s for s in said[2:])
    assert record.spent.tokens == 30 and record.message == "all 30 tokens are used"
    assert record.status is EvaluationStatus.CORRECT, "what the file holds is judged"


def test_a_few_questions_are_left_after_the_last_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        await line.write("fast")
        for _ in range(3):
            await line.evaluate()
        for number in range(50):
            await line.ask(f"# Task {number}")

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url)
    assert record.spent.tokens == 15 * LAST_TURNS
    assert record.message == "all 3 evaluations are used"


def test_time_ends_an_attempt_and_what_it_left_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        await line.write("fast")
        await sandbox().exec(["sleep", "600"])

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url, limits=Spent(seconds=4))
    assert record.message == "the 4 s of this attempt are over" and record.seconds < 120
    assert record.status is EvaluationStatus.CORRECT


def test_a_model_that_does_not_answer_is_the_providers_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        await line.write("fast")
        await line.evaluate()
        with pytest.raises(Exception, match="Error"):
            await line.ask("# Task one")
        await anyio.sleep(600)  # as command lines do that try again and again

    install(monkeypatch, tmp_path, work)
    with serving(answer, lambda _task, _number: "500") as server:
        options = order(tmp_path / "run", "claude-code", workloads=TASK, sandbox="local")
        (record,) = run_with_model(options, asking(server.url, max_retries=0))
    assert record.status is EvaluationStatus.PROVIDER_ERROR and record.kernel is None
    assert score([record])["outside_denominator"] == 1


@pytest.mark.parametrize("wrote", [True, False])
def test_a_command_line_that_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrote: bool
) -> None:
    async def work(line: Line) -> None:
        if wrote:
            await line.write("fast")
        raise RuntimeError("exit code 1")

    install(monkeypatch, tmp_path, work)
    with serving(answer) as server:
        record = record_of(tmp_path / "run", server.url)
    expected = EvaluationStatus.CORRECT if wrote else EvaluationStatus.INFRA_ERROR
    assert record.status is expected and "exit code 1" in record.message


def test_a_kernel_in_the_last_answer_is_better_than_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(line: Line) -> None:
        await line.ask("# Task one")

    install(monkeypatch, tmp_path, work)
    with serving(lambda _task: f"Here:\n```\n{kernel(NAME, 'fast')}\n```") as server:
        assert record_of(tmp_path / "run", server.url).status is EvaluationStatus.CORRECT


# ---------------------------------------------------------------- beforehand
def refused(folder: Path, **more: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        run_with_model(order(folder / "run", **more), Asking(MODEL))
    assert not (folder / "run").exists() and caught.value.help
    return caught.value


def test_a_missing_command_line_is_told_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    error = refused(tmp_path, agent="codex", sandbox="local")
    assert "codex is not on the PATH" in error.message and "@openai/codex" in (error.help or "")


def test_a_missing_docker_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho no daemon >&2\nexit 1\n")
    docker.chmod(0o755)
    for path, told in ((str(tmp_path), "no daemon"), ("/nowhere", "no docker on the PATH")):
        monkeypatch.setenv("PATH", path)
        error = refused(tmp_path, agent="claude-code")
        assert told in error.message and "--sandbox local" in (error.help or "")


def test_a_missing_package_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = refused(tmp_path, agent="codex", sandbox="local")
    assert "inspect_swe" in error.message and "edgekernelbench[coding]" in (error.help or "")


@pytest.mark.parametrize(
    ("given", "told"), [({"cli": "cursor"}, "claude_code"), ({"sandbox": "none"}, "local")]
)
def test_unknown_arguments_of_the_inspect_task(given: dict[str, Any], told: str) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        tasks.coding_agent(**given)
    assert told in str(caught.value.message)
