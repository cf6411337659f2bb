"""``ekb eval``: the verdict on one kernel, with its time beside the baselines'."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from edgekernelbench.cli.common import (
    JsonOption,
    KernelArgument,
    TargetOption,
    microseconds,
    out,
    print_json,
    quantity,
    read_kernel,
)
from edgekernelbench.cli.tables import baseline_order
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus


def evaluate(
    kernel: KernelArgument,
    workload: Annotated[str, typer.Option("--workload", help="Which task it is for.")],
    target: TargetOption = "llvm",
    json: JsonOption = False,
) -> None:
    """Compile, check and time a kernel beside the baselines."""
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    text = read_kernel(kernel)
    task = find_workload(workload)
    with Evaluator(find_target(target)) as evaluator, evaluator.session(as_task(task)) as session:
        evaluation = session.evaluate(text)
    if json:
        print_json(evaluation.model_dump(mode="json"))
    else:
        _print(evaluation, "stdin" if kernel == "-" else kernel)
    if evaluation.status is not EvaluationStatus.CORRECT:
        raise typer.Exit(1)


def _print(evaluation: Evaluation, name: str) -> None:
    colour = "green" if evaluation.status is EvaluationStatus.CORRECT else "red"
    out.print(f"[bold {colour}]{evaluation.status.value}[/]  {evaluation.workload}", end="")
    out.print(f"  {evaluation.message}" if evaluation.message else "", markup=False)
    for diagnostic in evaluation.diagnostics:
        text = diagnostic.get("rendered") or diagnostic["message"]
        out.print(text.replace("--> kernel:", f"--> {name}:"), markup=False, soft_wrap=True)
    performance = evaluation.performance
    if performance is None:
        return
    out.print(
        f"{microseconds(performance.median_us)}  "
        f"[{microseconds(performance.low_us)} .. {microseconds(performance.high_us)}], "
        f"{len(performance.samples_us)} samples, {performance.threads} threads, "
        f"{performance.timer}",
        markup=False,
    )
    if performance.noise is not None and performance.noise.disturbed:
        out.print(performance.noise.remark, markup=False)
    if performance.overhead_dominated:
        out.print("the call itself takes more than a quarter of this time")
    table = Table()
    for column in ("baseline", "time", "speed-up", "95 %", "route"):
        table.add_column(column)
    for name in baseline_order(evaluation.baselines):
        result = evaluation.baselines[name]
        if result.speedup is None or result.median_us is None:
            table.add_row(name, result.status, "-", "-", result.message)
            continue
        mark = " (best)" if name == evaluation.best else "" if result.scored else " (not scored)"
        interval = f"{result.speedup_low:.2f} .. {result.speedup_high:.2f}"
        table.add_row(
            name + mark,
            microseconds(result.median_us),
            f"{result.speedup:.2f}x",
            interval,
            result.route,
        )
    out.print(table)
    if evaluation.resources is not None and evaluation.resources.facts is not None:
        facts = evaluation.resources.facts
        out.print(
            f"workspace {quantity(facts.workspace_bytes, 'B')}, packed constants "
            f"{quantity(facts.packed_bytes, 'B')}, compiled in {facts.compile_seconds:.2f} s"
        )
