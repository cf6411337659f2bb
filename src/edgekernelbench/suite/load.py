"""The packaged tables as a `Suite`: two CSV files a family. Loading imports no pattern."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import Definition, TensorDecl, Workload

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
    """The packaged suite."""
    definitions = {row["pattern_id"]: _definition(row) for row in _rows("patterns")}
    workloads = {
        row["workload_id"]: _workload(row, definitions[row["pattern_id"]])
        for row in _rows("workloads")
    }
    return Suite(MappingProxyType(definitions), MappingProxyType(workloads))


def _rows(kind: str) -> Iterable[dict[str, str]]:
    """The rows of all families, families in alphabetical order."""
    folder = resources.files("edgekernelbench.suite") / "data" / kind
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".csv"):
            yield from csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))


def _definition(row: dict[str, str]) -> Definition:
    const = frozenset(_split(row["const"], ";"))
    return Definition(
        id=row["pattern_id"],
        level=int(row["level"]),  # type: ignore[arg-type]  # pydantic checks the range
        family=row["family"],
        formula=row["definition"],
        inputs=_tensors(row["inputs"], const),
        outputs=_tensors(row["outputs"], frozenset()),
        notes=row["notes"],
        tolerance=row["tolerance"],  # type: ignore[arg-type]
        intensity=row["intensity"],  # type: ignore[arg-type]
        dtype_class=row["dtype_class"],
        dtypes=_split(row["dtypes"], "|"),
        layout=row["layout"],
        attrs=_split(row["attrs"], ","),
        derived=tuple(_pair(part) for part in _split(row["derived"], ";")),
        flops_formula=row["flops_formula"],
        touched_formula=row["touched_formula"],
        naive_formula=row["naive_formula"],
        input_gen=row["input_gen"],
        accumulation=row["accumulation"],
        lsb_share=float(row["lsb_share"] or 0.001),
        small={name: json.loads(value) for name, value in map(_pair, row["small"].split())},
    )


def _workload(row: dict[str, str], definition: Definition) -> Workload:
    return Workload(
        id=row["workload_id"],
        definition=definition,
        domain=row["domain"],
        source=row["source"],
        provenance=row["provenance"],
        bindings=json.loads(row["bindings"]),
        dtype=row["dtype"],
        tolerance=row["tolerance"],  # type: ignore[arg-type]
        flops=int(row["flops"]),
        bytes_min=int(row["bytes_min"]),
        bytes_touched=int(row["bytes_touched"]),
        backends=_split(row["backends"], ";"),
        agent=row["agent_subset"] == "1",
        heldout=row["heldout"] == "1",
        heldout_kind=row["heldout_kind"],
        quick=row["quick"] == "1",
        notes=row["notes"],
    )


def _tensors(text: str, const: frozenset[str]) -> tuple[TensorDecl, ...]:
    """``name:[dim,dim]:dtype; ...``; a dim may hold parentheses but no comma."""
    decls = []
    for part in _split(text, ";"):
        name, rest = part.split(":", 1)
        dims, dtype = rest.rsplit(":", 1)
        decls.append(
            TensorDecl(
                name=name.strip(),
                dims=_split(dims.strip().strip("[]"), ","),
                dtype=None if dtype.strip() == "T" else DType(dtype.strip()),
                const=name.strip() in const,
            )
        )
    return tuple(decls)


def _pair(text: str) -> tuple[str, str]:
    name, formula = text.split("=", 1)
    return name.strip(), formula.strip()


def _split(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())
