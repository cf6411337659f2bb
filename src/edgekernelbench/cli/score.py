"""``ekb score``: Correct@k, Fast@p and the rest, from a run's records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edgekernelbench.cli.common import JsonOption, err, out, print_json, warn
from edgekernelbench.cli.tables import score_tables


def score(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The --out folder of a run.")],
    k: Annotated[
        list[int] | None, typer.Option("--k", min=1, help="k of Correct@k; repeatable.")
    ] = None,
    memory_cap: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Score again what stays within: 64MB, 64MiB.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Score the records of a run."""
    from edgekernelbench.records.read import find_records
    from edgekernelbench.scores.resources import bytes_of
    from edgekernelbench.scores.score import score as compute

    cap = None if memory_cap is None else bytes_of(memory_cap)
    loaded = find_records(folder)
    warn(loaded.problems)
    if loaded.replaced:
        tokens = sum(record.spent.tokens or 0 for record in loaded.replaced)
        err.print(
            f"{len(loaded.replaced)} records of provider errors are not counted: those attempts "
            f"were made again; {tokens:,} tokens of theirs are not in the sums",
            soft_wrap=True,
        )
    result: dict[str, Any] = compute(loaded.records, sorted(set(k or [1])), cap)
    if json:
        print_json(result)
        return
    for table in score_tables(result):
        out.print(table)
