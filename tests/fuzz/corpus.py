"""Kernel texts that are right: what mutations start from."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import edgekernelbench

ROOT = Path(__file__).parents[2]
CANONICAL = Path(edgekernelbench.__file__).parent / "suite" / "canonical"
EXAMPLES = Path(__file__).parents[1] / "data"


@functools.cache
def valid_texts() -> tuple[str, ...]:
    """Canonical programs, examples with and without layers, blocks of the guide."""
    files = [*sorted(CANONICAL.glob("*.ekir")), *sorted(EXAMPLES.glob("examples*/*.ekir"))]
    guide = re.findall(r"```ekir\n(.*?)```", (ROOT / "docs" / "ir.md").read_text(), re.DOTALL)
    return (*(file.read_text() for file in files), *guide)


@functools.cache
def short_texts(most: int = 500) -> tuple[str, ...]:
    """The short ones: many more of them are parsed in the same time."""
    return tuple(text for text in valid_texts() if len(text) <= most)


_TOKEN = re.compile(r"\s+|#[^\n]*|[A-Za-z_]\w*|\d[\w.]*|\*\*|//|<<|>>|<=|>=|==|!=|->|\.\.|.")


def tokens(text: str) -> list[str]:
    """Pieces that joined give the text."""
    return _TOKEN.findall(text)


@functools.cache
def vocabulary() -> tuple[str, ...]:
    """Every token of the corpus once, and some that no kernel has."""
    found = {token for text in valid_texts() for token in tokens(text) if not token.isspace()}
    rare = {
        "0x7fffffff", "9" * 30, "1e308", "1e-400", "0xG", "1..2", "?{", "?", "\\", "'", '"""', "@",
        "__", "s8(", "\x00", "\ufeff", "é", "\U0001f600", "\u2028", "\r", "\t", "`", "$", "!", "~~",
    }  # fmt: skip
    return tuple(sorted(found | rare))
