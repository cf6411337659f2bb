"""The stored outcome of a comparison with the truth."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

TOLERANCE_VERSION = 2
"""Raised whenever a rule or number of `tolerance` changes; records carry it."""

BEYOND = 1e30
"""Stands in `worst_error` and the like for an error that is no finite number."""


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OutputDetail(_Stored):
    """One output.

    Attributes:
        elements: how many were compared.
        matched_ratio: share within the allowed error.
        nonzero_ratio: the same over the positions where the truth is not zero; 1 if none is.
        worst_error: largest error as a multiple of the allowed one.
        max_abs: largest absolute error; ``max_rel``: largest error relative to the truth there.
        nonfinite: positions where exactly one side is NaN or infinite, or signs of infinity
            differ.
        cosine: cosine of the angle to the truth, where the tolerance asks for it.
        reason: the rule that failed, in words; empty if passed.
    """

    name: str
    passed: bool
    elements: int
    matched_ratio: float
    nonzero_ratio: float
    worst_error: float
    max_abs: float
    max_rel: float
    nonfinite: int
    cosine: float | None = None
    reason: str = ""


class Correctness(_Stored):
    """All outputs together: the worst figures over `outputs`. Every number is finite."""

    passed: bool
    matched_ratio: float
    worst_error: float
    max_abs: float
    max_rel: float
    tolerance: str
    tolerance_version: int
    outputs: tuple[OutputDetail, ...]
