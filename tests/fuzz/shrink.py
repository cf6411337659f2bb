"""Makes a failing input small: lines first, then bracketed parts, then tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.corpus import tokens
from tests.fuzz.engine import Job, Most, run_batches

Fails = Callable[[str], bool]

_MOST_TRIES = 1500
_PAIRS = {")": "(", "]": "[", "}": "{"}
_HEAD = re.compile(r"# [a-z ]+\n")


class _Fixed:
    """A job whose one input is given."""

    def __init__(self, job: Job, text: str, seed: int) -> None:
        self.name, self.batch, self.cpu_s = job.name, 1, job.cpu_s
        self.wall_s, self.memory_bytes = job.wall_s, job.memory_bytes
        self._job, self._text, self._seed = job, text, seed

    def prepare(self) -> None:
        self._job.prepare()

    def text(self, seed: int) -> str:
        return self._text

    def check(self, text: str, seed: int, most: Most) -> str:
        return self._job.check(text, self._seed, most)


def failure_kind(job: Job, text: str, seed: int) -> str | None:
    """How an input fails in a child of its own, None if it does not."""
    batch = next(run_batches(_Fixed(job, text, seed), [(0, 1)], 1))
    return batch.failures[0].kind if batch.failures else None


def shrink(text: str, fails: Fails, tries: int = _MOST_TRIES) -> str:
    """A smaller text that still fails; ``fails`` is asked at most ``tries`` times."""
    left = tries

    def still(candidate: str) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(candidate)

    while left > 0:
        before = text
        for pieces in (_lines, tokens):
            text = _without(text, pieces, still)
            text = _simpler(text, still)
        if text == before:
            break
    return text


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _without(text: str, pieces: Callable[[str], list[str]], still: Fails) -> str:
    """Delta debugging: runs of pieces are dropped, the runs growing shorter."""
    items = pieces(text)
    size = max(1, len(items) // 2)
    while size:
        at = 0
        while at < len(items):
            candidate = "".join([*items[:at], *items[at + size :]])
            if candidate.strip() and still(candidate):
                items = [*items[:at], *items[at + size :]]
            else:
                at += size
        size //= 2
    return "".join(items)


def _simpler(text: str, still: Fails) -> str:
    """Bracketed parts become one of their own parts, or a number."""
    progress = True
    while progress:
        progress = False
        for candidate in _replacements(text):
            if len(candidate) < len(text) and still(candidate):
                text, progress = candidate, True
                break
    return text


def _replacements(text: str) -> Iterator[str]:
    """Texts with one bracketed part, the longest first, put more simply."""
    spans = sorted(_spans(text), key=lambda span: span[0] - span[1])
    for low, high in spans:
        call = len(text[:low]) - len(re.split(r"\w+$", text[:low])[0])
        for start in {low - call, low}:
            for new in ("1", "1.0", "(i)"):
                yield text[:start] + new + text[high:]
            for inner_low, inner_high in spans:
                if low < inner_low and inner_high < high:
                    yield text[:start] + text[inner_low:inner_high] + text[high:]


def _spans(text: str) -> list[tuple[int, int]]:
    stack: list[int] = []
    out = []
    for at, character in enumerate(text):
        if character in "([{":
            stack.append(at)
        elif character in _PAIRS and stack and text[stack[-1]] == _PAIRS[character]:
            out.append((stack.pop(), at + 1))
    return out


def shrink_file(file: Path) -> str:
    """A smaller form of the input in ``JOB-SEED….ekir``, first line kept.

    Raises:
        ValueError: the input does not fail.
    """
    from tests.fuzz.jobs import job_of

    job, seed = job_of(file)
    job.prepare()
    text = file.read_text(errors="surrogatepass")
    head = _HEAD.match(text)
    head = "" if head is None else head.group()
    kind = failure_kind(job, text, seed)
    if kind is None:
        raise ValueError(f"{file} does not fail")
    small = shrink(text[len(head) :], lambda t: failure_kind(job, head + t, seed) == kind)
    return f"{head}{small}"
