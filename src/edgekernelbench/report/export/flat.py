"""Rows as CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from edgekernelbench.errors import UsageError
from edgekernelbench.report.export.rows import COLUMNS, Kind, Row, Value

_STEERS = ("=", "+", "-", "@", "\t", "\r")


def csv_of(rows: Iterable[Row]) -> bytes:
    """UTF-8 with a header; what is not known is empty, truths are ``true`` and ``false``.

    Records may be a stranger's, and spreadsheets take a text that begins like a formula for one:
    such a text gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(column.name for column in COLUMNS)
    for row in rows:
        writer.writerow(_cell(row[column.name]) for column in COLUMNS)
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: Value) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_STEERS):
        return f"'{value}"
    return value


def parquet_of(rows: Iterable[Row]) -> bytes:
    """One table with typed columns, compressed.

    Raises:
        UsageError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet as pq  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError(
            f"Parquet is written by pyarrow, and {error.name} is not installed",
            "pip install 'edgekernelbench[parquet]', or choose --format csv",
        ) from error
    kinds: dict[Kind, Any] = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
    }
    schema = pa.schema([(column.name, kinds[column.kind]) for column in COLUMNS])
    columns: dict[str, list[Value]] = {column.name: [] for column in COLUMNS}
    for row in rows:
        for column in COLUMNS:
            columns[column.name].append(_typed(row[column.name], column.kind))
    out = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), out, compression="zstd")
    return out.getvalue()


def _typed(value: Value, kind: Kind) -> Value:
    """A budget of so many evaluations is a whole number, whatever a record wrote."""
    if value is not None and kind in ("integer", "number"):
        return int(value) if kind == "integer" else float(value)
    return value
