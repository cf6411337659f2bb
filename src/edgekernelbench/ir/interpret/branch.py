"""Closures that run some of their parts in some lanes only."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.interpret.frame import Frame, InterpretError, Value, any_active
from edgekernelbench.ir.interpret.loads import Fn
from edgekernelbench.ir.interpret.numeric import Binary


def make_branch(cond: Fn, then: Fn, other: Fn) -> Fn:
    """``then`` in the lanes where ``cond`` holds, ``other`` elsewhere."""

    def run(frame: Frame) -> Value:
        holds = cond(frame)
        if not isinstance(holds, np.ndarray):
            return then(frame) if holds else other(frame)
        if holds.all():
            return then(frame)
        if not holds.any():
            return other(frame)
        outside = frame.guard
        frame.guard = (holds, True, outside)
        taken = then(frame)
        frame.guard = (holds, False, outside)
        rest = other(frame)
        frame.guard = outside
        return np.where(holds, taken, rest)

    return run


def make_junction(conjunction: bool, left: Fn, right: Fn) -> Fn:
    """``and``, ``or``. Both sides must be computable in every lane: only `Select` guards."""

    def run(frame: Frame) -> Value:
        first = left(frame)
        if not isinstance(first, np.ndarray):
            return right(frame) if bool(first) is conjunction else first
        return first & right(frame) if conjunction else first | right(frame)

    return run


def make_division(operation: Binary, left: Fn, right: Fn) -> Fn:
    """Integer ``//`` or ``%``: a zero divisor is an error in lanes that count."""

    def run(frame: Frame) -> Value:
        dividend, divisor = left(frame), right(frame)
        zero = divisor == 0
        if zero.any():
            if any_active(frame.guard, zero):
                raise InterpretError(f"stage '{frame.stage}' divides an integer by zero")
            divisor = np.where(zero, divisor.dtype.type(1), divisor)
        return operation(dividend, divisor)

    return run
