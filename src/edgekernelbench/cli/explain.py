"""``ekb explain``: the loop nest a kernel becomes, its traffic, its bill, its roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from edgekernelbench.analysis.explain import Explanation
from edgekernelbench.analysis.roof import REACHED
from edgekernelbench.cli.common import (
    JsonOption,
    KernelArgument,
    TargetOption,
    err,
    microseconds,
    out,
    print_json,
    quantity,
    read_kernel,
)
from edgekernelbench.errors import UsageError

if TYPE_CHECKING:
    from edgekernelbench.analysis.code import DeviceCode
    from edgekernelbench.evaluator.stages import StageProfile
    from edgekernelbench.runs.interaction import Interaction


def explain(
    kernel: KernelArgument,
    target: TargetOption = "llvm",
    between: Annotated[
        bool,
        typer.Option(
            "--interaction", help="Measure the kernel, and each of its stages alone (--workload)."
        ),
    ] = False,
    by_nest: Annotated[
        bool,
        typer.Option("--profile", help="Measure each nest within the kernel (--workload)."),
    ] = False,
    workload: Annotated[
        str | None, typer.Option("--workload", help="Whose inputs the kernel is measured on.")
    ] = None,
    evaluations: Annotated[
        int, typer.Option("--evaluations", min=1, help="Measurements of the tuner for each stage.")
    ] = 8,
    source: Annotated[
        bool,
        typer.Option("--source", help="Print only the CUDA, OpenCL or C text that is generated."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what a kernel becomes on a target; without --interaction or --profile it is not run."""
    if between or by_nest or workload is not None:
        if workload is None or between == by_nest:
            raise UsageError(
                "stages are measured on the inputs of a task",
                "give --workload NAME and one of --profile and --interaction",
            )
        if between:
            _interaction(kernel, target, workload, evaluations, json)
        else:
            _profile(kernel, target, workload, json)
        return
    from edgekernelbench.analysis.code import device_code, generated_source
    from edgekernelbench.analysis.explain import explain as compute
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.ir.diagnostics import render
    from edgekernelbench.lowering.lower import lower
    from edgekernelbench.targets.peaks import load_peaks
    from edgekernelbench.targets.registry import find_target

    text = read_kernel(kernel)
    profile = find_target(target)
    checked = check_text(text)
    diagnostics = checked.diagnostics
    module = None
    if checked.kernel is not None and checked.program is not None:
        lowered = lower(checked.kernel, checked.program, profile)
        diagnostics += lowered.diagnostics
        module = lowered.module
    if source and module is not None and checked.program is not None:
        print(generated_source(checked.program, module, profile))
        return
    code = None
    if module is not None and checked.program is not None:
        code = device_code(checked.program, module, profile)
        diagnostics += code.diagnostics
    if module is None or checked.program is None or code is None or code.diagnostics:
        if json:
            print_json({"ok": False, "diagnostics": [d.as_dict(text) for d in diagnostics]})
        else:
            for diagnostic in diagnostics:
                print(render(diagnostic, text, kernel), end="\n\n")
        raise typer.Exit(1)
    result = compute(checked.program, module, profile, load_peaks(profile), code)
    if json:
        print_json({"ok": not result.over_budget, **result.model_dump(mode="json")})
    else:
        _print(result, code)
    if result.over_budget:
        raise typer.Exit(1)


def _interaction(kernel: str, target: str, workload: str, evaluations: int, json: bool) -> None:
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.runs.interaction import interaction
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    text, task = read_kernel(kernel), find_workload(workload)
    with (
        Evaluator(find_target(target)) as evaluator,
        Progress(console=err, transient=True) as bar,
    ):
        shown = bar.add_task("measuring stages", total=None)
        result = interaction(
            text,
            task,
            evaluator,
            evaluations,
            lambda done, total: bar.update(shown, completed=done, total=total),
        )
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        _print_interaction(result)


def _print_interaction(result: Interaction) -> None:
    table = Table(title=f"{result.workload}: stages alone, each at its best", title_justify="left")
    for column in ("stages", "time", "95 %", "under"):
        table.add_column(column)
    for unit in result.units:
        name = ", ".join(unit.stages)
        if unit.median_us is None or unit.low_us is None or unit.high_us is None:
            table.add_row(name, "-", "-", unit.message)
            continue
        interval = f"{microseconds(unit.low_us)} .. {microseconds(unit.high_us)}"
        table.add_row(name, microseconds(unit.median_us), interval, unit.way)
    out.print(table)
    low, high = microseconds(result.whole_low_us), microseconds(result.whole_high_us)
    out.print(f"whole kernel   {microseconds(result.whole_us)}  [{low} .. {high}]", markup=False)
    out.print(f"empty call     {microseconds(result.overhead_us)}")
    if result.sum_us is None or result.gain is None or result.spread is None:
        out.print("sum of stages  unknown while one of them has no time")
        return
    calls = f"with one empty call instead of {len(result.units)}"
    out.print(f"sum of stages  {microseconds(result.sum_us)}, {calls}")
    out.print(
        f"sum / whole    {result.gain:.2f}  [{result.spread[0]:.2f} .. {result.spread[1]:.2f}]: "
        f"{result.verdict}",
        markup=False,
    )


def _profile(kernel: str, target: str, workload: str, json: bool) -> None:
    from edgekernelbench.evaluator import Evaluator, TaskSession
    from edgekernelbench.evaluator.stages import NoProfile
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    text, task = read_kernel(kernel), find_workload(workload)
    with (
        Evaluator(find_target(target)) as evaluator,
        TaskSession(evaluator, as_task(task), ()) as session,
    ):
        result = session.profile(text)
    if isinstance(result, NoProfile):
        raise UsageError(f"there is no profile: {result.message}", "`ekb eval` says more")
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        _print_profile(result, workload)


def _print_profile(result: StageProfile, workload: str) -> None:
    table = Table(title=f"{workload}: time by nest", title_justify="left")
    for column in ("nest", "time", "share", "computed inside"):
        table.add_column(column, overflow="fold")
    for part in result.parts:
        inside = ", ".join(name for name in part.stages if name != part.label)
        row = (part.label, microseconds(part.median_us), f"{part.share:.1%}", inside)
        table.add_row(*map(escape, row))
    out.print(table)
    out.print(f"outside of nests    {microseconds(result.call_us)}")
    out.print(f"plain build         {microseconds(result.whole_us)}")
    out.print(
        f"instrumented build  {microseconds(result.timed_us)}, {result.overhead - 1:+.1%} in "
        f"{result.rounds} rounds; a reading of the clock {1000 * result.clock_us:.0f} ns, taken off"
    )


def _print(result: Explanation, code: DeviceCode) -> None:
    out.print(f"[bold]{result.kernel}[/] on {result.target}\n")
    out.print(result.nest, markup=False, soft_wrap=True)
    table = Table(title="\nbytes moved in one call (estimate)", title_justify="left")
    for column in ("into", "size", "bytes", "times the footprint"):
        table.add_column(column, justify="right")
    for level in result.levels:
        times = level.bytes / max(1.0, result.footprint_bytes)
        table.add_row(
            level.name, quantity(level.capacity, "B"), quantity(level.bytes, "B"), f"{times:.1f}"
        )
    out.print(table)
    arithmetic = quantity(result.flops, "op")
    out.print(f"operations      {arithmetic}; comparisons and selections not counted")
    if result.instructions:
        out.print(f"dot products    {', '.join(result.instructions)}")
    out.print(f"in and out      {quantity(result.io_bytes, 'B')}")
    out.print(f"footprint       {quantity(result.footprint_bytes, 'B')}")
    out.print(f"workspace       {quantity(result.workspace_bytes, 'B')}")
    out.print(f"packed          {quantity(result.packed_bytes, 'B')}")
    for line in code.lines():
        out.print(line, markup=False, soft_wrap=True)
    for item in result.budget:
        mark = "[bold red]over budget[/]     " if item.over else "within          "
        out.print(mark + escape(item.says()), soft_wrap=True)
    out.print(f"intensity       {result.operations_per_byte:.2f} operations a byte in and out")
    out.print(f"roofline        {_roofline(result)}", markup=False, soft_wrap=True)


def _roofline(result: Explanation) -> str:
    parts = {"arithmetic": result.least_compute_us, "memory traffic": result.least_memory_us}
    known = [f"{microseconds(us)} of {name}" for name, us in parts.items() if us is not None]
    bound = "about" if result.roof_source == REACHED else "at least"
    least = f"{bound} {', '.join(known)}" if known else ""
    if least and result.roof_source:
        least += f" (peaks {result.roof_source})"
    if result.unmeasured:
        return "; ".join(text for text in (least, result.unmeasured) if text)
    return f"{least}: {result.bound}-bound"
