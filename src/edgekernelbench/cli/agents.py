"""``ekb compare-agents``: agents under one budget on the same tasks, and one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import SUBSETS_HELP, JsonOption, TargetOption, err, out, print_json
from edgekernelbench.cli.display import Display
from edgekernelbench.cli.run import (
    RetryOption,
    agent_options,
    run_alone,
    run_with_a_model,
    tell_unanswered,
)
from edgekernelbench.errors import UsageError
from edgekernelbench.records.schema import Record, Spent

if TYPE_CHECKING:
    from edgekernelbench.runs.order import Order

USUAL = ("tuner", "direct", "repair", "leka", "claude-code")
ALONE = ("tuner", "canonical", "leka-moves")
_BASELINES = ("best", "tvm", "tvm-tuned", "ort", "torch")


def compare_agents(
    out_folder: Annotated[
        Path, typer.Option("--out", help="Folder with a run for each agent.", show_default=False)
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME[:OPTION=VALUE,...]",
            help=f"Repeatable; if left out {', '.join(USUAL)}.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="For agents that ask one.")] = None,
    model_base_url: Annotated[
        str | None, typer.Option(help="Address of the model's server, where it is not the usual.")
    ] = None,
    target: TargetOption = "llvm",
    subset: Annotated[str, typer.Option(help=SUBSETS_HELP)] = "agent",
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="This one in place of a subset; repeatable."),
    ] = None,
    evals: Annotated[int, typer.Option(min=1, help="Evaluations an attempt may use.")] = 8,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens an attempt may use, prompts and answers.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Seconds an attempt may use.")] = None,
    cost: Annotated[float | None, typer.Option(min=0, help="Dollars an attempt may use.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Attempts a task.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the agents' own choices.")] = 0,
    retry: RetryOption = False,
    json: JsonOption = False,
) -> None:
    """Run several agents under one budget and print one table.

    An agent may come several times with other options, as in `--agent leka --agent leka:holes=off`.

    What there is of a run already is kept, so the command goes on where it stopped.
    """
    from edgekernelbench.runs.order import Order
    from edgekernelbench.scores.agents import agent_row
    from edgekernelbench.suite.find import find_subset, find_workload

    sides = tuple(dict.fromkeys(map(side, agent or USUAL)))
    _refuse(sides, model)
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(f"--seconds {seconds}: not a time", "give a positive number of seconds")
    chosen = [find_workload(w) for w in workload] if workload else find_subset(subset)
    limits = Spent(evaluations=evals, seconds=seconds, tokens=tokens, cost=cost)
    rows: list[dict[str, Any]] = []
    for one in sides:
        folder = out_folder / one.folder
        order = Order(
            agent=one.agent,
            target=target,
            workloads=tuple(chosen),
            subset="named" if workload else subset,
            limits=limits,
            epochs=epochs,
            seed=seed,
            folder=folder,
            resume=(folder / "run.json").is_file(),
            options=dict(one.options),
            retry=retry,
        )
        err.print(f"[bold]{escape(one.label)}[/]", soft_wrap=True)
        rows.append({**_row(order, model, model_base_url, agent_row), "agent": one.label})
    if json:
        print_json(rows)
    else:
        out.print(_table(rows))
        out.print(f"runs: {out_folder}/AGENT; `ekb compare` tests two of them", markup=False)
    if all("reason" in row for row in rows):
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Side:
    """An agent with options of its own, in the order of their names."""

    agent: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        told = ",".join(f"{name}={value}" for name, value in self.options)
        return f"{self.agent}:{told}" if told else self.agent

    @property
    def folder(self) -> str:
        return "-".join([self.agent, *(f"{name}-{value}" for name, value in self.options)])


def side(given: str) -> Side:
    """An agent as the command names it: ``NAME`` or ``NAME:OPTION=VALUE,...``.

    Raises:
        UsageError: it is not of that form.
    """
    name, colon, rest = given.partition(":")
    options = agent_options(rest.split(","), f"--agent {given!r}") if colon else {}
    return Side(name, tuple(sorted(options.items())))


def _refuse(sides: Sequence[Side], model: str | None) -> None:
    """What can be known before anything is spent."""
    from edgekernelbench.agents.registry import (
        AGENTS,
        CODING_AGENTS,
        MODEL_AGENTS,
        make_agent,
        require_options,
    )

    for one in sides:
        name = one.agent
        require_options(name, dict(one.options))
        if name in MODEL_AGENTS or name in CODING_AGENTS:
            if model is None:
                raise UsageError(
                    f"the agent {name!r} asks a model",
                    f"name one with --model, or choose with --agent: {', '.join(ALONE)} ask none",
                )
        elif name not in AGENTS:
            make_agent(name)


def _row(order: Order, model: str | None, base_url: str | None, row: Any) -> dict[str, Any]:
    """The agent's row; with a ``reason`` where it could not be run here."""
    from edgekernelbench.agents.registry import AGENTS

    try:
        with Display() as display:
            records: list[Record]
            if order.agent in AGENTS:
                records = run_alone(order, None, display)
            else:
                assert model is not None
                records = run_with_a_model(order, display, model=model, base_url=base_url)
    except UsageError as error:
        err.print(f"{order.agent}: {error}", markup=False, soft_wrap=True)
        return {"agent": order.agent, "reason": str(error)}
    tell_unanswered(records, "--retry-provider-errors")
    return row(order.agent, records)


def _table(rows: list[dict[str, Any]]) -> Table:
    """A column for each agent that ran; the others stand in the caption."""
    ran = [row for row in rows if "reason" not in row]
    seen = {name for row in ran for name in row["fast_at"]}
    absent = [f"{row['agent']} was not run: {row['reason']}" for row in rows if "reason" in row]
    table = Table(box=None, caption="\n".join(absent) or None, caption_justify="left")
    table.add_column("")
    for row in ran:
        table.add_column(row["agent"], justify="right")
    table.add_row("Correct@1", *(_share(row["correct_at"]) for row in ran))
    for name in (name for name in _BASELINES if name in seen):
        table.add_row(f"Fast@1.0 {name}", *(_share(row["fast_at"].get(name)) for row in ran))
    means = [row["geomean_speedup"].get("best") for row in ran]
    table.add_row("geomean best", *("-" if mean is None else f"{mean:.2f}" for mean in means))
    for what in ("tokens", "evaluations", "seconds"):
        values = [row[what] for row in ran]
        table.add_row(what, *("-" if value is None else f"{value:,.0f}" for value in values))
    return table


def _share(share: dict[str, Any] | None) -> str:
    if share is None or share["value"] is None:
        return "-"
    return f"{share['value']:.1%} {share['count']}/{share['n']}"
