"""``ekb devices``: targets, and what this host can reach at most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgekernelbench.cli.common import JsonOption, TargetOption, err, out, print_json, quantity
from edgekernelbench.errors import UsageError

if TYPE_CHECKING:
    from edgekernelbench.targets.profiles.places import Found

NOISY = 0.25
"""Half width of a measured peak's interval, relative, above which the machine was not idle."""

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
    out.print("\nprofiles: code is generated and billed without the device; some run here")
    for each in found.profiles:
        line = f"{each.profile.name:32} {each.profile.description}"
        there = " (runs here)" if _runs_here(each) else ""
        out.print(f"{line}{there}", markup=False, soft_wrap=True)
    for line in found.problems:
        out.print(f"not usable: {line}", markup=False, soft_wrap=True)


def _runs_here(found: Found) -> bool:
    from edgekernelbench.targets.profiles.resolve import target_of

    try:
        return target_of(found.profile, str(found.file)).device is not None
    except UsageError:
        return False


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
    from edgekernelbench.cli.targetform import rows_of
    from edgekernelbench.targets.peaks import load_peaks
    from edgekernelbench.targets.profiles.places import find_profile
    from edgekernelbench.targets.registry import find_target

    if name is not None and target is not None:
        raise UsageError("two targets: one by position, one by --target", "give one of them")
    wanted = name or target or "llvm"
    shown, found = find_target(wanted), find_profile(wanted)
    sources = [] if found is None else found.profile.model_dump(mode="json")["sources"]
    if json:
        print_json({**shown.model_dump(mode="json"), "sources": sources})
        return
    measured = load_peaks(shown)
    here = measured is not None and measured.cpu == shown.description
    for key, value in rows_of(shown, measured if here else None):
        out.print(f"{key:16} {value}", markup=False, soft_wrap=True)
    for source in sources:
        title = " ".join(part for part in (source["title"], source["url"]) if part)
        line = f"{', '.join(source['of'])}: {source['kind']}: {title or 'no document'}"
        out.print(f"source           {line}", markup=False, soft_wrap=True)
        out.print(f"                 {source['says']}", markup=False, soft_wrap=True)


@app.command("probe")
def probe(
    target: TargetOption = "llvm",
    out_file: Annotated[
        Path | None,
        typer.Option("--out", help="The profile; probed-TARGET.yaml in your folder if left out."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure the peaks of a target (bandwidth, operations) with kernels written in the IR, and
    write its profile."""
    from edgekernelbench.evaluator.peaks import measure_peaks
    from edgekernelbench.targets.profiles.places import own_folder
    from edgekernelbench.targets.profiles.write import (
        check_file,
        probed_name,
        profile_text,
        write_profile,
    )
    from edgekernelbench.targets.registry import find_target

    def say(name: str, done: int, of: int) -> None:
        err.print(f"[{done + 1}/{of}] {name}", markup=False, soft_wrap=True)

    probed = find_target(target)
    file = out_file or own_folder() / f"{probed_name(probed)}.yaml"
    check_file(file)
    peaks = measure_peaks(probed, progress=say)
    write_profile(profile_text(probed, peaks, file.stem), file)
    if json:
        print_json({**peaks.model_dump(mode="json"), "profile": str(file)})
        return
    for name, rate in peaks.kernels.items():
        unit = "op/s" if "product" in name or name.startswith("bytes") else "B/s"
        spread = peaks.spread.get(name)
        told = "" if spread is None else f"  spread {100 * spread:.1f} %"
        out.print(f"{name:24} {quantity(rate, unit):>12}{told}", markup=False)
    noisy = [name for name, spread in peaks.spread.items() if spread > NOISY]
    if noisy:
        told = f"noisy: {', '.join(noisy)}; other work ran beside it: measure again when it is idle"
        out.print(told, markup=False, soft_wrap=True)
    for line in peaks.failures:
        out.print(f"no time: {line}", markup=False, soft_wrap=True)
    out.print(f"{'measured':24} {peaks.date}: {peaks.method}", markup=False, soft_wrap=True)
    out.print(f"{'profile':24} {file}", markup=False, soft_wrap=True)
