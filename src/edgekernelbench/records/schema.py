"""What one attempt leaves behind: `Record`, version 1, one JSON object a line."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.targets.profiles.places import is_path

RECORD_VERSION = 1


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TaskFacts(_Stored):
    """The task as the suite describes it, so that scores need no suite.

    ``backend``: of the target; records of the first releases do not tell.
    """

    workload: str
    pattern: str
    level: int
    family: str
    domain: str
    dtype: str
    tolerance: str
    tolerance_version: int
    target: str
    backend: str | None = None

    @field_validator("target")
    @classmethod
    def _is_known_by_name(cls, target: str) -> str:
        """A path would let whoever wrote the record say what the device is that judges it again."""
        if is_path(target):
            raise ValueError(f"a target is told by its name, not by a file: {target[:200]!r}")
        return target


class Spent(_Stored):
    """What an attempt used up, or may use. None: not limited, or not known.

    Attributes:
        tokens: of prompts and answers, as the provider counts them.
        seconds: without the wait for the device.
        cost: US dollars.
    """

    evaluations: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


class Step(_Stored):
    """One decision of an agent and what came of it.

    Attributes:
        action: ``ask``, ``check``, ``evaluate``, ``propose``, ``keep``, ``stop``, ...
        layer: ``compute``, ``schedule``, ``memory`` or None.
        reason: why, in the agent's words.
        status: the evaluation's status, for an evaluation.
        median_us: measured time, for an evaluation that was correct.
        kernel_hash: the candidate; its text is in the run's ``kernels`` folder.
        seconds: since the attempt began.
        prompt, answer: of a question to a model; keys of texts in the run's ``texts`` folder.
        tokens: that the question and its answer took.
        patch: what was changed of the kernel before it; key of a text, as ``prompt``.
        before_us: the best time before this evaluation, for its effect.
    """

    action: str
    seconds: float
    layer: Literal["compute", "schedule", "memory"] | None = None
    reason: str = ""
    status: EvaluationStatus | None = None
    median_us: float | None = None
    kernel_hash: str | None = None
    prompt: str | None = None
    answer: str | None = None
    tokens: int | None = None
    patch: str | None = None
    before_us: float | None = None


class Record(_Stored):
    """One attempt: a trajectory of one agent on one task under one budget.

    ``status`` is the verdict on the kernel that the agent kept last. That kernel was evaluated
    anew by the harness, with inputs drawn after the agent had ended and outside its budget;
    ``evaluation`` is that evaluation, and None only when there was no kernel to evaluate.
    ``agent_options`` has ``prompt``, the version of what a model was told, where one was asked.
    """

    version: Literal[1] = RECORD_VERSION
    id: str
    run: str
    task: TaskFacts
    agent: str
    agent_options: dict[str, Any] = {}
    model: str | None = None
    epoch: int
    seed: int
    status: EvaluationStatus
    kernel: str | None
    kernel_hash: str | None
    evaluation: Evaluation | None
    limits: Spent
    spent: Spent
    trajectory: tuple[Step, ...] = ()
    isolated: bool = True
    message: str = ""
    started: str
    seconds: float
    versions: dict[str, str]

    @model_validator(mode="after")
    def _is_the_attempt_that_it_names(self) -> Record:
        own = record_id(self.task.workload, self.task.target, self.agent, self.epoch)
        if self.id != own or self.epoch < 0:
            raise ValueError(f"the id {self.id[:200]!r} is not that of its attempt, {own[:200]!r}")
        return self

    @model_validator(mode="after")
    def _status_matches_evaluation(self) -> Record:
        if self.evaluation is not None and self.evaluation.status is not self.status:
            raise ValueError("status of the record and of its evaluation differ")
        if self.evaluation is None and self.status is EvaluationStatus.CORRECT:
            raise ValueError("a correct record needs its evaluation")
        return self


def record_id(workload: str, target: str, agent: str, epoch: int) -> str:
    """Names an attempt within a run; a resumed run skips the ids it finds finished."""
    return f"{workload}|{target}|{agent}|{epoch}"
