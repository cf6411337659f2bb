"""``ekb doctor``: what each target needs, found or missing, and how to get it."""

from __future__ import annotations

import typer

from edgekernelbench.cli.common import JsonOption, out, print_json


def doctor(json: JsonOption = False) -> None:
    """Look at what targets need of this machine.

    Exit code 0 when the embedded default, --target llvm, works; 1 otherwise.
    """
    from edgekernelbench.evaluator.doctor import diagnose

    found = diagnose()
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        for each in found.findings:
            line = f"{each.state:8} {each.what} ({each.needed_for}): {each.detail}"
            out.print(line + (f" -> {each.get}" if each.get else ""), markup=False, soft_wrap=True)
    if not found.works:
        raise typer.Exit(1)
