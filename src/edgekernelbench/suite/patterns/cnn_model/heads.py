"""Last layers of classifiers that are drawn as if they had been trained.

Random weights make a classifier that gives every input the same answer: deep in the network most
of a feature does not depend on the input, and softmax makes one class of it. A kernel's errors, and
even a wrong input, would then hardly show.
"""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import Draw, activations, weights
from edgekernelbench.suite.model import Arrays

SPREAD = 1.0
"""Standard deviation of the logits of one class over inputs."""

_EXAMPLES = 4
_FIRST_EXAMPLE = 2**40
"""Seeds far from those of the inputs that kernels are judged on."""


def balanced_head(draw: Draw) -> Arrays:
    """``Wf`` and ``bf`` for which logits have zero mean and deviation `SPREAD` over a few inputs.

    The examples hang on the constants' seed, as the weights do.
    """
    workload, pattern = draw.workload, draw.workload.definition.pattern

    def drawn(where: Draw, name: str) -> np.ndarray:
        spec = where.spec(name)
        usual = weights() if spec.const else activations()
        values = pattern.draw.get(name, usual)(where, spec)
        return values.astype(spec.dtype.numpy)

    fixed = {spec.name: drawn(draw, spec.name) for spec in workload.input_specs if spec.const}
    fixed["bf"] = np.zeros_like(fixed["bf"])
    logits = []
    for example in range(_EXAMPLES):
        seed = _FIRST_EXAMPLE + _EXAMPLES * draw.const_seed + example
        x = drawn(Draw(workload, seed, draw.const_seed), "x")
        probabilities = workload.truth({**fixed, "x": x}, cache=False)["y"]
        logits.append(np.log(np.maximum(probabilities, 1e-300)))
    centred = np.array(logits) - np.mean(logits, axis=1, keepdims=True)
    mean = centred.mean(axis=0)
    gain = SPREAD / (centred - mean).std()
    return {"Wf": gain * fixed["Wf"], "bf": -gain * mean}
