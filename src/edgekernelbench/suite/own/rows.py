"""Rows of the tables for own tasks: what the packaged ones have beyond that is left empty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgekernelbench.suite.model import Definition, Workload
from edgekernelbench.suite.own.store import FAMILY

_BALANCE = 8
"""Operations a byte from which a task is called compute-bound."""


def definition_row(**fields: Any) -> Definition:
    """A definition of the family ``own``.

    Args:
        fields: those of `Definition` that such a task has.
    """
    empty: dict[str, Any] = {
        "family": FAMILY,
        "notes": "",
        "intensity": "memory-bound",
        "dtype_class": fields["dtypes"][0],
        "layout": "",
        "attrs": (),
        "derived": (),
        "touched_formula": "",
        "naive_formula": "",
        "input_gen": "",
        "small": {},
    }
    return Definition.model_validate(empty | fields)


def workload_row(
    definition: Definition, id: str, path: Path, bindings: Mapping[str, int | float]
) -> Workload:
    """A workload of it: its operations and bytes are counted, it belongs to no subset.

    Raises:
        ValueError: a formula of the definition uses an unknown name or yields no number.
    """
    workload = Workload(
        id=id,
        definition=definition,
        domain=FAMILY,
        source=path.name,
        provenance=f"file:{path.resolve()}",
        bindings=dict(bindings),
        dtype=definition.dtypes[0],
        tolerance=definition.tolerance,
        flops=0,
        bytes_min=0,
        bytes_touched=0,
        backends=("cpu_llvm", "gpu_cuda", "gpu_opencl"),
        agent=False,
        heldout=False,
        heldout_kind="",
        quick=False,
        notes="",
    )
    counted = workload.counted()
    if counted["flops"] > _BALANCE * counted["bytes_min"]:
        bound = definition.model_copy(update={"intensity": "compute-bound"})
        workload = workload.model_copy(update={"definition": bound})
    return workload.model_copy(update=counted)
