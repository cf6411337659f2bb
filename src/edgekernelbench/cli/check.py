"""``ekb check``: everything about a kernel that can be known without running it."""

from __future__ import annotations

from typing import Annotated

import typer

from edgekernelbench.cli.common import JsonOption, KernelArgument, print_json, read_kernel


def check(
    kernel: KernelArgument,
    workload: Annotated[
        str | None, typer.Option("--workload", help="Also compare the header with this task's.")
    ] = None,
    target: Annotated[
        str, typer.Option("--target", help="Whose schedule and memory layers are checked.")
    ] = "llvm",
    json: JsonOption = False,
) -> None:
    """Parse and verify a kernel, and check the layers that apply to a target."""
    from edgekernelbench.evaluator.static import static_check
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.ir.diagnostics import render
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    text = read_kernel(kernel)
    result = static_check(
        text,
        None if workload is None else as_task(find_workload(workload)),
        find_target(target),
    )
    if json:
        print_json(
            {
                "ok": result.ok,
                "kernel": None if result.kernel is None else result.kernel.name,
                "diagnostics": [d.as_dict(text) for d in result.diagnostics],
            }
        )
    else:
        name = "stdin" if kernel == "-" else kernel
        for diagnostic in result.diagnostics:
            print(render(diagnostic, text, name), end="\n\n")
        errors = sum(d.severity == "error" for d in result.diagnostics)
        kernel_name = "?" if result.kernel is None else result.kernel.name
        print(f"{name}: {kernel_name} is right" if result.ok else f"{name}: {errors} error(s)")
    if not result.ok:
        raise typer.Exit(1)
