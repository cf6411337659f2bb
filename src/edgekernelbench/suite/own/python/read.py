"""The tasks of a user's Python file. The file is run: it is the user's own code."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import FunctionType

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.own.guard import described, users_code
from edgekernelbench.suite.own.names import MAX_NAME
from edgekernelbench.suite.own.python.table import TableError, TaskPattern

_NO_TWIN = "its author gave none"


def read_tasks(file: Path) -> list[TaskPattern]:
    """The functions under ``@task``, in their order.

    Raises:
        UsageError: the file raises, or holds no task.
    """
    module_name = f"edgekernelbench_own_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None and spec.loader is not None, "a file that ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with users_code():
            spec.loader.exec_module(module)
    except TableError as error:
        raise UsageError(f"{file.name}: {error}", "put that field right") from error
    except Exception as error:
        told = f"SyntaxError: {error.msg}" if isinstance(error, SyntaxError) else described(error)
        message = f"{file.name}{line_of(error, file)}: {told}"
        raise UsageError(message, _way_out(error)) from error
    finally:
        sys.dont_write_bytecode = keep
    found = [value for value in vars(module).values() if isinstance(value, TaskPattern)]
    if not found:
        raise UsageError(
            f"{file.name}: no task in that file",
            "mark functions with @task of edgekernelbench.tasks (docs/own-tasks.md)",
        )
    unique: dict[str, TaskPattern] = {}
    for pattern in found:
        _check_function(pattern, file)
        if pattern.build_twin is None and pattern.no_twin is None:
            pattern.no_twin = _NO_TWIN
        if unique.setdefault(pattern.id, pattern) is not pattern:
            raise UsageError(f"{file.name}: two tasks are called {pattern.id}", "rename one")
    return list(unique.values())


def _way_out(error: Exception) -> str:
    """Of a file that cannot be run."""
    if isinstance(error, ImportError):
        return "the file is run by itself: it can import installed packages, no files beside it"
    if isinstance(error, TypeError) and "task()" in str(error):
        return "docs/own-tasks.md shows a task and says what it takes"
    return "put that line right: the file is run when it is added"


def _check_function(pattern: TaskPattern, file: Path) -> None:
    """It is a plain function, and its name can stand in a kernel header and in a file name."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", pattern.id) or len(pattern.id) > MAX_NAME:
        raise UsageError(
            f"{file.name}: task {pattern.id[:MAX_NAME]!r}: not a name that a kernel can have",
            f"call the function by ASCII letters, digits and _, at most {MAX_NAME} of them",
        )
    if not isinstance(pattern.reference, FunctionType):
        kind = type(pattern.reference).__name__
        raise UsageError(
            f"{file.name}: task {pattern.id}: a {kind}, not a function",
            "put @task above a `def` of that file",
        )


def line_of(error: BaseException, file: Path) -> str:
    """``, line N``: the last line of the file on the way to the error; empty if none was."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(file)
    ]
    if not lines and error.__cause__ is not None:
        return line_of(error.__cause__, file)
    return f", line {lines[-1]}" if lines else ""
