"""What several commands share: reading a kernel, naming a target or workload, printing."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from edgekernelbench.errors import UsageError


def _width(stream: TextIO | None) -> int | None:
    """None, which means the terminal's; a file, a pipe or a closed stream has none to respect."""
    return None if stream is not None and stream.isatty() else 120


_SHOWN = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_SHOWN |= {0x7F: 0x2421} | dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000)), 0xFFFD)
"""Control characters, and halves of surrogate pairs, by what is printed in their place: what a
kernel's text, its process or a stranger's record says must not steer the terminal."""


class _Console(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(text.translate(_SHOWN), **options)

    def on_broken_pipe(self) -> None:
        """Rich ends the program with 1 then, which means "not right" here."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(128 + signal.SIGPIPE) from None


out = _Console(highlight=False, width=_width(sys.stdout))
err = _Console(stderr=True, highlight=False, width=_width(sys.stderr))

KernelArgument = Annotated[
    str, typer.Argument(metavar="KERNEL", help="A kernel file (.ekir), or - for standard input.")
]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        help="llvm (this host), c (by its C compiler), opencl, cuda, or a device profile: its name "
        "or file.",
    ),
]
SUBSETS_HELP = "quick, agent, heldout, all, own or own:NAME."
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_MAX_BYTES = 4 << 20


def read_kernel(argument: str) -> str:
    """The text of a kernel file.

    Raises:
        UsageError: if it cannot be read, is larger than 4 MiB, or is not UTF-8.
    """
    try:
        if argument == "-":
            if sys.stdin is None:
                raise UsageError("-: standard input is closed", "give a kernel file")
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(argument).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{argument}: cannot be read ({reason})", "give a kernel file, or - for standard input"
        ) from error
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{argument}: larger than {_MAX_BYTES >> 20} MiB", "this is no kernel")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{argument}: not UTF-8 text", "save it as UTF-8") from error


def print_json(value: Any) -> None:
    """One JSON document on standard output, no colours, no wrapping."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def fail(error: UsageError) -> None:
    """Prints why a command cannot be carried out, and the way out, to standard error."""
    err.print(f"[bold red]error:[/] {escape(error.message)}", soft_wrap=True)
    if error.help:
        err.print(f"[bold]help:[/] {escape(error.help)}", soft_wrap=True)


def warn(problems: Iterable[str]) -> None:
    """Prints what is wrong with the input and does not stop the command, a line each."""
    for problem in problems:
        err.print(f"[yellow]warning:[/] {escape(problem)}", soft_wrap=True)


def microseconds(value: float) -> str:
    """A time with three significant digits and a unit."""
    for unit, scale in (("us", 1.0), ("ms", 1e3), ("s", 1e6)):
        if value < 999.5 * scale or unit == "s":
            return f"{value / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def quantity(value: float, unit: str) -> str:
    """A number with a decimal prefix: ``34.1 MB``."""
    for prefix, scale in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if value < 999.5 * scale or prefix == "T":
            return f"{value / scale:.3g} {prefix}{unit}"
    raise AssertionError("unreachable")
