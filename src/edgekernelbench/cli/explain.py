"""``ekb explain``: the loop nest a kernel becomes, its traffic, its bill, its roofline."""

from __future__ import annotations

import typer
from rich.table import Table

from edgekernelbench.analysis.explain import Explanation
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


def explain(
    kernel: KernelArgument, target: TargetOption = "llvm", json: JsonOption = False
) -> None:
    """Show what a kernel becomes on a target, without running it."""
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
    if module is None or checked.program is None:
        if json:
            print_json({"ok": False, "diagnostics": [d.as_dict(text) for d in diagnostics]})
        else:
            for diagnostic in diagnostics:
                print(render(diagnostic, text, kernel), end="\n\n")
        raise typer.Exit(1)
    result = compute(checked.program, module, profile, load_peaks(profile))
    if json:
        print_json({"ok": True, **result.model_dump(mode="json")})
    else:
        _print(result)


def _print(result: Explanation) -> None:
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
    out.print(f"operations      {quantity(result.flops, 'op')}")
    out.print(f"in and out      {quantity(result.io_bytes, 'B')}")
    out.print(f"footprint       {quantity(result.footprint_bytes, 'B')}")
    out.print(f"workspace       {quantity(result.workspace_bytes, 'B')}")
    out.print(f"packed          {quantity(result.packed_bytes, 'B')}")
    out.print(f"intensity       {result.operations_per_byte:.2f} operations a byte in and out")
    if result.least_compute_us is None or result.least_memory_us is None:
        out.print("roofline        peaks not measured yet: run `ekb devices probe`")
        return
    out.print(
        f"roofline        at least {microseconds(result.least_compute_us)} of arithmetic, "
        f"{microseconds(result.least_memory_us)} of memory traffic: {result.bound}-bound"
    )
