"""Numbers with units, as people write them: ``8 GiB``, ``17 GB/s``, ``1.28 Top/s``."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

_BINARY = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}
_DECIMAL = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_NUMBER = r"(\d{1,18}(?:\.\d{1,9})?(?:[eE]\+?\d{1,2})?)"
_SIZE = re.compile(rf"{_NUMBER}\s*(?:(Ki|Mi|Gi)B|(k|M|G|T)?B)")
_RATE = re.compile(rf"{_NUMBER}\s*(k|M|G|T|P)?(B|op)/s")


def _bytes(value: Any) -> Any:
    """An integer number of bytes; what is no text stays as it is."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise ValueError("a size is a number of bytes, or a text like '512 KiB', '8 GiB', '141 GB'")
    number, binary, decimal = found.groups()
    scale = (1 << _BINARY[binary]) if binary else 10 ** _DECIMAL[decimal or ""]
    size = Decimal(number) * scale
    if size != int(size):
        raise ValueError(f"{value!r} is not a whole number of bytes")
    return int(size)


def _rate(value: Any) -> Any:
    """A number a second; what is no text stays as it is."""
    if not isinstance(value, str):
        return value
    found = _RATE.fullmatch(value.strip())
    if found is None:
        raise ValueError("a rate is a number a second, or a text like '17 GB/s', '1.28 Top/s'")
    number, prefix, _ = found.groups()
    return float(Decimal(number) * 10 ** _DECIMAL[prefix or ""])


def _plain(value: Any) -> Any:
    """Python counts True as 1."""
    if isinstance(value, bool):
        raise ValueError("yes or no is not a number")
    return value


_MOST = 1 << 50
"""A petabyte: what is more is a slip."""

Bytes = Annotated[int, Field(gt=0, le=_MOST), BeforeValidator(_bytes), BeforeValidator(_plain)]
"""A size above zero."""

Rate = Annotated[float, Field(gt=0, le=1e18), BeforeValidator(_rate), BeforeValidator(_plain)]
"""Bytes or operations a second, above zero."""

Count = Annotated[int, Field(gt=0, le=1 << 31, strict=True)]
"""A number of things, above zero."""
