"""Runs a core program on NumPy arrays: what a kernel means, without a compiler."""

from edgekernelbench.ir.interpret.frame import InterpretError
from edgekernelbench.ir.interpret.interpreter import interpret
from edgekernelbench.ir.interpret.numeric import Mode

__all__ = ["InterpretError", "Mode", "interpret"]
