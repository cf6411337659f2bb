"""The text of a reference, complete: what it imports, the helpers it calls, itself."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from edgekernelbench.suite.patterns.registry import Pattern

Function = Callable[..., Any]

_PACKAGE = "edgekernelbench"
_REMARK = re.compile(r"\s+# (noqa|fmt|type|pyright)\b.*$")
_ARRAY = "Array = np.ndarray"


def complete_source(pattern: Pattern) -> str:
    """The text of the reference as it can be run by itself."""
    if pattern.text:
        return pattern.text
    functions = reference_functions(pattern)
    text = "\n\n".join(_source(function) for function in functions)
    return f"{_head(functions, text)}\n\n\n{text}"


def reference_source(pattern: Pattern) -> str:
    """The text of the reference and, before it, of the helpers that it calls."""
    if pattern.text:
        return pattern.text
    return "\n\n".join(_source(function) for function in reference_functions(pattern))


def reference_functions(pattern: Pattern) -> tuple[Function, ...]:
    """The helpers that the reference calls, callees before callers, and at last itself."""
    return (*_helpers(pattern.reference), pattern.reference)


def _source(function: Function) -> str:
    """The function's text without its decorator and without remarks to tools."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(_REMARK.sub("", line) for line in lines[start:]) + "\n"


# ---------------------------------------------------------------- imports
def _head(functions: tuple[Function, ...], text: str) -> str:
    """The imports that the text needs, as the files of the functions state them."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    stated = {
        statement
        for function in functions
        for name, statement in _imports(inspect.getsourcefile(function) or "").items()
        if name in used
    }
    if "Array" in used:
        stated.add("import numpy as np")
    plain = sorted(statement for statement in stated if statement.startswith("import "))
    named = sorted(stated.difference(plain))
    return "\n".join([*plain, *named, *(["", _ARRAY] if "Array" in used else [])])


@cache
def _imports(file: str) -> dict[str, str]:
    """The names that a file imports from other packages, each with a statement of its own."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = f"import {_aliased(alias)}"
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(_PACKAGE):
            for alias in node.names:
                found[alias.asname or alias.name] = f"from {node.module} import {_aliased(alias)}"
    return found


def _aliased(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


# ---------------------------------------------------------------- helpers
def _helpers(function: Function) -> Iterator[Function]:
    """Functions of the suite or its own file that it calls, callees before callers, each once."""
    seen: set[Function] = {function}
    own = function.__module__

    def visit(caller: Function) -> Iterator[Function]:
        assert isinstance(caller, FunctionType)
        for name in _global_names(caller.__code__):
            callee = caller.__globals__.get(name)
            if isinstance(callee, Pattern):
                callee = callee.reference
            if not isinstance(callee, FunctionType) or callee in seen:
                continue
            if callee.__module__.startswith((f"{_PACKAGE}.suite.patterns", own)):
                seen.add(callee)
                yield from visit(callee)
                yield callee

    yield from visit(function)


def _global_names(code: CodeType) -> Iterator[str]:
    """Not ``co_names``, which holds attributes too: ``np.cross`` is no call of a ``cross``."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
