"""Names that the kernel language can write, made of names that it cannot."""

from __future__ import annotations

import re
from collections.abc import Container

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.core import INTRINSICS
from edgekernelbench.ir.words import REDUCTIONS, RESERVED, SECTION_WORDS, STATEMENT_WORDS

_FUNCTIONS = {*REDUCTIONS, *INTRINSICS, "clip", "clamp", "pow", "relu", "sigmoid"}
_WORDS = {*RESERVED, *_FUNCTIONS, *SECTION_WORDS, *STATEMENT_WORDS}
_WORDS |= {"kernel", "inf", "pi", "pad", "edge", "dim"}


MAX_NAME = 64
"""Letters of a name that becomes part of a file's name."""


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
        return _fitting(default)
    if len(given) > MAX_NAME:
        raise UsageError(
            f"--name {given[:20]}...: {len(given)} letters", f"at most {MAX_NAME} letters"
        )
    spelled = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", given, re.ASCII)
    if given in _WORDS:
        kind = "a function" if given in _FUNCTIONS else "a word"
        raise UsageError(
            f"--name {given}: that is {kind} of the kernel language", f"{_fitting(given)} would do"
        )
    if not spelled or "__" in given or given[-1] == "_":
        raise UsageError(
            f"--name {given}: not a name",
            "letters, digits and single _, a letter first and no _ last; "
            f"{_fitting(given)} would do",
        )
    return given


def _fitting(text: str) -> str:
    """Without ``_`` at its end: what follows it in a task's name is ``__``."""
    word = plain(text[:MAX_NAME], stem="suite")
    return f"own_{word[:-1]}" if word.endswith("_") else word
