"""Inspect tasks: ``edgekernelbench/direct``, ``/repair``, ``/leka`` and ``/coding_agent``.

`ekb run --agent direct` evaluates the very same task. A sample is one attempt at one workload, in
an epoch of its own; its record is appended to the run's folder before it is scored, so that a run
that was killed goes on with what is left.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from edgekernelbench.agents.registry import CODING_AGENTS
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import Evaluator
from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR
from edgekernelbench.llm.coding import ready_line, sandbox_spec
from edgekernelbench.llm.provider import InspectModel
from edgekernelbench.llm.reach import refuse_unreachable
from edgekernelbench.records.read import RECORDS, read_records
from edgekernelbench.records.schema import Record, Spent, record_id
from edgekernelbench.runs.order import Order, Sandbox
from edgekernelbench.runs.run import UNANSWERED, Attempts, Observer, Silent
from edgekernelbench.scores.attempts import is_fast
from edgekernelbench.suite.find import find_subset, find_workload
from edgekernelbench.suite.model import Workload


class Hosted:
    """The run behind an Inspect task: evaluator and records, opened when a sample begins."""

    def __init__(self, order: Order, observer: Observer | None = None) -> None:
        self._order = order
        self._observer = observer or Silent()
        self._evaluator: Evaluator | None = None
        self._attempts: Attempts | None = None

    def open(self, model: str) -> Attempts:
        """The attempts of the run, for a model. Call it from one thread at a time."""
        if self._attempts is None:
            config = self._order.config(InspectModel(model), ready_line(self._order))
            self._evaluator = Evaluator(config.target, settings=config.settings)
            order = self._order
            self._attempts = Attempts.open(
                config,
                order.folder,
                order.resume,
                self._evaluator,
                self._observer,
                order.retry,
            )
            atexit.register(self.close)
        return self._attempts

    def close(self) -> None:
        """Ends all processes and gives the folder free. May be called again."""
        if self._attempts is not None:
            self._attempts.close()
        if self._evaluator is not None:
            self._evaluator.close()
        self._attempts = self._evaluator = None
        atexit.unregister(self.close)


def kernel_task(order: Order, hosted: Hosted) -> Task:
    """An Inspect task of all attempts of an order that have no record yet."""
    done = _done(order)
    samples = [
        Sample(
            id=f"{workload.id}#{epoch}",
            input=workload.statement(),
            metadata={"workload": workload.id, "epoch": epoch},
        )
        for epoch in range(order.epochs)
        for workload in order.workloads
        if record_id(workload.id, order.target, order.agent, epoch) not in done
    ]
    by_id = {workload.id: workload for workload in order.workloads}
    coding = order.agent in CODING_AGENTS
    return Task(
        dataset=MemoryDataset(samples, name=order.subset),
        solver=attempt(hosted, by_id),
        scorer=verdict(),
        name=f"edgekernelbench/{order.agent}",
        sandbox=sandbox_spec(order.sandbox) if coding else None,
        fail_on_error=False,
    )


def _done(order: Order) -> set[str]:
    path = order.folder / RECORDS
    if not order.resume or not path.exists():
        return set()
    again = UNANSWERED if order.retry else frozenset()
    return {r.id for r in read_records(path).records if r.status not in again}


@solver
def attempt(hosted: Hosted, workloads: dict[str, Workload]) -> Solver:
    """Lets the agent work in a thread of its own; leaves the record's main facts as metadata."""
    opening = anyio.Lock()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = str(get_model())
        async with opening:
            attempts = await anyio.to_thread.run_sync(hosted.open, model)
        workload, epoch = workloads[state.metadata["workload"]], state.metadata["epoch"]
        stopped = threading.Event()
        try:
            record = await anyio.to_thread.run_sync(
                attempts.work, workload, epoch, stopped, abandon_on_cancel=True
            )
        except anyio.get_cancelled_exc_class():
            stopped.set()
            raise
        state.metadata["verdict"] = facts(record)
        state.output = ModelOutput.from_content(model, record.kernel or record.message)
        state.completed = True
        return state

    return solve


BASELINES = ("best", "tvm", "tvm-tuned", "ort")


def facts(record: Record) -> dict[str, Any]:
    """Of a record, what the score and the log show."""
    evaluation = record.evaluation
    performance = None if evaluation is None else evaluation.performance
    return {
        "id": record.id,
        "status": record.status.value,
        "message": record.message or ("" if evaluation is None else evaluation.message),
        "counted": record.status not in OUTSIDE_DENOMINATOR,
        "median_us": None if performance is None else performance.median_us,
        "fast": {name: is_fast(record, name, 1.0) for name in BASELINES},
        "spent": record.spent.model_dump(),
    }


@scorer(metrics={"*": [mean(), stderr()]})
def verdict() -> Scorer:
    """``correct`` and ``fast_NAME`` (at least as fast as a baseline, by the lower bound): their
    means are Correct@1 and Fast@1.0. An attempt that says nothing of the kernel has no score."""

    async def score(state: TaskState, target: Target) -> Score | None:
        told = state.metadata.get("verdict")
        if told is None or not told["counted"]:
            return None
        value: dict[str, float] = {"correct": float(told["status"] == "correct")}
        value |= {f"fast_{name}": float(fast) for name, fast in told["fast"].items()}
        explanation = f"{told['status']}: {told['message']}".removesuffix(": ")
        return Score(value=value, answer=state.output.completion, explanation=explanation)

    return score


# ---------------------------------------------------------------- by name
def _by_name(agent: str, evals: int | None, given: dict[str, Any]) -> Task:
    """The task that `inspect eval` asks for.

    Raises:
        PrerequisiteError: the same as for `ekb run`, in the form that Inspect prints as one line.
    """
    try:
        _refuse_unknown(given)
        _refuse_silent_model()
        return _ordered(agent, evals, given)
    except UsageError as error:
        raise PrerequisiteError(f"{error.message}\n{error.help}".rstrip()) from error


def _refuse_unknown(given: dict[str, Any]) -> None:
    """Inspect itself would only warn, and spend a run on the defaults."""
    unknown = given["unknown"].keys() - {"model"}  # which Inspect passes to every task
    if unknown:
        known = ", ".join(sorted(given.keys() - {"unknown", "names"}))
        raise UsageError(f"unknown task argument {min(unknown)!r}", f"-T takes: {known}")


def _refuse_silent_model() -> None:
    """A model that is chosen already is asked whether it is there."""
    with contextlib.suppress(ValueError):  # none is chosen
        model = get_model()
        refuse_unreachable(str(model), model.api)


def _ordered(agent: str, evals: int | None, given: dict[str, Any]) -> Task:
    workload, subset = given["workload"], given["subset"]
    names = [workload] if isinstance(workload, str) else list(workload or ())
    chosen = [find_workload(name) for name in names] if names else find_subset(subset)
    folder = Path(given["out"] or f"runs/{agent}-{time.strftime('%Y%m%d-%H%M%S')}")
    order = Order(
        agent=agent,
        target=given["target"],
        workloads=tuple(chosen),
        subset="named" if names else subset,
        limits=Spent(evaluations=evals, tokens=given["tokens"], seconds=given["seconds"]),
        epochs=given["epochs"],
        seed=given["seed"],
        folder=folder,
        resume=given["resume"],
        retry=given["retry_provider_errors"],
        sandbox=given.get("sandbox", "docker"),
        options={name: str(value) for name, value in (given.get("options") or {}).items()},
    )
    ready_line(order)
    return kernel_task(order, Hosted(order))


@task
def direct(
    target: str = "llvm",
    subset: str = "quick",
    workload: str | list[str] | None = None,
    epochs: int = 1,
    tokens: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    out: str | None = None,
    resume: bool = False,
    retry_provider_errors: bool = False,
    **unknown: Any,
) -> Task:
    """One prompt, one kernel. ``epochs`` are attempts a workload; ``out`` is the run's folder
    (``runs/direct-TIME`` if left out), ``resume`` goes on with the run in it,
    ``retry_provider_errors`` also where the provider had failed."""
    return _by_name("direct", None, locals())


@task
def repair(
    target: str = "llvm",
    subset: str = "quick",
    workload: str | list[str] | None = None,
    epochs: int = 1,
    evals: int = 8,
    tokens: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    out: str | None = None,
    resume: bool = False,
    retry_provider_errors: bool = False,
    **unknown: Any,
) -> Task:
    """Diagnostics and measured results go back to the model, for up to ``evals`` evaluations an
    attempt. See `direct` for the rest."""
    return _by_name("repair", evals, locals())


@task
def leka(
    target: str = "llvm",
    subset: str = "quick",
    workload: str | list[str] | None = None,
    epochs: int = 1,
    evals: int = 8,
    tokens: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    out: str | None = None,
    resume: bool = False,
    retry_provider_errors: bool = False,
    options: dict[str, str] | None = None,
    **unknown: Any,
) -> Task:
    """One layer of a kernel is revised at a time; ``options`` as in docs/leka.md. See `repair` for
    the rest."""
    return _by_name("leka", evals, locals())


@task
def coding_agent(
    cli: Literal["claude_code", "codex_cli"] = "claude_code",
    target: str = "llvm",
    subset: str = "quick",
    workload: str | list[str] | None = None,
    epochs: int = 1,
    evals: int = 8,
    tokens: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    out: str | None = None,
    resume: bool = False,
    retry_provider_errors: bool = False,
    sandbox: Sandbox = "docker",
    **unknown: Any,
) -> Task:
    """A coding agent's command line in a sandbox, with the tools ``check`` and ``evaluate``. See
    `repair` for the rest."""
    names = {line: name for name, line in CODING_AGENTS.items()}
    if cli not in names:
        raise PrerequisiteError(f"unknown command line {cli!r}; cli is one of: {', '.join(names)}")
    if sandbox not in ("docker", "local"):
        raise PrerequisiteError(f"unknown sandbox {sandbox!r}; sandbox is docker or local")
    return _by_name(names[cli], evals, locals())
