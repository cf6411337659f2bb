"""The rules, by name, in the order in which they are tried and printed."""

from __future__ import annotations

RULES: dict[str, str] = {
    "row": "sizes, operations and bytes follow from the formulas; every name, there and in the "
    "pattern's declarations, means something; dtype and tolerance suit each other; the header "
    "parses to the interface; something is left to compute at run time",
    "draw": "inputs have the declared dtypes and shapes, are finite, the same for the same seed, "
    "and other ones for another; const inputs depend on the constants' seed alone",
    "spread": "every input varies; some float input has both signs, unless the pattern says how "
    "all of them are drawn",
    "effect": "redrawing any one input, constants included, makes the old truth wrong",
    "truth": "outputs are finite, between 1e-3 and 1e4 in size, vary, and are not mostly one value",
    "rounded": "the truth, rounded to the output's dtype, passes",
    "twin": "ONNX Runtime's result of the twin passes, at full and at small sizes; for floats its "
    "worst error is below half of the allowed one",
    "canonical": "the canonical program verifies, and the interpreter's result passes: in float64 "
    "and in the declared dtypes at small sizes, in float64 at full size within the time given",
    "independent": "the reference's results were compared with those of a twin or of a canonical "
    "program",
    "control": "every control that applies fails (see `suite.controls`); zero, constant, poison "
    "and stale apply to every output, or the pattern says why not",
    "precision": "inputs rounded to the 10 bits of TF32 (f16: to 3 bits), all else exact, fail; "
    "where results are integers or moved, that of constants with a quarter of the bytes; "
    "not tried in a graph that rounds floats to integers on its way (f32_dynamic_quant)",
    "compiled": "the canonical program under the default rules, compiled for this host, passes at "
    "full size",
    "tight": "the compiled program's worst error is at most half of the allowed one",
    "loose": "the allowed error is at most 5000 times the worst one of compiled program and "
    "twin; not tried in a graph that rounds floats to integers on its way",
    "class": "some compiled program or twin of a tolerance class needs at least a twentieth of the "
    "allowed error (where all workloads of the class are checked)",
}
