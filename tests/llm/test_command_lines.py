"""The real command lines, where they are installed, with a scripted model behind them.

`npm install -g @anthropic-ai/claude-code @openai/codex` makes these tests run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.llm.coding import PRODUCTS
from edgekernelbench.llm.local import search_path
from edgekernelbench.llm.run import run_with_model
from edgekernelbench.records.schema import Spent

from .fakes import NAMES, TASKS, asking, kernel, order
from .server import Message, calls, says, serving

pytestmark = pytest.mark.usefixtures("without_a_device")

SHELLS = {"Bash": "command", "exec_command": "cmd"}
"""What the command lines call their shell, and its argument."""


class Script:
    """A model that writes a kernel, leaves files and a daemon, and evaluates once too often."""

    def __init__(self, evals: int, left: Path) -> None:
        self.heard: list[str] = []
        self._left = left
        self._steps: list[Callable[[list[str]], Message]] = [
            self._write,
            lambda tools: calls(_named(tools, "check")),
            *[lambda tools: calls(_named(tools, "evaluate"), file="kernel.ekir")] * (evals + 1),
        ]

    def __call__(self, body: dict[str, Any]) -> Message:
        tools = [tool["function"]["name"] for tool in body.get("tools", ())]
        if not any(name.endswith("evaluate") for name in tools):
            return says("A title")  # helpers ask too
        results = [str(m["content"]) for m in body["messages"] if m["role"] == "tool"]
        self.heard = results
        return (
            self._steps[len(results)](tools) if len(results) < len(self._steps) else says("Done.")
        )

    def _write(self, tools: list[str]) -> Message:
        shell = next(name for name in tools if name in SHELLS)
        daemon = "env -i setsid sh -c 'sleep 600 </dev/null >/dev/null 2>&1 & echo $!'"
        command = f"""cat > kernel.ekir <<'END'
{kernel(NAMES[0], "fast")}
END
touch $HOME/left; pwd > {self._left}; {daemon} >> {self._left}; env | grep secret"""
        return calls(shell, **{SHELLS[shell]: command})


def _named(tools: list[str], word: str) -> str:
    return next(name for name in tools if name.endswith(word))


@pytest.mark.parametrize(
    ("agent", "product"), [("claude-code", "claude_code"), ("codex", "codex_cli")]
)
def test_one_task_from_prompt_to_the_last_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, product: str
) -> None:
    program = PRODUCTS[product]
    if shutil.which(program.binary, path=search_path()) is None:
        pytest.skip(f"{program.binary} is not on the PATH: npm install -g {program.package}")
    monkeypatch.setenv("LOOPBACK_API_KEY", "secret")
    script = Script(3, tmp_path / "left")
    with serving(lambda _task: "") as server:
        server.converse = script
        asked = order(
            tmp_path / "run",
            agent,
            workloads=TASKS[:1],
            sandbox="local",
            limits=Spent(evaluations=3),
        )
        (record,) = run_with_model(asked, asking(server.url))
    assert record.status is EvaluationStatus.CORRECT, record.message
    assert record.spent.evaluations == 3 and record.isolated is False
    actions = [step.action for step in record.trajectory if step.action != "ask"]
    assert actions == ["start", "check", "evaluate", "evaluate", "evaluate"]
    assert "can be built" in script.heard[1] and "Left: 2 evaluations" in script.heard[2]
    assert "all 3 evaluations are used" in script.heard[5]
    folder, pid = (tmp_path / "left").read_text().split()
    assert not Path(folder).exists() and not psutil.pid_exists(int(pid))
    assert "secret" not in script.heard[0]
    assert not [p for p in psutil.process_iter() if _named_after(p, program.binary, folder)]


def _named_after(process: psutil.Process, binary: str, folder: str) -> bool:
    try:
        return process.name() == binary and process.cwd().startswith(folder)
    except psutil.Error:
        return False
