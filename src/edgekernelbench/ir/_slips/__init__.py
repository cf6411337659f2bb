"""Common slips: what writers used to Python, C or other kernel languages get wrong.

Each rule looks at the place of an error and either knows what was meant or returns None. They are
asked in order; the first that knows wins.
"""

from edgekernelbench.ir._place import Slip
from edgekernelbench.ir._slips import (
    brackets,
    characters,
    expressions,
    header,
    layers,
    operators,
    statements,
)

SLIPS: tuple[Slip, ...] = (
    *characters.SLIPS,
    *brackets.SLIPS,
    statements.loop_word,
    *header.SLIPS,
    *layers.SLIPS,
    *statements.SLIPS,
    expressions.unfinished,
    expressions.reduction_range,
    *operators.SLIPS,
    *expressions.SLIPS,
)
