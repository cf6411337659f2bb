"""One prompt, one answer, one kernel: what a model writes without any help."""

from __future__ import annotations

from typing import Any

from edgekernelbench.agents.answers import Extracted, extract_kernel
from edgekernelbench.agents.base import Answer, Device, Refused, Task
from edgekernelbench.agents.model import Model, Reply
from edgekernelbench.agents.prompts import first_prompt, prompt_version
from edgekernelbench.agents.talk import Talk
from edgekernelbench.evaluator.model import EvaluationStatus


class DirectAgent:
    """See the module; ``model`` answers."""

    name = "direct"
    needs_canonical = False

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def options(self) -> dict[str, Any]:
        return {"prompt": prompt_version()}

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        """See `Agent.attempt`."""
        reply = Talk(self._model, device).ask(first_prompt(task))
        if isinstance(reply, Refused):
            return Answer(None, reply.message)
        found = extract_kernel(reply.text, kernel_name(task))
        if found is None:
            return Answer(None, no_kernel_in(reply), EvaluationStatus.UNPARSEABLE)
        return Answer(found.text, cut_short(found, reply))


def kernel_name(task: Task) -> str:
    """Of the kernel in a task's header."""
    return task.workload.header().removeprefix("kernel ").partition("[")[0].partition("(")[0]


def no_kernel_in(reply: Reply) -> str:
    """Why an answer has no kernel, as far as that can be seen."""
    if not reply.text.strip():
        return "the answer is empty" + (", cut at its length limit" if reply.cut else "")
    return "the answer has no kernel" + (" before its length limit" if reply.cut else "")


def cut_short(found: Extracted, reply: Reply) -> str:
    """What is to be said of a kernel that was begun; empty for a complete one."""
    if found.complete:
        return ""
    return "the kernel is not complete" + (", cut at the answer's length limit" * reply.cut)
