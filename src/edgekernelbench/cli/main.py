"""The command ``ekb``. Each command lives in a file of its own and calls into the core."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import NoReturn

import typer

from edgekernelbench.cli import (
    agents,
    audit,
    baseline,
    check,
    compare,
    deploy,
    devices,
    doctor,
    evaluate,
    explain,
    export,
    leaderboard,
    optimize,
    portability,
    report,
    run,
    score,
    suite,
    trajectory,
    verify,
)
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
app.command("audit")(audit.audit)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("compare-agents")(agents.compare_agents)
app.command("deploy")(deploy.deploy)
app.command("doctor")(doctor.doctor)
app.command("eval")(evaluate.evaluate)
app.command("explain")(explain.explain)
app.command("export")(export.export)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("optimize")(optimize.optimize)
app.command("portability")(portability.portability)
app.command("report")(report.report)
app.command("run")(run.run)
app.command("score")(score.score)
app.command("trajectory")(trajectory.trajectory)
app.command("verify")(verify.verify)


_INTERRUPTED = 128 + signal.SIGINT
_UNREAD = 128 + signal.SIGPIPE
"""The exit codes of a program that was interrupted, and of one whose reader went away."""


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
        _end(error, 2)
    except BrokenPipeError:
        _end(None, _UNREAD)
    except OSError as error:
        told = f"{error.filename or 'output'}: {error.strerror}"
        _end(UsageError(told, "see that it can be used"), 2)
    except KeyboardInterrupt:
        err.print("interrupted; finished attempts are kept, the same command with --resume goes on")
        sys.exit(_INTERRUPTED)


def _run() -> None:
    """The command; output that nobody reads any more ends it as it ends other programs.

    Typer's own code for that is 1, which means "not right" here.
    """
    stdout = sys.stdout
    try:
        app()
    except SystemExit as end:
        if end.code == _INTERRUPTED and _interrupted(end):
            raise KeyboardInterrupt from end
        if sys.stdout is not stdout:  # replaced by one that hides the broken pipe
            sys.exit(_UNREAD)
        stdout.flush()
        raise


def _interrupted(end: SystemExit) -> bool:
    """Whether Typer made an exit without a word of an interrupt that nobody dealt with."""
    told = end.__context__
    return told is not None and isinstance(told.__cause__, KeyboardInterrupt)


def _end(error: UsageError | None, code: int) -> NoReturn:
    """Ends the program. What cannot be printed is dropped: the interpreter would try again at its
    end, and end with a code of its own."""
    if error is not None:
        fail(error)
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
