"""YAML as data with places: mappings, lists, texts and numbers; nothing that refers or builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from edgekernelbench.ir.diagnostics import Diagnostic, Rule, Span

FORM = Rule("E701", "a profile is one YAML mapping of plain values, 64 KiB, ten levels at most")
MOST_BYTES = 64 << 10
_MOST_DEPTH = 10
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_PLAIN = (*_NUMBERS, "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """``spans``: where the value of each path stands; of a key of a mapping, that of the key under
    ``(*path, KEY)``."""

    value: Mapping[str, Any]
    spans: Mapping[Path, Span]


KEY = "\0key"


class Malformed(Exception):
    """It is no such text; ``diagnostic`` says why."""

    def __init__(self, message: str, span: Span | None, help: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(FORM, message, span, (help,))


def read_yaml(text: str) -> Document:
    """The data in a text.

    Raises:
        Malformed: it is no YAML, or more than plain data.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise Malformed("the text is too long", None, "this is no profile")
    try:
        _check_events(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _unreadable(error) from error
    if not isinstance(node, yaml.MappingNode):
        span = None if node is None else _span(node)
        raise Malformed("there is no mapping", span, "begin with `version: 1`, one key a line")
    reader = _Reader()
    return Document(reader.value(node, ()), reader.spans)


def _check_events(text: str) -> None:
    """Looks at the text's structure before anything is built of it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Malformed("anchors and aliases are not data", _span(event), "write it out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MOST_DEPTH:
                raise Malformed("nested too deeply", _span(event), "this is no profile")
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag:
            raise Malformed(f"tag {event.tag!r}", _span(event), "leave the tag out")


def _unreadable(error: yaml.YAMLError) -> Malformed:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    span = None if mark is None else Span(mark.index, mark.index + 1)
    return Malformed(f"no YAML: {problem}", span, "put texts with `:` or `#` in quotes")


def _span(node: Any) -> Span:
    start, end = node.start_mark.index, node.end_mark.index
    return Span(start, max(end, start + 1))


class _Reader:
    def __init__(self) -> None:
        self.spans: dict[Path, Span] = {}

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.spans[path] = _span(node)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                return [self.value(part, (*path, n)) for n, part in enumerate(node.value)]
            case yaml.ScalarNode():
                return _scalar(node)
        raise AssertionError("nodes are mappings, sequences or scalars")

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Malformed("a key is a word", _span(key), "write `key: value`")
            if key.value in out:
                raise Malformed(f"`{key.value}` stands twice", _span(key), "keep one of them")
            out[key.value] = self.value(value, (*path, key.value))
            self.spans[(*path, key.value, KEY)] = _span(key)
        return out


def _scalar(node: yaml.ScalarNode) -> Any:
    """Numbers, yes and no, and nothing as such; every other word is a text, dates too."""
    if node.tag not in _PLAIN:
        return node.value
    if node.tag in _NUMBERS and len(node.value) > 40:
        raise Malformed("a number of more than 40 characters", _span(node), "this is no profile")
    try:
        return yaml.SafeLoader("").construct_object(node)
    except ValueError as error:
        raise Malformed(f"`{node.value}`: {error}", _span(node), "write a plain number") from error
