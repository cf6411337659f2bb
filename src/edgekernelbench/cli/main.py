"""The command ``ekb``. Each command lives in a file of its own and calls into the core."""

from __future__ import annotations

import io
import sys

import typer

from edgekernelbench.cli import baseline, check, devices, evaluate, explain, run, score, suite
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
app.add_typer(baseline.app, name="baseline")
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
    try:
        app()
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
