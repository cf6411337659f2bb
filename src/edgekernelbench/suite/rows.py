"""The small languages of table cells: tensors, lists, named formulas.

Errors are `ValueError` with the part that is wrong; who reads the table adds where it stands.
"""

from __future__ import annotations

from pydantic import ValidationError

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import TensorDecl

_DTYPES = frozenset(DType)


def tensors(text: str, const: frozenset[str] = frozenset()) -> tuple[TensorDecl, ...]:
    """``name:[dim,dim]:dtype; ...``; a dim may hold parentheses but no comma.

    Raises:
        ValueError: a part is not of that form, or a name stands twice.
    """
    decls = tuple(_tensor(part, const) for part in split(text, ";"))
    names = [decl.name for decl in decls]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is declared twice")
    return decls


def pair(text: str) -> tuple[str, str]:
    """``name=formula``.

    Raises:
        ValueError: it has no ``=``, or no name before it.
    """
    name, sign, formula = text.partition("=")
    if not sign or not name.strip().isidentifier() or not formula.strip():
        raise ValueError(f"{text.strip()!r} is not name=formula")
    return name.strip(), formula.strip()


def split(text: str, separator: str) -> tuple[str, ...]:
    """The parts that are not blank, blanks around them taken off."""
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def first_fault(error: ValueError) -> str:
    """What is wrong, in one line; of a model's validation errors the first, with its field."""
    if isinstance(error, ValidationError):
        found = error.errors()[0]
        field = ".".join(str(part) for part in found["loc"])
        return f"{field}: {found['msg']}" if field else str(found["msg"])
    return str(error).partition("\n")[0]


def _tensor(part: str, const: frozenset[str]) -> TensorDecl:
    name, _, rest = (piece.strip() for piece in part.partition(":"))
    dims, _, dtype = (piece.strip() for piece in rest.rpartition(":"))
    if not name.isidentifier() or not (dims.startswith("[") and dims.endswith("]")):
        raise ValueError(f"{part!r} is not name:[dims]:dtype")
    if dtype != "T" and dtype not in _DTYPES:
        raise ValueError(f"{part!r} has the unknown dtype {dtype!r}; there are {', '.join(DType)}")
    return TensorDecl(
        name=name,
        dims=split(dims[1:-1], ","),
        dtype=None if dtype == "T" else DType(dtype),
        const=name in const,
    )
