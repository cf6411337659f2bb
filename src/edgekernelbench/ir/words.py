"""The words of the kernel language, and what writers of other languages call them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from edgekernelbench.ir.dtypes import DType

DTYPES = frozenset(d.value for d in DType)

RESERVED = DTYPES | frozenset(
    ("if", "else", "and", "or", "not", "where", "return", "let", "seq", "each", "def", "template")
    + ("reversed", "for", "parallel", "vectorize", "unroll")
)
"""Words that can be no names. The other words of the language (`table`, `layout`, ...) can."""

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")

STATEMENT_WORDS = ("seq", "each", "let", "table", "def", "template")
SECTION_WORDS = ("compute", "schedule", "memory")
SCHEDULE_WORDS = ("loops", "place", "inline")
MEMORY_WORDS = ("layout",)
PIECE_WORDS = ("parallel", "vectorize", "unroll", "by")
INFIX_WORDS = ("and", "or", "not", "if", "else", "where")

DTYPE_ALIASES: dict[str, str | None] = {
    **{word: "f16" for word in ("float16", "half", "fp16", "_Float16")},
    **{word: "f32" for word in ("float32", "float", "fp32", "single", "float32_t")},
    **{word: "f64" for word in ("float64", "double", "fp64")},
    **{word: "s8" for word in ("int8", "i8", "int8_t", "char", "qint8")},
    **{word: "u8" for word in ("uint8", "uint8_t", "uchar", "byte", "quint8")},
    **{word: "s16" for word in ("int16", "i16", "int16_t", "short")},
    **{word: "u16" for word in ("uint16", "uint16_t", "ushort")},
    **{word: "s32" for word in ("int32", "i32", "int", "int32_t")},
    **{word: "u32" for word in ("uint32", "uint32_t", "uint", "unsigned")},
    **{word: "s64" for word in ("int64", "i64", "long", "int64_t")},
    **{word: "bool" for word in ("boolean", "bool_", "i1", "b1", "u1")},
    **dict.fromkeys(("bf16", "bfloat16", "u64", "uint64", "uint64_t", "f8", "fp8", "s4", "int4")),
}
"""Spellings of other languages; None for dtypes that the language does not have."""


def word_set(text: str) -> frozenset[str]:
    """The blank-separated words of a text."""
    return frozenset(text.split())


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a word most probably is a misspelling of."""
    if not 2 <= len(word) <= 32:
        return None
    close = difflib.get_close_matches(word.lower(), list(candidates), n=1, cutoff=0.72)
    return close[0] if close else None
