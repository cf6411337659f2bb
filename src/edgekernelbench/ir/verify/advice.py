"""Ways out of a refused read, as fixed text."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.verify.order import Writer
from edgekernelbench.ir.verify.text import read, show


def condition(index: core.Expr, low: int, high: int, wrong: int | None) -> str:
    """The range test that an index lacks; half of it where its other half never fails."""
    text = show(index)
    data = any(isinstance(node, core.Load) for node in core.walk(index))
    if wrong is None or data:
        return f"{low} <= {text} <= {high}"
    return f"{text} >= {low}" if wrong < low else f"{text} <= {high}"


def ways(load: core.Load, condition: str, writer: Writer | None) -> list[str]:
    text = read(load)
    if writer is not None and writer.kept:
        return [
            f"`pad({text}, initial)` is the initial value where there is no such iteration",
            f"or a condition: `{text} if {condition} else initial`",
        ]
    return [
        f"`pad({text}, 0)` is 0 where an index is out of range",
        f"`edge({text})` clamps every index to the border",
        f"or a condition: `{text} if {condition} else 0`",
    ]


def earlier(load: core.Load, writer: Writer, later: core.Loop | None) -> list[str]:
    loops = [loop for loop in writer.loops if loop.var in writer.stage.lhs]
    sequential = [loop for loop in loops if loop.kind == "seq"]
    if not sequential:
        if writer.loops:
            return ["iterations of `each` are independent; use `seq` for a recurrence"]
        return ["use a reduction, or a `seq` loop with a history: `h[t, i: N] = ... h[t - 1, i]`"]
    loop = sequential[-1]
    step = f"{loop.var.name} {'+' if loop.reverse else '-'} 1"
    indices = [show(i) for i in load.indices]
    indices[writer.dimension(loop)] = step
    way = "downwards: earlier iterations have larger indices" if loop.reverse else "upwards"
    read_before = f"{load.tensor.name}[{', '.join(indices)}]"
    help = [f"`pad({read_before}, initial)`: `seq {loop.var.name}` runs {way}"]
    if later is not None:
        help.append(f"`seq {later.var.name}: ... reversed {{` runs downwards")
    return help


def argmax_notes(index: core.Expr, writers: dict[str, Writer]) -> list[str]:
    """What argmax yields, where an index was read from a stage made by it."""
    notes = []
    for node in core.walk(index):
        writer = writers.get(node.tensor.name) if isinstance(node, core.Load) else None
        for made in core.walk(writer.stage.expr) if writer is not None else ():
            if isinstance(made, core.Reduce) and made.op in ("argmax", "argmin"):
                if made.where is not None:
                    notes.append(f"`{made.op}` yields -1 where its `where` excludes everything")
                if len(made.axes) > 1:
                    last = made.axes[-1].extent
                    notes.append(
                        f"`{made.op}` over {len(made.axes)} axes yields the flat position p: the "
                        f"last axis is `p % {last}`, the rest `p // {last}`"
                    )
    return list(dict.fromkeys(notes))
