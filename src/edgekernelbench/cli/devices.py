"""``ekb devices``: targets, and what this host can reach at most."""

from __future__ import annotations

import typer

from edgekernelbench.cli.common import JsonOption, TargetOption, out, print_json, quantity

app = typer.Typer(help="Targets and their measured peaks.", no_args_is_help=True)


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """List what kernels can run on here."""
    from edgekernelbench.targets.registry import list_targets

    found = list_targets()
    if json:
        targets = [target.model_dump(mode="json") for target in found.targets]
        print_json({"targets": targets, "missing": list(found.missing)})
        return
    for target in found.targets:
        out.print(f"{target.name:32} {target.description}", markup=False, soft_wrap=True)
    for line in found.missing:
        out.print(line, markup=False, soft_wrap=True)


@app.command("show")
def show(target: TargetOption = "llvm", json: JsonOption = False) -> None:
    """Show the profile of a target."""
    from edgekernelbench.targets.registry import find_target

    profile = find_target(target).model_dump(mode="json")
    if json:
        print_json(profile)
        return
    for key, value in profile.items():
        out.print(f"{key:16} {value}", markup=False)


@app.command("probe")
def probe(target: TargetOption = "llvm", json: JsonOption = False) -> None:
    """Measure the peaks of a target (bandwidth, operations) with kernels written in the IR."""
    from edgekernelbench.evaluator.peaks import measure_peaks
    from edgekernelbench.targets.registry import find_target

    peaks = measure_peaks(find_target(target))
    if json:
        print_json(peaks.model_dump(mode="json"))
        return
    for key, value in peaks.model_dump(mode="json").items():
        text = quantity(value, "") if isinstance(value, float) else str(value)
        out.print(f"{key:24} {text}", markup=False)
