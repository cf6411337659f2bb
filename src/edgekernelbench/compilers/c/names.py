"""Names of the kernel as names in C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from edgekernelbench.compilers.c.functions import library

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof linux unix i386 main NULL offsetof ptrdiff_t size_t wchar_t max_align_t
INLINE SIMD UNROLL UNROLL_TEXT NATIVE_HALVES mad_f32 mad_f64
all any at begin data data_of end failed failure group kernel now_ns prepack share task tasks tensor
"""
_KEYWORDS = frozenset(_WORDS.split())
"""Of C, of what compilers and headers define, and of the frame of a source."""


def reserved(name: str) -> bool:
    """Whether the source gives that name a meaning of its own."""
    if name in _KEYWORDS or name in library() or name.startswith("_"):
        return True
    parts = r"(kernel|prepack)_\d+"  # bodies of parallel loops
    macros = r"[A-Z]+_[A-Z_]+|W[A-Z]{4,}|NFDBITS"  # of the system's headers
    return re.fullmatch(rf"u?int\w*_t|U?INT\w*|{macros}|{parts}", name) is not None


@dataclass(slots=True)
class Names:
    """Names that are in use at a place of a function: no two that can be seen are alike."""

    _active: set[str] = field(default_factory=set)

    def new(self, wish: str) -> str:
        """A name like ``wish`` that is free here; it stays in use until the block ends."""
        plain = re.sub(r"\W", "_", wish)
        plain = plain if plain[0].isalpha() and not reserved(plain) else f"v_{plain}"
        name, number = plain, 2
        while name in self._active or reserved(name):
            name, number = f"{plain}_{number}", number + 1
        self._active.add(name)
        return name

    @contextmanager
    def block(self) -> Iterator[None]:
        """A block: what is named in it is free again behind it."""
        before = set(self._active)
        yield
        self._active.clear()
        self._active.update(before)
