"""The packaged tables as a `Suite`: two CSV files a family. Loading imports no pattern."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, TypeVar

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.model import Definition, TensorDecl, Workload
from edgekernelbench.suite.rows import first_fault, pair, split, tensors

Row = dict[str, str]
T = TypeVar("T")

SUBSETS = ("quick", "agent", "heldout", "all")


@dataclass(frozen=True)
class Suite:
    """Definitions and workloads by id, in the order of the tables."""

    definitions: Mapping[str, Definition]
    workloads: Mapping[str, Workload]

    def subset(self, name: str) -> tuple[Workload, ...]:
        """The workloads of a named subset.

        Raises:
            UsageError: no such subset.
        """
        match name:
            case "all":
                return tuple(self.workloads.values())
            case "quick":
                return tuple(w for w in self.workloads.values() if w.quick)
            case "agent":
                return tuple(w for w in self.workloads.values() if w.agent)
            case "heldout":
                return tuple(w for w in self.workloads.values() if w.heldout)
        raise UsageError(f"unknown subset {name!r}", f"subsets: {', '.join(SUBSETS)}")

    def stats(self) -> dict[str, Any]:
        """Counts for ``ekb suite stats``; the ``by_`` tables count workloads."""
        workloads = self.workloads.values()
        return {
            "patterns": len(self.definitions),
            "workloads": len(self.workloads),
            "by_level": _count(str(w.level) for w in workloads),
            "by_family": _count(w.family for w in workloads),
            "by_domain": _count(w.domain for w in workloads),
            "by_dtype": _count(w.dtype for w in workloads),
            "by_tolerance": _count(w.tolerance for w in workloads),
            "by_subset": {name: len(self.subset(name)) for name in SUBSETS},
        }


def _count(keys: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(keys).items()))


@cache
def load_suite() -> Suite:
    """The packaged suite.

    Raises:
        UsageError: a row of its tables is malformed; names file and row.
    """
    return read_tables(resources.files("edgekernelbench.suite") / "data")


def read_tables(folder: Traversable) -> Suite:
    """The suite of the tables in ``folder``; see `load_suite`."""
    definitions: dict[str, Definition] = {}
    for place, row in _rows(folder / "patterns"):
        definition = _located(place, row, _definition)
        _new(definition.id, definitions, place)
        definitions[definition.id] = definition
    workloads: dict[str, Workload] = {}
    for place, row in _rows(folder / "workloads"):
        workload = _located(place, row, lambda row: _workload(row, definitions))
        _new(workload.id, workloads, place)
        workloads[workload.id] = workload
    return Suite(MappingProxyType(definitions), MappingProxyType(workloads))


def _rows(folder: Traversable) -> Iterable[tuple[str, Row]]:
    """The rows of all families with the place of each, families in alphabetical order."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".csv"):
            text = io.StringIO(file.read_text(encoding="utf-8"), newline="")
            for number, row in enumerate(csv.DictReader(text), 2):
                yield f"{folder.name}/{file.name}, row {number}", row


def _located(place: str, row: Row, make: Callable[[Row], T]) -> T:
    """What ``make`` makes of a row; what is wrong with it is told with its place."""
    try:
        _check_cells(row)
        return make(row)
    except KeyError as error:
        message = f"there is no {error.args[0]!r}, neither as a column nor as a pattern"
    except ValueError as error:  # pydantic's are ValueErrors too
        message = first_fault(error)
    name = row.get("workload_id") or row.get("pattern_id") or "no id"
    raise UsageError(f"{place} ({name}): {message}", "put that cell right")


def _check_cells(row: Mapping[Any, Any]) -> None:
    """Raises ValueError for a row that the CSV reader had to pad, or had cells left over from."""
    columns = [name for name in row if name is not None]
    cells = sum(row[name] is not None for name in columns) + len(row.get(None) or [])
    if cells != len(columns):
        raise ValueError(f"it has {cells} cells, the table {len(columns)} columns")


def _cell(row: Row, column: str, parse: Callable[[str], T]) -> T:
    """A cell that is more than text; what is wrong with it is told with its column."""
    text = row[column]
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{column}: {first_fault(error)}") from error


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"{text!r} is neither 0 nor 1")
    return text == "1"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError(f"{text!r} is not JSON") from None


def _names(text: str) -> tuple[str, ...]:
    names = split(text, ",")
    for name in names:
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name; names are separated by ','")
    return names


def _inputs(row: Row) -> tuple[TensorDecl, ...]:
    """Inputs with their const marks: a mark that fits none would silently mark nothing."""
    const = split(row["const"], ";")
    inputs = _cell(row, "inputs", lambda text: tensors(text, frozenset(const)))
    known = [decl.name for decl in inputs]
    for name in const:
        if name not in known:
            raise ValueError(f"const: {name!r} is no input ({', '.join(known)})")
    return inputs


def _new(id: str, known: Mapping[str, object], place: str) -> None:
    if id in known:
        raise UsageError(f"{place}: {id} stands in the table twice", "ids are unique")


def _definition(row: Row) -> Definition:
    return Definition(
        id=row["pattern_id"],
        level=_cell(row, "level", _whole),  # type: ignore[arg-type]  # pydantic checks the range
        family=row["family"],
        formula=row["definition"],
        inputs=_inputs(row),
        outputs=_cell(row, "outputs", tensors),
        notes=row["notes"],
        tolerance=row["tolerance"],  # type: ignore[arg-type]
        intensity=row["intensity"],  # type: ignore[arg-type]
        dtype_class=row["dtype_class"],
        dtypes=split(row["dtypes"], "|"),
        layout=row["layout"],
        attrs=_cell(row, "attrs", _names),
        derived=_cell(row, "derived", lambda text: tuple(map(pair, split(text, ";")))),
        flops_formula=row["flops_formula"],
        touched_formula=row["touched_formula"],
        naive_formula=row["naive_formula"],
        input_gen=row["input_gen"],
        accumulation=row["accumulation"],
        lsb_share=_cell(row, "lsb_share", lambda text: _number(text or "0.001")),
        small=_cell(row, "small", lambda text: {n: _json(v) for n, v in map(pair, text.split())}),
    )


def _workload(row: Row, definitions: Mapping[str, Definition]) -> Workload:
    return Workload(
        id=row["workload_id"],
        definition=definitions[row["pattern_id"]],
        domain=row["domain"],
        source=row["source"],
        provenance=row["provenance"],
        bindings=_cell(row, "bindings", _json),
        dtype=row["dtype"],
        tolerance=row["tolerance"],  # type: ignore[arg-type]
        flops=_cell(row, "flops", _whole),
        bytes_min=_cell(row, "bytes_min", _whole),
        bytes_touched=_cell(row, "bytes_touched", _whole),
        backends=split(row["backends"], ";"),
        agent=_cell(row, "agent_subset", _flag),
        heldout=_cell(row, "heldout", _flag),
        heldout_kind=row["heldout_kind"],
        quick=_cell(row, "quick", _flag),
        notes=row["notes"],
    )
