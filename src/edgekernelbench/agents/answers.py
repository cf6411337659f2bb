"""A kernel's text out of a model's answer.

Models wrap a kernel in prose, fences, tags, JSON or quotation marks, give several, or stop in the
middle of one. What counts here is the kernel's own shape, ``kernel NAME[...](...) -> (...) {...}``
with balanced braces; fences only bound it. Of several the last complete one of the task's name is
taken (an author who corrects himself does so further down), else the last complete one, else the
last that was begun: that one is handed on as it is, for the parser to say what is missing.

An answer is untrusted text. It is only ever searched, in time that grows with its length.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_ANSWER = 4 << 20
"""Characters of an answer that are looked at, the last ones."""

MAX_KERNEL = 256 << 10
"""Characters of a kernel, and of the definitions before it, that are handed on; the parser takes
no more."""

_MAX_TRIED = 64
_MAX_JSON_DEPTH = 6

_INVISIBLE: dict[int, str | None] = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
_SPACES: dict[int, str | None] = dict.fromkeys((0x00A0, 0x2007, 0x202F), " ")
_THOUGHT = re.compile(
    r"<(/?)(?:think|thinking|thought|reasoning|scratchpad|analysis)>", re.IGNORECASE
)
_BEGIN = re.compile(r"\bkernel[ \t]+([A-Za-z_]\w*)\s*(?=[\[({])")
_FENCE = re.compile(r"^[ \t>]*(?:```+|~~~+)", re.MULTILINE)
_DEFINITION = re.compile(
    r"^(?:[ \t]*(?:>[ ]?)+|[ \t]*\d+[ \t]*[|:][ ]?|\+)?[ \t]*"
    r"(?:table[ \t]+\w+[ \t]*:|(?:template|combiner)[ \t]+\w+[ \t]*\("
    r"|def[ \t]+\w+[ \t]*\([^()\n]*\)[ \t]*=)",
    re.MULTILINE,
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}

_PREFIXES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (r"^[ \t]*(?:>[ ]?)+", r"^[ \t]*\d+[ \t]*[|:][ ]?", r"^\+")
)
"""What may stand before every line of a kernel: quotation marks, line numbers, a patch's plus."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A kernel's text as it stood in an answer.

    Attributes:
        name: of the kernel.
        complete: its braces are balanced; else the answer ends, or another fence begins, first.
    """

    text: str
    name: str
    complete: bool


def extract_kernel(answer: str, name: str | None = None) -> Extracted | None:
    """The kernel that an answer means, None where it has none.

    Args:
        name: the kernel's name in the task's header; a kernel of that name goes before others.
    """
    begun: Extracted | None = None
    for text in _readings(answer):
        found = max(_kernels(text), key=lambda one: (one.complete, one.name == name), default=None)
        if found is not None and found.complete:
            return found
        begun = begun or found
    return begun


def _readings(answer: str) -> Iterator[str]:
    """The answer's texts that may hold the kernel, those that take it most literally first."""
    plain = _without_thoughts(_clean(answer[-MAX_ANSWER:]))
    inside = _from_json(plain)
    if inside is not None:
        yield _clean(inside)
    yield plain
    for change in (html.unescape, _unescaped):
        if (changed := change(plain)) != plain:
            yield changed


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE)
    return text.translate(_SPACES)


def _without_thoughts(text: str) -> str:
    """Without what a model says to itself. Some templates swallow the opening tag, and a model
    that was stopped while thinking closes none."""
    kept: list[str] = []
    at, thinking = 0, False
    for tag in _THOUGHT.finditer(text):
        closes = bool(tag[1])
        if closes and not thinking:
            kept.clear()
        elif not closes and not thinking:
            kept.append(text[at : tag.start()])
        thinking = not closes
        at = tag.end()
    return "\n".join(kept if thinking else [*kept, text[at:]])


# ---------------------------------------------------------------- wrappings
def _from_json(text: str) -> str | None:
    """All strings of an answer that is one JSON value (fenced or not), in order."""
    body = re.sub(r"^\s*```\w*\n(.*)\n```\s*$", r"\1", text, flags=re.DOTALL).strip()
    if not body.startswith(("{", "[", '"')):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return "\n\n".join(_strings(value, 0))


def _strings(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and depth < _MAX_JSON_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item, depth + 1)


def _unescaped(text: str) -> str:
    r"""With ``\n``, ``\t`` and ``\"`` as in a string literal."""
    return re.sub(r'\\([nt"])', lambda m: {"n": "\n", "t": "\t", '"': '"'}[m[1]], text)


# ---------------------------------------------------------------- search
def _kernels(text: str) -> Iterator[Extracted]:
    """All kernels, complete or begun, from the last to the first, at most a fixed number."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    found: list[Extracted] = []
    earlier = 0  # where the complete kernel before this one ends
    for match in list(_BEGIN.finditer(text))[-_MAX_TRIED:]:
        limit = next((f for f in fences if f > match.start()), len(text))
        end = min(limit, match.start() + MAX_KERNEL)
        stop = _end(text, match.end(), end)
        margin = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        prefix = next((p for p in _PREFIXES if p.fullmatch(margin)), None)
        if stop is None and margin.strip() and prefix is None:
            continue  # the word in a sentence
        begin = _definitions(text, match.start(), earlier, fences)
        kernel = text[begin : stop or end].rstrip()
        kernel = kernel if prefix is None else prefix.sub("", kernel)
        kernel = _unescaped(kernel) if "\\" in kernel else kernel
        found.append(Extracted(kernel, match[1], stop is not None))
        earlier = stop or earlier
    yield from reversed(found)


def _end(text: str, start: int, limit: int) -> int | None:
    """Behind the brace that closes the kernel whose header goes on at ``start``; None if it is
    not closed, or if this is no header."""
    open_: list[str] = []
    at = start
    while at < limit:
        char = text[at]
        if char == "#":
            at = text.find("\n", at, limit)
            if at < 0:
                return None
        elif char in _PAIRS:
            open_.append(_PAIRS[char])
        elif open_ and char == open_[-1]:
            open_.pop()
            if not open_ and char == "}":
                return at + 1
        elif char in ")]}" or (not open_ and not char.isspace() and char not in "->"):
            return None
        at += 1
    return None


def _definitions(text: str, start: int, earlier: int, fences: list[int]) -> int:
    """Where the definitions right before a kernel begin, which belong to it: `table`, `def`,
    `template` and `combiner`. ``start`` if there are none."""
    before = max((f for f in fences if f < start), default=0)
    match = _DEFINITION.search(text, max(before, start - MAX_KERNEL, earlier), start)
    return start if match is None else match.start()
