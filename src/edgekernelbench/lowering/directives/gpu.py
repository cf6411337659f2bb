"""What layers cannot ask for on a GPU. It is refused: done as on a CPU, threads would share what
each of them needs for itself."""

from __future__ import annotations

from edgekernelbench.ir import surface
from edgekernelbench.ir.diagnostics import Report
from edgekernelbench.lowering import rules

_LINES: dict[type, str] = {
    surface.PrefetchLine: "prefetch",
    surface.WaveLine: "wave",
}
_WAYS = {
    "prefetch": "drop the line: while a thread waits for memory, others run",
    "wave": "drop the line: the rules run the recurrence in one block of threads",
    "scatter": "drop the `loops` line: the rules choose a scatter where it pays",
    "dot4": "drop `dot4`: the products are added one by one",
}


def refuse_on_gpu(
    schedule: surface.ScheduleLayer | None, memory: surface.MemoryLayer | None, report: Report
) -> None:
    """Reports the lines and prefixes that have no form on a GPU, each with a way out."""
    lines = [*(schedule.lines if schedule else ()), *(memory.lines if memory else ())]
    for line in lines:
        word = _LINES.get(type(line))
        if word is not None:
            report.error(rules.ON_GPU, f"`{word}` has no form on a GPU", line.span, [_WAYS[word]])
        if isinstance(line, surface.LoopsLine):
            for piece in line.pieces:
                if piece.annotation in _WAYS:
                    message = f"`{piece.annotation}` has no form on a GPU"
                    report.error(rules.ON_GPU, message, piece.span, [_WAYS[piece.annotation]])
