"""What keeps a user's code from ending, silencing or holding up the command that calls it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path


class _LateError(BaseException):
    """Not an `Exception`: code that catches those must not go on."""


@contextmanager
def users_code() -> Iterator[None]:
    """Whatever the block raises is an `Exception`, and what it prints goes to standard error.

    Standard output belongs to the command's result, which may be JSON.

    Raises:
        RuntimeError: in place of ``SystemExit`` and its like.
    """
    with redirect_stdout(sys.stderr):
        try:
            yield
        except (Exception, KeyboardInterrupt, _LateError):
            raise
        except BaseException as error:
            raise RuntimeError(f"ended by {described(error)}") from error


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A block that must end in time; only the main thread can be stopped.

    Raises:
        TimeoutError: it did not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    except _LateError as error:
        raise TimeoutError(f"it takes more than {seconds:g} s") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def described(error: BaseException) -> str:
    """Type and text of an error in one line."""
    name, text = type(error).__name__, first_line(error)
    return f"{name}: {text}" if text != name else name


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says something; its type if none does."""
    try:
        text = str(error)
    except Exception:  # a user's error may fail to say what it is
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def is_beside(file: Path, name: str) -> bool:
    """Whether ``name`` is a regular file in the folder of ``file`` or below it."""
    folder = file.parent.resolve()
    found = (folder / name).resolve()
    return found.is_relative_to(folder) and found.is_file()
