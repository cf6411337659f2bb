"""`verify`: is every iteration of a program safe and every output complete."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.bounds import Prover, program_ranges
from edgekernelbench.ir.diagnostics import Diagnostic, Report
from edgekernelbench.ir.verify import rules
from edgekernelbench.ir.verify.laws import Laws
from edgekernelbench.ir.verify.order import Writer, writers
from edgekernelbench.ir.verify.reads import Reads
from edgekernelbench.ir.verify.walk import Walk


def verify(program: core.Program) -> tuple[Diagnostic, ...]:
    """Proves what the compiler relies on; empty, or warnings only, means proved.

    - every read is in bounds and every divisor positive, in every iteration and for all data;
    - histories read only finished iterations, stages are read within their lifetime;
    - each element of each output is written exactly once;
    - combiners give the same in any order (tested on samples, see `laws`).

    The work is bounded; a proof that does not succeed within it is a finding.
    """
    report = Report()
    found = writers(program)
    by_name = _by_name(found, report)
    prover = Prover(program_ranges(program))
    reads, laws = Reads(prover, report, by_name), Laws(prover, report)
    for writer in found:
        _check_loops(writer, report)
    _check_outputs(program, by_name, report)
    if not report.has_errors:
        for writer in found:
            Walk(prover, reads, laws, writer).run()
            if prover.steps_left <= 0 or len(report.items) >= report.limit:
                break
    if prover.steps_left <= 0:
        report.error(
            rules.TOO_HARD,
            "the proofs took too many steps; what is reported here may only need more of them",
            None,
            ["simplify index arithmetic, or clamp indices with `edge` and `pad`"],
        )
    _warn_unused(program, report)
    return report.sorted()


def _by_name(found: list[Writer], report: Report) -> dict[str, Writer]:
    out: dict[str, Writer] = {}
    for writer in found:
        name = writer.stage.tensor.name
        if name in out:
            report.error(rules.DEFINED, f"`{name}` is defined twice", writer.stage.span)
        else:
            out[name] = writer
    return out


def _check_loops(writer: Writer, report: Report) -> None:
    """Kept loops are the inner ones."""
    name = writer.stage.name
    kept = [loop.var in writer.stage.lhs for loop in writer.loops]
    for loop, is_kept in zip(writer.loops, kept, strict=True):
        if not is_kept and any(kept[: writer.loops.index(loop)]):
            outer = writer.loops[kept.index(True)].var.name
            left = ", ".join(v.name for v in writer.stage.lhs)
            report.error(
                rules.INNER_INDEX,
                f"`{name}` is indexed by `{outer}` but not by `{loop.var.name}`, the index of a "
                "loop inside it",
                writer.stage.span,
                [
                    f"`{name}[{left}, {loop.var.name}] = ...`",
                    f"or move it out of `{loop.var.name}`",
                ],
            )
            return


def _check_outputs(program: core.Program, by_name: dict[str, Writer], report: Report) -> None:
    for output in program.outputs:
        writer = by_name.get(output.name)
        if writer is None:
            report.error(rules.OUTPUT, f"no stage defines the output `{output.name}`", None)
            continue
        for loop in writer.loops:
            index = loop.var.name
            if loop.var not in writer.stage.lhs:
                report.error(
                    rules.OUTPUT,
                    f"output `{output.name}` is defined inside `{loop.kind} {index}` but not "
                    f"indexed by `{index}`",
                    writer.stage.span,
                    [
                        f"index it by `{index}`, or move it out of the loop: after the loop "
                        f"the last iteration is `h[{loop.lo if loop.reverse else loop.hi - 1}]`"
                    ],
                )
            elif loop.lo != 0:
                report.error(
                    rules.OUTPUT,
                    f"output `{output.name}` is not written for `{index}` below {loop.lo}",
                    writer.stage.span,
                    [f"run `{loop.kind} {index}` from 0, with a condition for what comes first"],
                )


def _warn_unused(program: core.Program, report: Report) -> None:
    used = set()
    for _, stage in core.stages(program.body):
        used |= {n.tensor.name for n in core.walk(stage.expr) if isinstance(n, core.Load)}
    for tensor in program.inputs:
        if tensor.name not in used:
            text = f"input `{tensor.name}` is never read"
            report.add(Diagnostic(rules.UNUSED, text, None, severity="warning"))
