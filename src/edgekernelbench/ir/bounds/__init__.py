"""Integer analysis of core expressions: intervals, and proofs from facts.

Sound under overflow: signed arithmetic that may overflow makes a value *unsafe*, and nothing is
proved about it, clamped or not. Data read from a tensor may be anything of its dtype, unless a
stage computed it from something known.

How to use it on a `core.Program` (the lowering may):

- ``ranges = program_ranges(program)`` binds all variables to their ranges; for variables made
  later there are ``ranges.bind(var, lo, hi)`` (inclusive) and ``ranges.bind_let(var, value)``.
- ``ranges.of(expr)`` is an `Interval` from these alone; ``.within(lo, hi)`` says that all values
  lie there and nothing overflows. It costs next to nothing.
- ``prover = Prover(ranges)`` proves with facts: ``prover.in_range(expr, lo, hi, facts)``,
  ``prover.at_least(expr, lo, facts)``, ``prover.not_above(a, b, gap, facts)``;
  ``prover.interval(expr, facts)`` is the interval where the facts hold.
- ``facts = prover.assume(facts, cond, truth)`` is what holds where a condition is known, starting
  from `NOTHING`; ``prover.assume_at_least(facts, a, b, gap)`` adds ``a >= b + gap``.

An answer of False means "not proved". Expressions are looked at as objects and must not be
changed; a `Ranges` belongs to one program.
"""

from edgekernelbench.ir.bounds.facts import NOTHING, Facts
from edgekernelbench.ir.bounds.interval import Interval
from edgekernelbench.ir.bounds.program import bind_expr, bind_stage, program_ranges
from edgekernelbench.ir.bounds.prover import Prover
from edgekernelbench.ir.bounds.ranges import Ranges

__all__ = [
    "NOTHING",
    "Facts",
    "Interval",
    "Prover",
    "Ranges",
    "bind_expr",
    "bind_stage",
    "program_ranges",
]
