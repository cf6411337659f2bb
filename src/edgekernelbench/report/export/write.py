"""Runs in any of the forms that `ekb export` knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from edgekernelbench.errors import UsageError
from edgekernelbench.report.entries import Entry
from edgekernelbench.report.export.flat import csv_of, parquet_of
from edgekernelbench.report.export.markup import latex_of, markdown_of
from edgekernelbench.report.export.rows import rows_of
from edgekernelbench.report.export.tables import NAMES, tables_of

Format = Literal["csv", "parquet", "markdown", "latex"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
}


def format_of(file: Path) -> Format:
    """By the file's suffix.

    Raises:
        UsageError: it says nothing.
    """
    if file.suffix.lower() not in _SUFFIXES:
        known = ", ".join(get_args(Format))
        raise UsageError(
            f"{file}: the name does not say which form is wanted",
            f"add --format ({known}), or end the name with {', '.join(_SUFFIXES)}",
        )
    return _SUFFIXES[file.suffix.lower()]


def exported(
    entries: Sequence[Entry],
    form: Format,
    ks: Sequence[int] = (1,),
    tables: Sequence[str] | None = None,
) -> bytes:
    """The whole file.

    Args:
        tables: which ones, in Markdown and LaTeX; None: all (`tables.NAMES`).

    Raises:
        UsageError: pyarrow is missing, records cannot be scored together (`scores.score`), a table
            is not known, or one is named where the form has none.
    """
    if tables and form in ("csv", "parquet"):
        raise UsageError(f"{form} has a row for each attempt, and no tables", "leave --table out")
    names = tables or NAMES
    match form:
        case "csv":
            return csv_of(rows_of(entries))
        case "parquet":
            return parquet_of(rows_of(entries))
        case "markdown":
            return markdown_of(tables_of(entries, ks, names)).encode("utf-8", "replace")
        case "latex":
            return latex_of(tables_of(entries, ks, names)).encode("utf-8", "replace")
