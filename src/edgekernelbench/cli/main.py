"""The command ``ekb``. Each command lives in a file of its own and calls into the core."""

from __future__ import annotations

import io
import signal
import sys

import typer

from edgekernelbench.cli import check, devices, evaluate, explain, run, score, suite
from edgekernelbench.cli.common import err, fail
from edgekernelbench.errors import UsageError

app = typer.Typer(
    name="ekb",
    help="Judge and improve compute kernels for edge devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(suite.app, name="suite")
app.add_typer(devices.app, name="devices")
app.command("check")(check.check)
app.command("eval")(evaluate.evaluate)
app.command("explain")(explain.explain)
app.command("run")(run.run)
app.command("score")(score.score)


def main() -> None:
    """Entry point: exit code 0 done and right, 1 not right, 2 cannot be carried out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter gets an escape
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        fail(UsageError("standard output is closed", "send it to a file, or to /dev/null"))
        sys.exit(2)
    try:
        _run()
    except UsageError as error:
        fail(error)
        sys.exit(2)
    except OSError as error:
        fail(
            UsageError(f"{error.filename or 'output'}: {error.strerror}", "see that it can be used")
        )
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("interrupted; finished attempts are kept, `ekb run --resume` goes on")
        sys.exit(130)


def _run() -> None:
    """The command; output that nobody reads any more ends it as it ends other programs.

    Typer's own code for that is 1, which means "not right" here.
    """
    stdout = sys.stdout
    try:
        app()
    except SystemExit:
        if sys.stdout is not stdout:  # replaced by one that hides the broken pipe
            sys.exit(128 + signal.SIGPIPE)
        raise
