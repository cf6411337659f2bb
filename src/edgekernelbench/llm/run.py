"""`ekb run` with a language model: one Inspect evaluation, whose samples are the run's attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.model import GenerateConfig

from edgekernelbench.agents.registry import CODING_AGENTS
from edgekernelbench.errors import UsageError
from edgekernelbench.llm.coding import ready_line
from edgekernelbench.llm.provider import one_line, ready_model
from edgekernelbench.llm.tasks import Hosted, kernel_task
from edgekernelbench.records.schema import Record
from edgekernelbench.runs.order import Order
from edgekernelbench.runs.run import Observer

SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked.

    Attributes:
        model: as Inspect names it, PROVIDER/MODEL.
        base_url: of the provider, in place of its usual one.
        samples: attempts that go on at the same time; the device still measures one at a time. None
            is `SAMPLES`, and one for coding agents: what they run would disturb what is measured.
        max_retries: of a question that fails for a reason that may pass.
        timeout: seconds for one answer.
    """

    model: str
    base_url: str | None = None
    samples: int | None = None
    max_retries: int = 5
    timeout: int = 600


def run_with_model(order: Order, asking: Asking, observer: Observer | None = None) -> list[Record]:
    """Works on every attempt that has no record yet; returns all records of the run.

    Inspect's log goes to the folder ``inspect`` in the run's.

    Raises:
        UsageError: the model, or a coding agent's command line, cannot be had; see `runs.run.run`;
            or the evaluation broke.
        KeyboardInterrupt: it was interrupted; attempts that were under way have no record.
    """
    config = GenerateConfig(max_retries=asking.max_retries, attempt_timeout=asking.timeout)
    ready_line(order)
    model = ready_model(asking.model, asking.base_url, config)
    hosted = Hosted(order, observer)
    try:
        attempts = hosted.open(str(model))
        if attempts.todo:
            _evaluate(order, hosted, model, asking)
        return attempts.records()
    finally:
        hosted.close()


def _evaluate(order: Order, hosted: Hosted, model: Any, asking: Asking) -> None:
    logs = inspect_eval(
        kernel_task(order, hosted),
        model=model,
        log_dir=str(order.folder / "inspect"),
        display="none",
        log_level="error",
        max_samples=asking.samples or (1 if order.agent in CODING_AGENTS else SAMPLES),
        fail_on_error=False,
    )
    if not logs or logs[0].status == "cancelled":  # Inspect keeps the signal to itself
        raise KeyboardInterrupt
    (log,) = logs
    broken = [sample for sample in log.samples or () if sample.error is not None]
    if log.status == "error" or broken:
        error = log.error if log.error is not None else broken[0].error
        message = "unknown" if error is None else one_line(error.message)
        raise UsageError(
            f"the evaluation broke off: {message}",
            f"what is finished is kept in {order.folder}; go on with --resume",
        )
