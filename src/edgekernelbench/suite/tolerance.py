"""Tolerances: pure functions from outputs and truth to a `Correctness`.

The truth is computed in float64. For a float output with truth ``y`` the allowed error of an
element is ``rtol * |y| + atol * scale``, where ``scale`` is the root mean square of that whole
output, so that a tolerance means the same for outputs of any magnitude. Where an output sums K
terms, ``atol`` grows with ``sqrt(K)``: ``max(atol, 8 * sqrt(K) * u)``, u the unit roundoff of the
float32 accumulator. An output passes if

- NaN and infinities stand exactly where the truth has them, with the same sign;
- at least `Rule.matched` of the elements are within the allowed error, and the same holds of
  the elements where the truth is not zero on their own (sparse outputs);
- no element is off by more than `Rule.cap` times the allowed error;
- for graphs, the cosine of the angle between output and truth is large enough.

Integers are exact, or off by at most `Rule.lsb` on at most `Facts.lsb_share` of the elements.
Shapes and dtypes are the caller's to check first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from edgekernelbench.suite.correctness import (
    BEYOND,
    TOLERANCE_VERSION,
    Correctness,
    OutputDetail,
)
from edgekernelbench.suite.model import ToleranceClass


@dataclass(frozen=True, slots=True)
class Rule:
    """Numbers of one tolerance class.

    Attributes:
        rtol: allowed error relative to the truth of the element.
        atol: allowed error relative to the root mean square of the output.
        sums: ``atol`` grows with the accumulation length.
        matched: least share of elements within the allowed error.
        cap: most that any element may be off, as a multiple of the allowed error.
        cosine: least cosine between output and truth, if asked for.
        lsb: most that an integer may be off.
    """

    rtol: float = 0.0
    atol: float = 0.0
    sums: bool = False
    matched: float = 0.999
    cap: float = 10.0
    cosine: float | None = None
    lsb: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What a comparison must know of the workload beside the arrays.

    Attributes:
        accumulation: terms summed into one element.
        lsb_share: share of a rounded output that may be off by `Rule.lsb`.
    """

    accumulation: int = 1
    lsb_share: float = 0.001


_EXACT = Rule(matched=1.0, cap=1.0)

RULES: dict[ToleranceClass, Rule] = {
    "exact_move": _EXACT,
    "int_exact": _EXACT,
    "int_index": _EXACT,
    "int8_requant": Rule(lsb=1),
    "f32_elementwise": Rule(1e-5, 1e-6),
    "f32_transcendental": Rule(1e-4, 1e-5),
    "f32_reduction": Rule(1e-4, 1e-5, sums=True),
    "f32_softmax": Rule(1e-4, 1e-5, sums=True),
    "f32_recurrence": Rule(1e-3, 1e-4),
    "f32_linalg": Rule(1e-4, 1e-4),
    "f32_graph": Rule(2e-4, 2e-4, cosine=0.99999),
    "f32_dynamic_quant": Rule(1e-2, 1e-2),
    "f16_elementwise": Rule(2e-3, 1e-3),
    "f16_transcendental": Rule(4e-3, 2e-3),
    "f16_reduction": Rule(2.5e-3, 2.5e-3),
    "f16_softmax": Rule(2.5e-3, 2.5e-3),
    "f16_recurrence": Rule(2e-2, 2e-2),
    "f16_graph": Rule(1e-2, 1e-2, cosine=0.9999),
}

ROUNDING: ToleranceClass = "f32_dynamic_quant"
"""For graphs that round floats to integers on the way: it allows for one on the other side of a
tie, which a single run may not have."""

_UNIT_ROUNDOFF = 2.0**-24


def compare(
    outputs: Mapping[str, np.ndarray],
    truth: Mapping[str, np.ndarray],
    tolerance: ToleranceClass,
    facts: Facts = Facts(),
) -> Correctness:
    """Judge ``outputs`` against ``truth``: same names, same shapes.

    Raises:
        ValueError: names or shapes differ, or there is nothing to compare.
    """
    if set(outputs) != set(truth) or not truth:
        raise ValueError(f"outputs {sorted(outputs)} against a truth of {sorted(truth)}")
    details = tuple(
        _compare_one(name, outputs[name], expected, RULES[tolerance], facts)
        for name, expected in truth.items()
    )
    return Correctness(
        passed=all(detail.passed for detail in details),
        matched_ratio=min(detail.matched_ratio for detail in details),
        worst_error=max(detail.worst_error for detail in details),
        max_abs=max(detail.max_abs for detail in details),
        max_rel=max(detail.max_rel for detail in details),
        tolerance=tolerance,
        tolerance_version=TOLERANCE_VERSION,
        outputs=details,
    )


def allowed_error(truth: np.ndarray, rule: Rule, facts: Facts) -> np.ndarray:
    """The allowed absolute error of each element of a float output."""
    return rule.rtol * np.abs(truth) + atol_of(rule, facts.accumulation) * rms_of(truth)


def rms_of(truth: np.ndarray) -> float:
    """Root mean square of the finite elements; 0 if there are none."""
    finite = truth[np.isfinite(truth)]
    return math.sqrt(float(np.mean(np.square(finite)))) if finite.size else 0.0


def atol_of(rule: Rule, accumulation: int) -> float:
    """Allowed error relative to the root mean square, for sums of that many terms."""
    if not rule.sums:
        return rule.atol
    return max(rule.atol, 8 * math.sqrt(accumulation) * _UNIT_ROUNDOFF)


def _compare_one(
    name: str, output: np.ndarray, truth: np.ndarray, rule: Rule, facts: Facts
) -> OutputDetail:
    if output.shape != truth.shape or not truth.size:
        raise ValueError(f"output {name}: shape {output.shape} against {truth.shape}")
    output, truth = np.atleast_1d(output), np.atleast_1d(truth)  # a scalar cannot be masked
    if truth.dtype.kind == "f":
        scored = _score_floats(output.astype(np.float64), truth, rule, facts)
        if rule is _EXACT:
            return _naming(_detail(name, scored, truth, rule), ~scored.matched, "differ")
        return _detail(name, scored, truth, rule)
    rule = replace(rule, cosine=None)  # integers among a graph's floats are still exact
    if rule.lsb:
        rule = replace(rule, matched=1.0 - facts.lsb_share, cap=1.0)
    scored = _score_integers(output, truth, rule)
    detail = _detail(name, scored, truth, rule)
    if rule.lsb:
        return _naming(detail, scored.scaled > rule.cap, f"are more than {rule.lsb} off")
    return _naming(detail, ~scored.matched, "differ")


def _naming(detail: OutputDetail, wrong: np.ndarray, what: str) -> OutputDetail:
    """With the count and the first place of wrong elements as the reason, where any value but the
    right one is wrong. It names no values: the text reaches agents."""
    if detail.passed or detail.nonfinite or not wrong.any():
        return detail
    first = [int(i) for i in np.argwhere(wrong)[0]]
    told = f"{int(wrong.sum())} of {wrong.size} elements {what}, the first at {first}"
    return detail.model_copy(update={"reason": told})


@dataclass(frozen=True, slots=True)
class _Scored:
    """Element by element: absolute error, error over the allowed one, and what follows."""

    error: np.ndarray
    scaled: np.ndarray
    matched: np.ndarray
    nonfinite: int = 0
    cosine: float | None = None


def _score_floats(output: np.ndarray, truth: np.ndarray, rule: Rule, facts: Facts) -> _Scored:
    finite = np.isfinite(truth)
    agree = np.where(finite, np.isfinite(output), _same_nonfinite(output, truth))
    both = finite & agree
    error = np.full(truth.shape, np.inf)
    error[both] = np.abs(output[both] - truth[both])
    error[~finite & agree] = 0.0
    scaled = _ratio(error, allowed_error(np.where(finite, truth, 0.0), rule, facts))
    cosine = _cosine(output[both], truth[both]) if rule.cosine is not None else None
    return _Scored(error, scaled, scaled <= 1.0, int((~agree).sum()), cosine)


def _score_integers(output: np.ndarray, truth: np.ndarray, rule: Rule) -> _Scored:
    """Only equal elements match; a step of at most ``rule.lsb`` is within the cap."""
    error = np.abs(output.astype(np.int64) - truth.astype(np.int64)).astype(np.float64)
    scaled = error / rule.lsb if rule.lsb else _ratio(error, np.zeros_like(error))
    return _Scored(error, scaled, error == 0)


def _detail(name: str, scored: _Scored, truth: np.ndarray, rule: Rule) -> OutputDetail:
    nonzero = truth != 0
    relative = _ratio(scored.error[nonzero], np.abs(truth[nonzero].astype(np.float64)))
    detail = OutputDetail(
        name=name,
        passed=False,
        elements=truth.size,
        matched_ratio=_share(scored.matched),
        nonzero_ratio=_share(scored.matched[nonzero]),
        worst_error=_finite(float(scored.scaled.max())),
        max_abs=_finite(float(scored.error.max())),
        max_rel=_finite(float(relative.max(initial=0.0))),
        nonfinite=scored.nonfinite,
        cosine=scored.cosine,
    )
    reason = _failure(detail, rule)
    return detail.model_copy(update={"passed": not reason, "reason": reason})


def _failure(detail: OutputDetail, rule: Rule) -> str:
    """The first rule that the output breaks, in words; empty if none."""
    if detail.nonfinite:
        return f"{detail.nonfinite} elements are NaN or infinite on one side only"
    if detail.worst_error > rule.cap:
        worst = detail.worst_error
        return f"the worst error is {worst:.3g} times the allowed one; the cap is {rule.cap:g}"
    if detail.matched_ratio < rule.matched:
        return f"only {detail.matched_ratio:.4%} of the elements match; {rule.matched:.4%} must"
    if detail.nonzero_ratio < rule.matched:
        share = f"{detail.nonzero_ratio:.4%} of the elements whose truth is not zero match"
        return f"only {share}; {rule.matched:.4%} must"
    if rule.cosine is not None and not (detail.cosine or 0.0) >= rule.cosine:
        return f"the cosine to the truth is {detail.cosine:.7f}; {rule.cosine} is the least"
    return ""


def _same_nonfinite(output: np.ndarray, truth: np.ndarray) -> np.ndarray:
    both_nan = np.isnan(output) & np.isnan(truth)
    both_inf = np.isinf(output) & np.isinf(truth) & (np.sign(output) == np.sign(truth))
    return both_nan | both_inf


def _ratio(error: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """``error / allowed``; 0 where there is no error, infinite where none is allowed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error == 0, 0.0, error / allowed)


def _share(matched: np.ndarray) -> float:
    return float(matched.mean()) if matched.size else 1.0


def _cosine(output: np.ndarray, truth: np.ndarray) -> float:
    """1 if both are zero, 0 if one is."""
    norms = float(np.linalg.norm(output) * np.linalg.norm(truth))
    if norms == 0.0:
        return 1.0 if not output.any() and not truth.any() else 0.0
    return float(np.dot(output.ravel(), truth.ravel())) / norms


def _finite(value: float) -> float:
    return value if value < BEYOND else BEYOND
