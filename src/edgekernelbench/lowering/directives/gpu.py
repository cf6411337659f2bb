"""What layers cannot ask for on a GPU. It is refused: done as on a CPU, threads would share what
each of them needs for itself."""

from __future__ import annotations

from collections.abc import Mapping

from edgekernelbench.ir import surface
from edgekernelbench.ir.diagnostics import Report, Span
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.caches import Caches
from edgekernelbench.lowering.directives.threads import level_of
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.expr.rewrite import loads
from edgekernelbench.lowering.gpu.device import Level
from edgekernelbench.lowering.gpu.fetch import is_spread
from edgekernelbench.lowering.plan import Plan

_LINES: dict[type, str] = {
    surface.WaveLine: "wave",
}
_WAYS = {
    "wave": "drop the line: the rules run the recurrence in one block of threads",
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


def read_doubled(
    memory: surface.MemoryLayer | None, caches: Caches, numbers: Numbers, report: Report
) -> dict[str, Span]:
    """The copies that are fetched ahead: `prefetch T in S.k0 ahead 1` beside `cache T in S.k0`."""
    loops = {place.stage: place.loop for place in caches.places}
    out: dict[str, Span] = {}
    for line in memory.lines if memory else ():
        if not isinstance(line, surface.PrefetchLine):
            continue
        ahead = numbers.step(line.ahead)
        where = f"{line.target.name}.{line.loop}"
        if ahead is not None and ahead > 1:
            message = f"{ahead} iterations ahead: a block keeps the tile in use and the next one"
            report.error(rules.AHEAD_COPY, message, line.ahead.span, ["write `ahead 1`"])
        for ref in line.tensors:
            copy = caches.made.get((line.target.name, ref.name))
            if copy is None or loops[copy] != line.loop:
                message = f"`{ref.name}` has no copy in `{where}`"
                help = [f"write `cache {ref.name} in {where}` beside it"]
                help.append("or drop the line: while a thread waits for memory, others run")
                report.error(rules.AHEAD_COPY, message, ref.span, help)
            else:
                out[copy] = ref.span
    return out


def check_doubled(
    plan: Plan, levels: Mapping[str, Level], spans: Mapping[str, Span], report: Report
) -> None:
    """Copies that are fetched ahead fill shared memory, turn by turn of a loop."""
    for name in plan.doubled & plan.attach.keys():
        place = plan.attach[name]
        piece = plan.stages[place.target].pieces[place.depth]
        if piece.kind != "serial" or level_of(plan, levels, name) != "block":
            message = f"`{place.target}.{piece.name}` is no loop that a block runs turn by turn"
            help = ["cache in a plain loop outside the `thread` loops: `k by 16`"]
            report.error(rules.AHEAD_COPY, message, spans.get(name), help)
        elif not is_spread(plan.stages[name]):
            message = f"`{name}` has a `loops` line, and is fetched ahead"
            help = [f"drop the `loops` line: any thread takes any element of `{name}`"]
            report.error(rules.AHEAD_COPY, message, spans.get(name), help)
        elif made := _made_inside(plan, name):
            message = (
                f"`{made}` is computed in `{place.target}.{piece.name}`, turn by turn: nothing "
            )
            message += f"of the next turn is there for `{name}`"
            help = ["drop the `prefetch` line", f"or place `{made}` further outside"]
            report.error(rules.AHEAD_COPY, message, spans.get(name), help)


def _made_inside(plan: Plan, copy: str) -> str | None:
    """What a copy reads that is computed in the loop in which it is made, or further inside."""
    place = plan.attach[copy]
    for load in loads(plan.stages[copy].stage.expr):
        name = load.tensor.name
        while name in plan.attach:
            around = plan.attach[name]
            if around.target == place.target and around.depth >= place.depth:
                return load.tensor.name
            name = around.target
    return None
