"""``ekb deploy``: a kernel becomes a bundle for a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekernelbench.cli.common import (
    JsonOption,
    KernelArgument,
    out,
    print_json,
    quantity,
    read_kernel,
)

if TYPE_CHECKING:
    from edgekernelbench.deploy import Deployed, Refused


def deploy(
    kernel: KernelArgument,
    target: Annotated[
        str,
        typer.Option("--target", help="llvm, c, opencl (here), a device profile, or c:PROFILE."),
    ],
    folder: Annotated[Path, typer.Option("-o", "--out", help="The bundle; it must not exist yet.")],
    workload: Annotated[
        str | None,
        typer.Option("--workload", help="Its task: gives inputs, truth and tolerance."),
    ] = None,
    constants: Annotated[
        Path | None,
        typer.Option("--constants", help="Your weights: an .npz file with the const inputs."),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option("--records", help="A run that measured it on the target: goes on the label."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of golden inputs.")] = 0,
    selftest: Annotated[
        bool, typer.Option("--selftest", help="Run it here, or under qemu, before handing over.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a bundle for a device: library, C header, self-test. No Python is needed there."""
    from edgekernelbench.deploy import Refused, Request
    from edgekernelbench.deploy import deploy as make
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.registry import find_target

    request = Request(
        text=read_kernel(kernel),
        target=find_target(target),
        folder=folder,
        workload=None if workload is None else find_workload(workload),
        constants=constants,
        seed=seed,
        records=records,
        selftest=selftest,
    )
    made = make(request)
    if isinstance(made, Refused):
        if json:
            print_json(_refused_as_json(made))
        else:
            _print_refused(made, "stdin" if kernel == "-" else kernel)
        raise typer.Exit(1)
    if json:
        print_json(_as_json(made))
    else:
        _print(made)


def _refused_as_json(refused: Refused) -> dict[str, Any]:
    return {
        "ok": False,
        "status": refused.status,
        "message": refused.message,
        "diagnostics": list(refused.diagnostics),
    }


def _as_json(made: Deployed) -> dict[str, Any]:
    tested = None if made.selftest is None else made.selftest.passed
    manifest = made.manifest.model_dump(mode="json")
    return {"ok": True, "folder": str(made.folder), "selftest": tested, "manifest": manifest}


def _print_refused(refused: Refused, name: str) -> None:
    for diagnostic in refused.diagnostics:
        text = diagnostic.get("rendered") or diagnostic["message"]
        out.print(text.replace("--> kernel:", f"--> {name}:"), markup=False, soft_wrap=True)
    out.print(f"[bold red]not deployed:[/] {refused.status}")
    out.print(refused.message, markup=False, soft_wrap=True)


def _print(made: Deployed) -> None:
    manifest, folder = made.manifest, made.folder
    bill = manifest.bill
    out.print(f"{folder}: {manifest.function} for {manifest.target['name']}", markup=False)
    code = "unknown" if bill.code_bytes is None else quantity(bill.code_bytes, "B")
    out.print(
        f"code {code}, constants {quantity(bill.constants_bytes, 'B')}, "
        f"workspace {quantity(bill.workspace_bytes, 'B')}"
    )
    if made.selftest is not None:
        out.print(made.selftest.log.rstrip(), markup=False, soft_wrap=True)
    if manifest.toolchain.c_compiler is None:
        why = manifest.toolchain.not_prebuilt
        out.print(f"nothing prebuilt: {why}", markup=False, soft_wrap=True)
    out.print(f"on the device: make -C {folder} selftest", markup=False)
