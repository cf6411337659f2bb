"""The manifest of a library that was built from a loop program."""

from __future__ import annotations

from pathlib import Path

from edgekernelbench.compilers.base import Argument, Manifest, Role
from edgekernelbench.compilers.bill import static_facts
from edgekernelbench.compilers.elf import code_bytes
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.lowering import nest
from edgekernelbench.targets.model import Target

MANIFEST = "manifest.json"


def make_manifest(
    module: nest.Module, program: Program, target: Target, library: Path, seconds: float
) -> Manifest:
    """How to call ``library``, and its bill."""
    tables = {table.tensor.name: table for table in program.tables}
    packed = {tensor.name for tensor in module.packed}
    prepack = () if module.prepack is None else module.prepack.params
    arguments = {t.name: _argument(t, packed) for t in (*module.main.params, *prepack)}
    used = [name for name in arguments if name in tables]
    return Manifest(
        kernel=program.name,
        target=target.name,
        library=library.name,
        arguments=tuple(arguments.values()),
        main_args=tuple(t.name for t in module.main.params),
        prepack_args=tuple(t.name for t in prepack),
        tables={name: tables[name].values for name in used},
        facts=static_facts(module, program, code_bytes(library), seconds),
    )


def _argument(tensor: Tensor, packed: set[str]) -> Argument:
    role: Role
    if tensor.name in packed:
        role = "packed"
    elif tensor.kind == "input":
        role = "const" if tensor.const else "input"
    elif tensor.kind == "output":
        role = "output"
    elif tensor.kind == "table":
        role = "table"
    else:
        raise ValueError(f"stage '{tensor.name}' is a parameter but is not packed")
    return Argument(name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, role=role)
