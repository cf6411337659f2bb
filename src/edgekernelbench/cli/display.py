"""What is shown of a run while it goes on."""

from __future__ import annotations

import time

from rich.live import Live
from rich.markup import escape
from rich.table import Table

from edgekernelbench.cli.common import err
from edgekernelbench.cli.tables import record_row
from edgekernelbench.evaluator.model import OUTSIDE_DENOMINATOR
from edgekernelbench.records.schema import Record, Step
from edgekernelbench.suite import Workload


def why_no_verdict(record: Record) -> str:
    """One line on an attempt that yielded nothing to judge; empty where there is a verdict.

    Of an agent that broke it is the traceback's last line: the record holds the rest.
    """
    if record.evaluation is not None and record.status not in OUTSIDE_DENOMINATOR:
        return ""
    message = record.message if record.evaluation is None else record.evaluation.message
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1] if lines else ""


class Display:
    """A growing table of finished attempts above a line that says what runs now.

    Attributes:
        fresh: attempts that ended while this watched.
    """

    def __init__(self) -> None:
        self._live = Live(console=err, refresh_per_second=4, transient=True)
        self._began = time.monotonic()
        self.fresh = 0
        self._ended = self._total = 0
        self._under_way: list[str] = []
        self._alone = True
        self._evaluations = 0
        self._last = ""
        self._header_shown = False

    def __enter__(self) -> Display:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def prepared(self, number: int, total: int) -> None:
        """Of ``total`` tasks ``number`` have their baselines built."""
        self._live.update(f"building baselines: {number} of {total} tasks")
        if not err.is_terminal and number == total:
            err.print(f"baselines of {total} tasks are built")
        self._began = time.monotonic()

    def attempt_begins(self, workload: Workload, ended: int, total: int) -> None:
        self._ended, self._total = ended, total
        self._alone = not self._under_way
        self._under_way.append(workload.id)
        self._evaluations, self._last = 0, ""
        if not err.is_terminal:
            err.print(f"{self._count()} {workload.id} begins", markup=False)
        self._show()

    def step(self, step: Step) -> None:
        self._evaluations += step.action == "evaluate"
        if step.median_us is not None:
            self._last = f", last {step.median_us:.1f} us"
        self._show()

    def attempt_ends(self, record: Record, resumed: bool) -> None:
        if not resumed:
            self.fresh += 1
            self._ended += 1
            self._under_way.remove(record.task.workload)
        row = record_row(record)
        table = Table.grid(padding=(0, 2))
        for width in (38, 13, 9, 15, 7, 7):
            table.add_column(width=width, no_wrap=True)
        if not self._header_shown:
            table.add_row("workload", "status", "time", "best", "tvm", "ort", style="bold")
            self._header_shown = True
        table.add_row(*map(escape, row))
        err.print(table)
        told = why_no_verdict(record)
        if told:
            err.print(f"  {told}", markup=False, soft_wrap=True)
        self._show()

    def _count(self) -> str:
        left = ""
        if self.fresh:
            each = (time.monotonic() - self._began) / self.fresh
            left = f", about {each * (self._total - self._ended) / 60:.1f} min left"
        return f"[{self._ended}/{self._total} ended{left}]"

    def _show(self) -> None:
        """Steps do not say whose they are, so they are told of an attempt that is alone."""
        if not self._under_way:
            return
        (first, *others) = self._under_way
        rest = f"{len(others) + 1} under way" if others else first
        if self._alone and self._evaluations:
            plural = "s" if self._evaluations > 1 else ""
            rest += f": {self._evaluations} evaluation{plural}{self._last}"
        self._live.update(escape(f"{self._count()} {rest}"))
