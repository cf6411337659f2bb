"""An external coding agent (Claude Code, Codex CLI) in a workspace, with two tools.

It sees the task statement, the IR guide and the gallery without its own pattern and without what is
held out; neither this package nor any truth. ``check`` is free, ``evaluate`` counts. Who runs the
command line, and where, is behind `CommandLine`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from edgekernelbench.agents.answers import extract_kernel
from edgekernelbench.agents.base import Answer, Budget, Device, Refused, Task
from edgekernelbench.agents.direct import kernel_name
from edgekernelbench.agents.prompts import (
    BASELINES,
    budget_text,
    guide,
    prompt_version,
    render,
    target_facts,
)
from edgekernelbench.agents.repair import diagnostics_text, speedup_lines
from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.suite.gallery import examples_for, shown_for

KERNEL_FILE = "kernel.ekir"
SERVER = "kernel"
MAX_KERNEL = 256 << 10
_TEMPLATES = ("coding.md.j2", "outcome.md.j2")


@dataclass(frozen=True, slots=True)
class Brief:
    """What a command line is given: files by their path in the workspace, and what to do."""

    files: Mapping[str, str]
    prompt: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command line's work ended.

    Attributes:
        kernel: what `KERNEL_FILE` holds; None if it is not there.
        answer: what was said last.
        why: it ended, where that was not its own decision.
        failure: what broke; empty if nothing did.
    """

    kernel: str | None
    answer: str = ""
    why: str = ""
    failure: str = ""


class CommandLine(Protocol):
    """Runs a coding agent's command line in a sandbox."""

    @property
    def name(self) -> str: ...
    @property
    def sandbox(self) -> str: ...
    @property
    def turns(self) -> int: ...

    def work(self, brief: Brief, bench: Workbench) -> Ending:
        """Lets it work until it stops, or until the budget of the bench is spent.

        Raises:
            ProviderError: the model behind it gave no answer.
        """
        ...


class AgentBroke(Exception):
    """The command line failed before there was any kernel."""


class CodingAgent:
    """See the module.

    Args:
        name: in records.
        command_line: what works.
    """

    needs_canonical = False

    def __init__(self, name: str, command_line: CommandLine) -> None:
        self.name = name
        self._line = command_line

    @property
    def options(self) -> dict[str, Any]:
        return {
            "prompt": prompt_version(_TEMPLATES),
            "cli": self._line.name,
            "sandbox": self._line.sandbox,
            "turns": self._line.turns,
        }

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        """See `Agent.attempt`.

        Raises:
            AgentBroke: the command line failed, and left no kernel.
        """
        bench = Workbench(device)
        ending = self._line.work(brief_of(task, device.budget), bench)
        kernel = bench.best or ending.kernel or bench.last or _said(ending.answer, task)
        if kernel is None and ending.failure:
            raise AgentBroke(ending.failure)
        return Answer(kernel, ending.failure or ending.why)


def _said(answer: str, task: Task) -> str | None:
    found = extract_kernel(answer, kernel_name(task))
    return None if found is None else found.text


def brief_of(task: Task, budget: Budget) -> Brief:
    """Workspace and prompt of a task."""
    target = task.target
    examples = examples_for(task.workload)
    files = {f"gallery/{example.workload.id}.ekir": example.kernel for example in examples}
    files |= {"TASK.md": task.workload.statement(), "GUIDE.md": guide()}
    prompt = render(
        "coding.md.j2",
        examples=len(examples),
        nearest=shown_for(task.workload).workload.id,
        target=target_facts(target),
        baselines=BASELINES[target.backend],
        server=SERVER,
        budget=budget_text(budget),
        file=KERNEL_FILE,
        section=target.section_names[1],
    )
    return Brief(files, prompt)


class Workbench:
    """What the two tools do, and what came of it. A command line may call them side by side; the
    budget sees one call at a time.

    Attributes:
        device: of the attempt.
        best: the fastest correct kernel so far.
        last: the kernel that was evaluated last.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.best: str | None = None
        self.last: str | None = None
        self._best_us = float("inf")
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether a call is going on; it may be waiting for the device."""
        return self._lock.locked()

    def check(self, kernel: str) -> str:
        """What is wrong with a kernel, as far as that is known without running it."""
        with self._lock:
            spent = self.device.budget.all_spent()
            if spent is not None:
                return self._told(status="not checked", message=spent)
            found = self.device.check(kernel)
            return self._told(
                status="" if found.status is None else found.status.value,
                message=found.message,
                diagnostics="" if found.status is None else diagnostics_text(found.diagnostics),
            )

    def evaluate(self, kernel: str) -> str:
        """What a kernel does on the device, or why it is not evaluated any more."""
        with self._lock:
            result = self.device.evaluate(kernel)
            if isinstance(result, Refused):
                return self._told(refused=result.message.partition(";")[0])
            self.last = kernel
            if result.performance is not None and result.performance.median_us < self._best_us:
                self.best, self._best_us = kernel, result.performance.median_us
            return self._judged(result)

    def _judged(self, result: Evaluation) -> str:
        performance = result.performance
        if performance is None:
            return self._told(
                status=result.status.value,
                message=result.message,
                diagnostics=diagnostics_text(result.diagnostics),
            )
        return self._told(
            status=result.status.value,
            median_us=f"{performance.median_us:.4g}",
            low_us=f"{performance.low_us:.4g}",
            high_us=f"{performance.high_us:.4g}",
            speedups=tuple(speedup_lines(result)),
        )

    def _told(self, **values: Any) -> str:
        budget = budget_text(self.device.budget)
        nothing = {"refused": "", "status": "", "message": "", "diagnostics": ""}
        best = None if self.best is None else f"{self._best_us:.4g}"
        left = f"Left: {budget}" if budget else "The budget is not limited"
        fixed = {"file": KERNEL_FILE, "best_us": best, "left": left}
        return render("outcome.md.j2", **fixed, **{**nothing, **values})
