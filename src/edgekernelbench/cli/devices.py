"""``ekb devices``: targets, and what this host can reach at most."""

from __future__ import annotations

from typing import Annotated

import typer

from edgekernelbench.cli.common import JsonOption, TargetOption, err, out, print_json, quantity
from edgekernelbench.errors import UsageError

app = typer.Typer(help="Targets and their measured peaks.", no_args_is_help=True)


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """List what kernels can run on here."""
    from edgekernelbench.targets.registry import list_targets

    found = list_targets()
    if json:
        targets = [target.model_dump(mode="json") for target in found.targets]
        profiles = [
            {**p.profile.model_dump(mode="json"), "file": str(p.file)} for p in found.profiles
        ]
        lists = {"missing": list(found.missing), "problems": list(found.problems)}
        print_json({"targets": targets, "profiles": profiles, **lists})
        return
    for target in found.targets:
        out.print(f"{target.name:32} {target.description}", markup=False, soft_wrap=True)
    for line in found.missing:
        out.print(line, markup=False, soft_wrap=True)
    out.print("\nprofiles: code is generated and billed without the device")
    for each in found.profiles:
        line = f"{each.profile.name:32} {each.profile.description}"
        out.print(line, markup=False, soft_wrap=True)
    for line in found.problems:
        out.print(f"not usable: {line}", markup=False, soft_wrap=True)


@app.command("show")
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[TARGET]", help="As --target takes it.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="The same, as an option; llvm if left out.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show a target: its limits, its peaks, and where a profile has them from."""
    from edgekernelbench.targets.profiles.places import find_profile
    from edgekernelbench.targets.registry import find_target

    if name is not None and target is not None:
        raise UsageError("two targets: one by position, one by --target", "give one of them")
    wanted = name or target or "llvm"
    profile = find_target(wanted).model_dump(mode="json")
    found = find_profile(wanted)
    sources = [] if found is None else found.profile.model_dump(mode="json")["sources"]
    if json:
        print_json({**profile, "sources": sources})
        return
    for key, value in profile.items():
        out.print(f"{key:16} {value}", markup=False)
    for source in sources:
        title = " ".join(part for part in (source["title"], source["url"]) if part)
        line = f"{', '.join(source['of'])}: {source['kind']}: {title or 'no document'}"
        out.print(f"source           {line}", markup=False, soft_wrap=True)
        out.print(f"                 {source['says']}", markup=False, soft_wrap=True)


@app.command("probe")
def probe(target: TargetOption = "llvm", json: JsonOption = False) -> None:
    """Measure the peaks of a target (bandwidth, operations) with kernels written in the IR."""
    from edgekernelbench.evaluator.peaks import measure_peaks
    from edgekernelbench.targets.registry import find_target

    def say(name: str, done: int, of: int) -> None:
        err.print(f"[{done + 1}/{of}] {name}", markup=False, soft_wrap=True)

    peaks = measure_peaks(find_target(target), progress=say)
    if json:
        print_json(peaks.model_dump(mode="json"))
        return
    for key, value in peaks.model_dump(mode="json").items():
        text = quantity(value, "") if isinstance(value, float) else str(value)
        out.print(f"{key:24} {text}", markup=False)
