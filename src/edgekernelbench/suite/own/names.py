"""Names that the kernel language can write, made of names that it cannot."""

from __future__ import annotations

import re
from collections.abc import Container

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.core import INTRINSICS
from edgekernelbench.ir.words import REDUCTIONS, RESERVED, SECTION_WORDS, STATEMENT_WORDS

_WORDS = {*RESERVED, *REDUCTIONS, *INTRINSICS, *SECTION_WORDS, *STATEMENT_WORDS}
_WORDS |= {"kernel", "inf", "pi", "pad", "edge", "dim", "clip", "clamp", "pow", "relu", "sigmoid"}


def plain(text: str, taken: Container[str] = (), stem: str = "t") -> str:
    """``text`` with ``_`` for what no name can hold, never two in a row, and a number behind it
    if it is taken; never a word of the language."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    if not word or not word[0].isalpha():
        word = f"{stem}_{word}".rstrip("_")
    if word in _WORDS:
        word += "_"
    name, number = word, 1
    while name in taken:
        number += 1
        name = f"{word}_{number}"
    return name


def suite_name(given: str | None, default: str) -> str:
    """The name of an own suite: as given, or made of a file's or folder's name.

    Raises:
        UsageError: the name given is none.
    """
    if given is None:
        return plain(default, stem="suite")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", given) or "__" in given or given in _WORDS:
        raise UsageError(
            f"--name {given}: not a name",
            f"letters, digits and single _, a letter first; {plain(given, stem='suite')} would do",
        )
    return given
