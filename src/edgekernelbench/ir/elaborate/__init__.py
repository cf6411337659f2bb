"""Elaboration: from the syntax tree of a kernel to the typed core program."""

from edgekernelbench.ir.elaborate.driver import ElaborateResult, elaborate

__all__ = ["ElaborateResult", "elaborate"]
