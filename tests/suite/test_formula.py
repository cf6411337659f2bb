"""Formulas come from anyone's table: each has a number, or is refused at once."""

from __future__ import annotations

import time

import pytest

from edgekernelbench.suite.formula import MAX_LENGTH, evaluate

NAMES = {"M": 6, "K": 4, "big": 10.0**300}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("M", 6),
        ("-M + 2*K", 2),
        ("(M + 2*1 - 3)//2 + 1", 3),
        ("M/K", 1.5),
        ("2**K", 16),
        ("K**0.5", 2.0),
        ("cv(M,M,K,3,3,3)", 2 * 6 * 6 * 4 * 27),
        ("dw(M,M,K,3,3)", 2 * 6 * 6 * 4 * 9),
        ("mm(M,K,2)", 96),
        ("max(M, K) + min(M, K)", 10),
        ("int(log2(K))", 2),
        (" M %K", 2),
    ],
)
def test_values(formula: str, value: float):
    assert evaluate(formula, NAMES) == value


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("Q", "unknown name 'Q'"),
        ("M +", "not a formula"),
        ("", "not a formula"),
        ("M\0", "not a formula"),
        ("(" * 300 + "M" + ")" * 300, "not a formula"),
        ("M if K else 1", "is not allowed"),
        ("__import__('os')", "is not allowed"),
        ("M.real", "is not allowed"),
        ("'a'", "is not allowed"),
        ("True", "is not allowed"),
        ("1j", "is not allowed"),
        ("cv(M)", "cv: .*missing"),
        ("min()", "min: "),
        ("min(M)", "min: "),
        ("log2(0)", "log2: "),
        ("M // 0", "ZeroDivisionError"),
        ("0 ** -1", "ZeroDivisionError"),
        ("(-M)**0.5", "no real value"),
        ("1e400", "no finite value"),
        ("big*big", "no finite value"),
        ("1e400 - 1e400", "no finite value"),
        ("M**9**9**9", "exponent beyond"),
        ("9**9**9", "exponent beyond"),
        ("2.0**1e6", "exponent beyond"),
        ("10**64", "beyond 64 bits"),
        ("10**60*0", "beyond 64 bits"),
        ("1" * 40, "beyond 64 bits"),
        ("M" + "+M" * 20000, f"longer than {MAX_LENGTH}"),
        ("M" + "+M" * (MAX_LENGTH // 2 - 1), "too deep|not a formula"),
        ("-" * (MAX_LENGTH - 1) + "M", "too deep|not a formula"),
    ],
)
def test_refused(formula: str, told: str):
    began = time.monotonic()
    with pytest.raises(ValueError, match=told) as caught:
        evaluate(formula, NAMES)
    assert time.monotonic() - began < 1
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
