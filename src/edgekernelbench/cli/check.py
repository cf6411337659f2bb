"""``ekb check``: everything about a kernel that can be known without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekernelbench.cli.common import JsonOption, KernelArgument, print_json, read_kernel
from edgekernelbench.errors import UsageError

if TYPE_CHECKING:
    from edgekernelbench.analysis.code import DeviceCode
    from edgekernelbench.evaluator.checked import CheckedReport
    from edgekernelbench.evaluator.static import StaticResult
    from edgekernelbench.targets.model import Target


def check(
    kernel: KernelArgument,
    workload: Annotated[
        str | None, typer.Option("--workload", help="Also compare the header with this task's.")
    ] = None,
    target: Annotated[
        str, typer.Option("--target", help="Whose schedule and memory layers are checked.")
    ] = "llvm",
    oclgrind: Annotated[
        bool,
        typer.Option(
            "--oclgrind",
            help="Also run it once in Oclgrind (races, barriers, bounds); needs --workload and "
            "--target opencl.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Parse and verify a kernel, and check the layers that apply to a target."""
    from edgekernelbench.evaluator.checked import check_run
    from edgekernelbench.evaluator.static import static_check
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    text = read_kernel(kernel)
    task = None if workload is None else as_task(find_workload(workload))
    if oclgrind and task is None:
        raise UsageError("--oclgrind runs the kernel, and needs its task", "add --workload")
    profile = find_target(target)
    result = static_check(text, task, profile)
    code = _compiled(result, profile)
    report = None
    if oclgrind and task is not None and result.ok:
        report = check_run(text, task, profile)
    if json:
        _print_json(result, code, report, text)
    else:
        _print(result, code, report, text, "stdin" if kernel == "-" else kernel)
    if not result.ok or (report is not None and report.outcome != "clean"):
        raise typer.Exit(1)


def _compiled(result: StaticResult, target: Target) -> DeviceCode:
    """What a device's compiler makes of a kernel that is right so far; it may still refuse it."""
    from edgekernelbench.analysis.code import DeviceCode, device_code

    if not result.ok or result.program is None or result.module is None:
        return DeviceCode()
    code = device_code(result.program, result.module, target)
    result.diagnostics += code.diagnostics
    result.ok = not code.diagnostics and not code.over_budget
    return code


def _print_json(
    result: StaticResult, code: DeviceCode, report: CheckedReport | None, text: str
) -> None:
    printed: dict[str, Any] = {
        "ok": result.ok,
        "kernel": None if result.kernel is None else result.kernel.name,
        "diagnostics": [d.as_dict(text) for d in result.diagnostics],
    }
    if code.budget:
        printed["budget"] = [{**item.model_dump(), "over": item.over} for item in code.budget]
        printed["over_budget"] = code.over_budget
        printed["code_bytes"] = code.code_bytes
    if code.kernels or code.not_compiled:
        printed["kernels"] = [bill.model_dump(mode="json") for bill in code.kernels]
        printed["not_compiled"] = code.not_compiled
    if report is not None:
        printed["oclgrind"] = report.model_dump(mode="json")
    print_json(printed)


def _print(
    result: StaticResult, code: DeviceCode, report: CheckedReport | None, text: str, name: str
) -> None:
    from edgekernelbench.ir.diagnostics import render

    for diagnostic in result.diagnostics:
        print(render(diagnostic, text, name), end="\n\n")
    errors = sum(d.severity == "error" for d in result.diagnostics)
    kernel_name = "?" if result.kernel is None else result.kernel.name
    if code.over_budget:
        print(f"{name}: {kernel_name} is over budget: {code.over_budget}")
    else:
        print(f"{name}: {kernel_name} is right" if result.ok else f"{name}: {errors} error(s)")
    for line in code.lines():
        print(line)
    if report is None:
        return
    for found in report.diagnostics:
        print(f"{found['code']}: {found['message']}")
        for note in found.get("notes", ()):
            print(f"  {note}")
    print(f"oclgrind: {report.outcome} {report.message}".rstrip())
