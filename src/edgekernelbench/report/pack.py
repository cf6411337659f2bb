"""Data that a page carries: JSON, compressed, as text; and texts that share their paragraphs."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any


def pack(value: Any) -> str:
    """JSON in gzip in base64. The same value gives the same text."""
    plain = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return base64.b64encode(gzip.compress(plain.encode("utf-8"), 9, mtime=0)).decode("ascii")


def unpack(text: str) -> Any:
    """What `pack` was given."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


class Pool:
    """Long texts as lists of numbers of their paragraphs, each kept once.

    Prompts of one run share most of what they say, at distances that gzip does not look back to.
    """

    def __init__(self) -> None:
        self.paragraphs: list[str] = []
        self._numbers: dict[str, int] = {}

    def put(self, text: str) -> list[int]:
        """Numbers of the paragraphs that, joined by empty lines, are the text."""
        return [self._number(paragraph) for paragraph in text.split("\n\n")]

    def get(self, numbers: list[int]) -> str:
        """The text that `put` gave the numbers of."""
        return "\n\n".join(self.paragraphs[number] for number in numbers)

    def _number(self, paragraph: str) -> int:
        number = self._numbers.setdefault(paragraph, len(self.paragraphs))
        if number == len(self.paragraphs):
            self.paragraphs.append(paragraph)
        return number
