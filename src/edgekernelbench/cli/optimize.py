"""``ekb optimize``: an ONNX model becomes one fast kernel and a bundle."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from edgekernelbench.cli.common import JsonOption, TargetOption, err, microseconds, out, print_json
from edgekernelbench.cli.display import Display
from edgekernelbench.cli.run import agent_options, run_with_a_model
from edgekernelbench.cli.suiteadd import range_of, shape_of, tolerance_class

if TYPE_CHECKING:
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.optimize.report import Report
    from edgekernelbench.records.schema import Record
    from edgekernelbench.runs.order import Order
    from edgekernelbench.runs.run import Observer

_INTERRUPTED = 130


def optimize(
    model: Annotated[Path, typer.Argument(help="An ONNX model (.onnx).")],
    folder: Annotated[
        Path, typer.Option("-o", "--out", help="Of the result; the same command goes on there.")
    ],
    target: TargetOption = "llvm",
    agent: Annotated[str, typer.Option(help="Which agent; `tuner` needs no model.")] = "tuner",
    budget: Annotated[
        int, typer.Option(help="Evaluations of all parts of the model together.")
    ] = 100,
    language_model: Annotated[
        str | None, typer.Option("--model", help="For agents that ask one: PROVIDER/MODEL.")
    ] = None,
    model_base_url: Annotated[
        str | None, typer.Option(help="Address of the model's server, where it is not the usual.")
    ] = None,
    agent_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Of the agent (leka: docs/leka.md); repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the agent's own choices.")] = 0,
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=1,3,224,224", help="Shape of an input; repeatable."),
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="INPUT=LOW,HIGH", help="Values of an input; repeatable."),
    ] = None,
    tolerance: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Where that of the model does not fit.")
    ] = None,
    bundle: Annotated[
        bool, typer.Option(help="Make a bundle of the result, as `ekb deploy` does.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Make a whole model fast: cut it into tasks, optimise those that matter, join the winners.

    Exit code 130 if it was interrupted, with a result or without.
    """
    from edgekernelbench.optimize.optimise import optimise
    from edgekernelbench.optimize.request import Request

    request = Request(
        model=model,
        target=target,
        agent=agent,
        budget=budget,
        folder=folder,
        shapes=dict(shape_of(text) for text in shape or []),
        ranges=dict(range_of(text) for text in range_ or []),
        tolerance=tolerance_class(tolerance),
        options=agent_options(agent_option or ()),
        language_model=language_model,
        seed=seed,
        bundle=bundle,
    )
    hands = functools.partial(_hands, language_model, model_base_url)
    try:
        lines = _Lines()
        with lines:
            report = optimise(request, hands, lines)
    except KeyboardInterrupt:
        err.print("interrupted; what was done is kept, the same command goes on")
        raise typer.Exit(_INTERRUPTED) from None
    if json:
        print_json(report.model_dump(mode="json"))
    else:
        _print(report, folder)
    if report.interrupted:
        raise typer.Exit(_INTERRUPTED)


class _Lines(Display):
    """The display of a run, with lines between the attempts."""

    def say(self, line: str) -> None:
        err.print(line, markup=False, soft_wrap=True)


def _hands(
    language_model: str | None,
    base_url: str | None,
    order: Order,
    evaluator: Evaluator,
    observer: Observer,
) -> list[Record]:
    """Lets the agent of an order work, as `ekb run` does."""
    if language_model is not None:
        return run_with_a_model(
            order,
            observer,
            model=language_model,
            base_url=base_url,
            samples=1,
            max_retries=5,
            timeout=600,
        )
    from edgekernelbench.runs.run import run

    return run(order.config(), order.folder, True, evaluator, observer)


def _print(report: Report, folder: Path) -> None:
    table = Table()
    for column in ("part", "count", "share", "before", "after", "gain", "tvm", "ort", ""):
        table.add_column(column)
    for part in report.parts:
        table.add_row(
            part.id,
            str(part.count),
            f"{part.share:.1%}",
            _time(part.before_us),
            _time(part.after_us),
            f"{part.gain:.2f}x",
            *(_ratio(part.speedups.get(name)) for name in ("tvm", "ort")),
            part.reason,
        )
    out.print(table)
    whole = report.whole
    out.print(
        f"the whole: {_time(whole.before.median_us)} ({whole.before_kind}) before, "
        f"{_time(whole.after.median_us)} ({whole.kind}) after: {whole.gain:.2f} times as fast",
        markup=False,
        soft_wrap=True,
    )
    for name, ratio in whole.after.speedups.items():
        low, high = whole.after.intervals[name]
        out.print(f"  {ratio:.2f} times as fast as {name} [{low:.2f} .. {high:.2f}]", markup=False)
    for note in (*report.notes, report.agreement, report.bundle):
        if note:
            out.print(note, markup=False, soft_wrap=True)
    out.print(f"{folder}/model.ekir, {folder}/report.md", markup=False, soft_wrap=True)


def _time(value: float | None) -> str:
    return "-" if value is None else microseconds(value)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"
