"""Verification of core programs: bounds, divisors, order of histories, outputs."""

from edgekernelbench.ir.verify.driver import verify

__all__ = ["verify"]
