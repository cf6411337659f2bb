"""Inputs for the parser: random characters, token soup, mutations of kernels that are right."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.corpus import short_texts, tokens, valid_texts, vocabulary

_BRACKETS = ("(", ")", "[", "]", "{", "}")
_REPEATED = ("-", "(", "[", "{", "not ", "~", "1+", "f(", "a if b else ", "x[", "{ let a = ", "**")
_TIMES = (50, 50, 50, 50, 300, 300, 300, 2000, 2000, 20_000)
_LEAST_FULL = 20  # one mutation in so many starts from a text of any length


def parser_input(seed: int) -> str:
    """One text, mostly short: 3 in 20 random characters, 3 token soup, the rest mutations."""
    rng = random.Random(f"parser {seed}")
    way = rng.random()
    if way < 0.15:
        return _characters(rng)
    if way < 0.3:
        return _soup(rng)
    if way < 0.31:
        return _deep(rng)
    texts = valid_texts() if rng.randrange(_LEAST_FULL) == 0 else short_texts()
    text = rng.choice(texts)
    if rng.random() < 0.55:
        text = _window(text, rng)
    return mutated(text, rng)


def mutated(text: str, rng: random.Random) -> str:
    """The text with one change or a few."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        text = rng.choice(_MUTATIONS)(text, rng)
    return text


# ---------------------------------------------------------------- from nothing
def _characters(rng: random.Random) -> str:
    length = int(rng.paretovariate(0.7) * 4) % 2000
    match rng.randrange(4):
        case 0:
            return "".join(chr(rng.randrange(1, 128)) for _ in range(length))
        case 1:
            pool = "ijkxy01.,:;=+-*/%<>()[]{}#?@ \n"
            return "".join(rng.choice(pool) for _ in range(length))
        case 2:
            points = (rng.randrange(0x110000) for _ in range(length % 200))
            return "".join(chr(p) for p in points)  # lone surrogates, too
    return bytes(rng.randrange(256) for _ in range(length)).decode("latin-1")


def _soup(rng: random.Random) -> str:
    words = vocabulary()
    count = rng.randrange(1, 60)
    body = rng.choice((" ", "", "\n", " ")).join(rng.choice(words) for _ in range(count))
    if rng.random() < 0.5:
        return body
    return "kernel k(x: f32[4]) -> (y: f32[4]) { compute { " + body + rng.choice(("", " } }"))


def _deep(rng: random.Random) -> str:
    """Something repeated often, where an expression or a statement may stand."""
    unit, times = rng.choice((*_REPEATED, *_BRACKETS)), rng.choice(_TIMES)
    body = unit * times + rng.choice(("1", "x[i]", "", ")" * times))
    head = "kernel k(x: f32[4]) -> (y: f32[4]) { compute { "
    return rng.choice(
        (body, f"{head}y[i] = {body} }} }}", f"{head}{body} }} }}", f"def f(a) = {body}")
    )


# ---------------------------------------------------------------- from something
def _window(text: str, rng: random.Random) -> str:
    """A part of the text, cut at any character."""
    low = rng.randrange(len(text) + 1)
    return text[:low] if rng.random() < 0.5 else text[low : low + rng.randrange(400)]


def _span(items: list[str], rng: random.Random) -> tuple[int, int]:
    low = rng.randrange(len(items) + 1)
    return low, min(len(items), low + rng.choice((0, 1, 1, 1, 2, 3, 10)))


def _replace_token(text: str, rng: random.Random) -> str:
    items = tokens(text)
    low, high = _span(items, rng)
    new = [rng.choice(vocabulary()) for _ in range(rng.choice((0, 1, 1, 2)))]
    return "".join([*items[:low], *new, *items[high:]])


def _copy_tokens(text: str, rng: random.Random) -> str:
    """A piece of this or another kernel put somewhere else."""
    source = tokens(text if rng.random() < 0.5 else rng.choice(short_texts()))
    low, high = _span(source, rng)
    items = tokens(text)
    at = rng.randrange(len(items) + 1)
    return "".join([*items[:at], *source[low : high + rng.randrange(12)], *items[at:]])


def _swap_tokens(text: str, rng: random.Random) -> str:
    items = tokens(text)
    if len(items) > 1:
        a, b = rng.randrange(len(items)), rng.randrange(len(items))
        items[a], items[b] = items[b], items[a]
    return "".join(items)


def _character(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    new = rng.choice(("", chr(rng.randrange(1, 256)), rng.choice(_BRACKETS)))
    return text[:at] + new + text[at + rng.randrange(2) :]


def _line(text: str, rng: random.Random) -> str:
    """A line doubled, dropped or moved."""
    lines = text.splitlines(keepends=True) or [""]
    taken = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), taken)
    return "".join(lines)


def _number(text: str, rng: random.Random) -> str:
    """A number becomes another one, an extreme one now and then."""
    items = tokens(text)
    spots = [k for k, item in enumerate(items) if item[0].isdigit()]
    if spots:
        extremes = ("0", "-1", "1", "1e309", "2147483648", "9223372036854775808", "0.5", "1" * 400)
        items[rng.choice(spots)] = rng.choice((*extremes, str(rng.randrange(300))))
    return "".join(items)


_MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    _replace_token, _replace_token, _copy_tokens, _swap_tokens, _character, _line, _number,
)  # fmt: skip


# ---------------------------------------------------------------- changes that often stay legal
_CLASSES: tuple[tuple[str, ...], ...] = (
    ("+", "-", "*"), ("//", "%"), ("<", "<=", ">", ">=", "==", "!="), ("and", "or"),
    ("sum", "max", "min", "prod"), ("argmax", "argmin"), ("any", "all"), ("pad", "edge"),
    ("relu", "abs", "tanh", "exp", "sqrt", "sigmoid", "floor", "rne", "erf", "silu", "gelu"),
    ("f16", "f32", "f64"), ("s8", "u8", "s16", "u16"), ("s32", "s64", "u32"), ("seq", "each"),
)  # fmt: skip


def varied(text: str, rng: random.Random) -> str:
    """A few tokens exchanged for others of their kind: numbers, names, operators, functions."""
    items = tokens(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        spot = rng.choice([k for k, item in enumerate(items) if not item.isspace()] or [0])
        items[spot] = _alike(items[spot], items, rng)
    return "".join(items)


def _alike(token: str, items: list[str], rng: random.Random) -> str:
    for alike in _CLASSES:
        if token in alike:
            return rng.choice(alike)
    if token.isdigit():
        return str(max(0, int(token) + rng.choice((-2, -1, 1, 2, 7))))
    if token[0].isdigit():
        return rng.choice(("0.5", "1.0", "3.25", "1e-3"))
    if token.isidentifier():
        names = sorted({item for item in items if item.isidentifier() and len(item) <= 3})
        return rng.choice(names or [token])
    return token
