"""Why something cannot be lifted."""

from __future__ import annotations


class Refused(Exception):
    """The model has a part that the kernel IR, or this lift, cannot say. The text says which."""


_PARTS = {
    "AttrStmt": "a loop with an instruction to the compiler",
    "Evaluate": "a call for its effect",
    "For": "a loop within the computation of an element",
    "IfThenElse": "a branch",
    "Ramp": "a vector",
    "SBlockRealize": "a block within a block",
    "While": "a loop that ends by a condition",
}


def unsayable(node: str) -> Refused:
    """The refusal of a part by the compiler's name for its kind."""
    part = _PARTS.get(node, f"a {node} of the compiler")
    return Refused(f"it has {part}, which no kernel has")
