"""``ekb eval``: the verdict on one kernel, with its time beside the baselines'."""

from __future__ import annotations

from typing import Annotated, Literal

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
from edgekernelbench.evaluator.conditions import Sustained
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus, Performance, Resources
from edgekernelbench.scores.attempts import baseline_order


def evaluate(
    kernel: KernelArgument,
    workload: Annotated[str, typer.Option("--workload", help="Which task it is for.")],
    target: TargetOption = "llvm",
    cache: Annotated[
        Literal["warm", "cold"],
        typer.Option("--cache", help="What the caches hold before a call that is timed."),
    ] = "warm",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--sustained",
            metavar="SECONDS",
            help="Then call it without pause for so long: heat, throttling, energy.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compile, check and time a kernel beside the baselines."""
    from edgekernelbench.evaluator import EvalSettings, Evaluator
    from edgekernelbench.evaluator.sustained import require_long, sustained
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    if seconds is not None:
        require_long(seconds)
    text = read_kernel(kernel)
    task = find_workload(workload)
    settings = EvalSettings(cache_state=cache)
    with (
        Evaluator(find_target(target), settings=settings) as evaluator,
        evaluator.session(as_task(task)) as session,
    ):
        if seconds is None:
            evaluation = session.evaluate(text)
        else:
            evaluation = sustained(session, text, seconds)
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
        f"{performance.timer}, caches {performance.cache_state}",
        markup=False,
    )
    if performance.noise is not None and performance.noise.disturbed:
        out.print(performance.noise.remark, markup=False)
    if performance.overhead_dominated:
        out.print(f"the call itself takes more than a quarter of that: {_overhead(performance)}")
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
    if evaluation.sustained is not None:
        _print_sustained(evaluation.sustained)
    if performance.roofline:
        out.print(performance.roofline, markup=False, soft_wrap=True)
    if evaluation.resources is not None:
        out.print(_bill(evaluation.resources), markup=False, soft_wrap=True)


def _overhead(performance: Performance) -> str:
    """A call that does nothing, with its interval where the record has one."""
    low, high = performance.launch_overhead_low_us, performance.launch_overhead_high_us
    median = microseconds(performance.launch_overhead_us)
    if low is None or high is None:
        return median
    return f"{median} [{microseconds(low)} .. {microseconds(high)}]"


def _bill(resources: Resources) -> str:
    """What the kernel costs beside its time."""
    terms = []
    if facts := resources.facts:
        terms += [
            f"workspace {quantity(facts.workspace_bytes, 'B')}",
            f"packed constants {quantity(facts.packed_bytes, 'B')}",
        ]
        if facts.code_bytes is not None:
            terms.append(f"code {quantity(facts.code_bytes, 'B')}")
    if resources.memory_bytes is not None:
        terms.append(f"memory {quantity(resources.memory_bytes, 'B')}")
    if resources.peak_rss_bytes is not None:
        terms.append(f"peak of the process {quantity(resources.peak_rss_bytes, 'B')}")
    if facts:
        terms.append(f"compiled in {facts.compile_seconds:.2f} s")
    if resources.first_run_seconds is not None:
        terms.append(f"first run {microseconds(resources.first_run_seconds * 1e6)}")
    return ", ".join(terms)


def _print_sustained(found: Sustained) -> None:
    ratio = ""
    if found.ratio is not None:
        ratio = f" ({found.ratio:.3f} [{found.ratio_low:.3f} .. {found.ratio_high:.3f}])"
    out.print(
        f"{found.seconds:.1f} s without pause: burst {microseconds(found.burst_us)}, steady "
        f"{microseconds(found.steady_us)}{ratio}",
        markup=False,
    )
    seen = "; ".join(found.throttled) or "nothing shows throttling"
    out.print(f"{seen} (looked at {', '.join(found.throttle_sources)})", markup=False)
    line = found.energy_note
    if found.energy is not None:
        line += f": {found.energy.watts:.2f} W, idle {found.energy.idle_watts:.2f} W"
        joules = found.energy.joules_per_call
        line += ", no more than idling" if joules is None else f", {joules:.3g} J a call"
    out.print(line, markup=False)
