"""``ekb run``: an agent works on a subset; records appear as attempts end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from edgekernelbench.cli.common import SUBSETS_HELP, JsonOption, TargetOption, err, out, print_json
from edgekernelbench.cli.display import Display
from edgekernelbench.cli.tables import score_tables
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR, EvaluationStatus
from edgekernelbench.records.schema import Record, Spent

if TYPE_CHECKING:
    from edgekernelbench.agents.model import Model
    from edgekernelbench.runs.order import Order
    from edgekernelbench.runs.run import Observer


RetryOption = Annotated[
    bool,
    typer.Option(
        "--retry-provider-errors",
        help="Also make again what ended as provider_error; the old records stay.",
    ),
]


def run(
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default=False)
    ] = None,
    agent: Annotated[str, typer.Option(help="Which agent; `tuner` needs no model.")] = "tuner",
    target: TargetOption = "llvm",
    subset: Annotated[str, typer.Option(help=SUBSETS_HELP)] = "quick",
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="This one in place of a subset; repeatable."),
    ] = None,
    evals: Annotated[int, typer.Option(min=1, help="Evaluations an attempt may use.")] = 32,
    seconds: Annotated[float | None, typer.Option(help="Seconds an attempt may use.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="For agents that ask one: PROVIDER/MODEL, or replay:FILE of answers."),
    ] = None,
    model_base_url: Annotated[
        str | None, typer.Option(help="Address of the model's server, where it is not the usual.")
    ] = None,
    model_timeout: Annotated[
        int, typer.Option(min=1, help="Seconds for one answer of a model.")
    ] = 600,
    model_retries: Annotated[
        int, typer.Option(min=0, help="Times that a question is repeated when the provider fails.")
    ] = 5,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens an attempt may use, prompts and answers.")
    ] = None,
    cost: Annotated[float | None, typer.Option(min=0, help="Dollars an attempt may use.")] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=32,
            help="Attempts at the same time that ask a model; 8, and 1 of a coding agent.",
            show_default=False,
        ),
    ] = None,
    sandbox: Annotated[
        Literal["docker", "local"],
        typer.Option(help="Where a coding agent works; `local` does not isolate it."),
    ] = "docker",
    agent_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Of the agent (leka: docs/leka.md); repeatable."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Attempts a task.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the agent's own choices.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    retry: RetryOption = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export-prompts", metavar="FILE", help="Only write what would be asked, as a batch."
        ),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A batch's answers to exported prompts.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run an agent over a subset and score it.

    Exit code 1 if no attempt came to a verdict.
    """
    from edgekernelbench.runs.order import Order
    from edgekernelbench.scores.score import score
    from edgekernelbench.suite.find import find_subset, find_workload

    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(f"--seconds {seconds}: not a time", "give a positive number of seconds")
    chosen = [find_workload(w) for w in workload] if workload else find_subset(subset)
    if retry and not resume:
        raise UsageError("only a run that is there has attempts to make again", "add --resume")
    if not chosen:
        raise UsageError(f"subset {subset!r} is empty", "`ekb suite stats` shows what there is")
    order = Order(
        agent=agent,
        target=target,
        workloads=tuple(chosen),
        subset="named" if workload else subset,
        limits=Spent(evaluations=evals, seconds=seconds, tokens=tokens, cost=cost),
        epochs=epochs,
        seed=seed,
        folder=_folder(out_folder, export),
        resume=resume,
        sandbox=sandbox,
        options=agent_options(agent_option or ()),
        retry=retry,
    )
    if export is not None:
        _export(order, model, export)
        return
    stored = _stored(order, model, answers)
    with Display() as display:
        if model is None or stored is not None:
            records = run_alone(order, stored, display)
        else:
            records = run_with_a_model(
                order,
                display,
                model=model,
                base_url=model_base_url,
                samples=samples,
                max_retries=model_retries,
                timeout=model_timeout,
            )
    if display.fresh == 0:
        err.print("nothing was left to do: every attempt of this run had finished")
    if json:
        print_json(score(records))
    else:
        for table in score_tables(score(records)):
            out.print(table)
        again = f"scores again: ekb score {out_folder}"
        out.print(f"records: {out_folder}/records.jsonl   {again}", markup=False)
    tell_unanswered(records, "--resume --retry-provider-errors")
    if all(record.status in OUTSIDE_DENOMINATOR for record in records):
        err.print("no attempt came to a verdict")
        raise typer.Exit(1)


def tell_unanswered(records: Sequence[Record], way_out: str) -> None:
    """How attempts without an answer can be made again, where there are some."""
    failed = sum(record.status is EvaluationStatus.PROVIDER_ERROR for record in records)
    if failed:
        told = f"{failed} of {len(records)} attempts got no answer (provider_error)"
        err.print(f"{told}: {way_out} makes them again", markup=False, soft_wrap=True)


def agent_options(given: Sequence[str], where: str = "") -> dict[str, str]:
    """``NAME=VALUE`` taken apart. ``where``: what the user wrote, if not each as an option.

    Raises:
        UsageError: one is not of that form.
    """
    for one in given:
        if not one.partition("=")[0] or "=" not in one:
            place = where or f"--agent-option {one!r}"
            raise UsageError(f"{place}: {one!r} is no option", "give NAME=VALUE")
    return {one.partition("=")[0]: one.partition("=")[2] for one in given}


REPLAY = "replay:"


def run_alone(order: Order, model: Model | None, display: Display) -> list[Record]:
    """Runs without a provider: an agent that asks nobody, or stored answers."""
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.runs.run import run as run_core

    config = order.config(model)
    with Evaluator(config.target, settings=config.settings) as evaluator:
        return run_core(config, order.folder, order.resume, evaluator, display, order.retry)


def _folder(given: Path | None, export: Path | None) -> Path:
    if given is None and export is None:
        raise UsageError("the run has no folder", "name one with --out")
    return given or Path()


def _export(order: Order, model: str | None, file: Path) -> None:
    from edgekernelbench.runs.batch import export_prompts

    if model is None:
        raise UsageError("no model is named for the batch", "name it with --model PROVIDER/MODEL")
    number = export_prompts(order, model, file)
    out.print(f"{number} prompts: {file}", markup=False, soft_wrap=True)


def _stored(order: Order, model: str | None, answers: Path | None) -> Model | None:
    """The answers that the options name, if they name any."""
    from edgekernelbench.agents.batches import read_answers
    from edgekernelbench.runs.batch import import_answers

    if answers is not None:
        imported = import_answers(order, answers, model)
        for note in imported.notes:
            err.print(f"[yellow]warning:[/] {escape(note)}", soft_wrap=True)
        return imported.model
    if model is not None and model.startswith(REPLAY):
        return read_answers(Path(model.removeprefix(REPLAY)))
    return None


def run_with_a_model(order: Order, observer: Observer, **asking: Any) -> list[Record]:
    """Runs with a provider's model; ``asking`` is for `llm.run.Asking`.

    Raises:
        UsageError: the agent asks no model, or Inspect is not installed.
    """
    from edgekernelbench.agents.registry import CODING_AGENTS, MODEL_AGENTS, make_agent

    if order.agent not in {*MODEL_AGENTS, *CODING_AGENTS}:
        make_agent(order.agent)
        raise UsageError(f"the agent {order.agent!r} asks no model", "leave --model out")
    try:
        from edgekernelbench.llm.run import Asking, run_with_model
    except ImportError as error:
        raise UsageError(
            f"models are asked through Inspect, and {error.name} is not installed",
            "pip install 'edgekernelbench[models]'",
        ) from error
    if order.agent in CODING_AGENTS and order.sandbox == "local":
        err.print(
            "sandbox local: the agent runs as you and reaches your files and network; its records "
            "are marked unisolated"
        )
    return run_with_model(order, Asking(**asking), observer)
