"""The words of the kernel language."""

from __future__ import annotations

from edgekernelbench.ir.dtypes import DType

DTYPES = frozenset(d.value for d in DType)

RESERVED = DTYPES | frozenset(
    ("if", "else", "and", "or", "not", "where", "return", "let", "seq", "each", "def", "template")
    + ("reversed", "for", "parallel", "vectorize", "unroll")
)
"""Words that can be no names. The other words of the language (`table`, `layout`, ...) can."""
