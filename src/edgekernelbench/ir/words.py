"""The words of the kernel language, and what writers of other languages call them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from edgekernelbench.ir.dtypes import DType

DTYPES = frozenset(d.value for d in DType)

_KEYWORDS = "if else and or not where return let seq each def template reversed for"
RESERVED = DTYPES | frozenset(f"{_KEYWORDS} parallel vectorize unroll dot4".split())
"""Words that can be no names. The other words of the language (`table`, `layout`, ...) can."""

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")

STATEMENT_WORDS = ("seq", "each", "let", "table", "def", "template", "combiner")
SECTION_WORDS = ("compute", "schedule", "memory")
SCHEDULE_WORDS = ("loops", "wave", "place", "inline", "option")
MEMORY_WORDS = ("layout", "cache", "prefetch")
LINE_WORDS = SCHEDULE_WORDS + MEMORY_WORDS
DEFINITION_WORDS = ("def", "combiner", "template", "table")
PIECE_WORDS = (
    "parallel", "block", "thread", "warp", "vectorize", "unroll", "scatter", "dot4", "mma", "by",
)  # fmt: skip
INFIX_WORDS = ("and", "or", "not", "if", "else", "where")

DTYPE_ALIASES: dict[str, str | None] = {
    **dict.fromkeys(("float16", "half", "fp16", "_Float16"), "f16"),
    **dict.fromkeys(("float32", "float", "fp32", "single", "float32_t"), "f32"),
    **dict.fromkeys(("float64", "double", "fp64"), "f64"),
    **dict.fromkeys(("int8", "i8", "int8_t", "char", "qint8"), "s8"),
    **dict.fromkeys(("uint8", "uint8_t", "uchar", "byte", "quint8"), "u8"),
    **dict.fromkeys(("int16", "i16", "int16_t", "short"), "s16"),
    **dict.fromkeys(("uint16", "uint16_t", "ushort"), "u16"),
    **dict.fromkeys(("int32", "i32", "int", "int32_t"), "s32"),
    **dict.fromkeys(("uint32", "uint32_t", "uint", "unsigned"), "u32"),
    **dict.fromkeys(("int64", "i64", "long", "int64_t"), "s64"),
    **dict.fromkeys(("boolean", "bool_", "i1", "b1", "u1"), "bool"),
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
