"""The baselines by name. A new one is a file with a ``BASELINE`` object, and a line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgekernelbench.baselines.base import Baseline

BASELINES: dict[str, str] = {
    "tvm": "edgekernelbench.baselines.tvm",
    "tvm-raw": "edgekernelbench.baselines.tvm_raw",
    "tvm-tuned": "edgekernelbench.baselines.tvm_tuned",
    "ort": "edgekernelbench.baselines.ort",
    "torch": "edgekernelbench.baselines.torch",
}
"""Name to module (or ``module:thing``), imported on use."""


def load_baseline(place: str) -> Baseline:
    """The baseline of a module (its ``BASELINE``), or the thing of ``module:thing``."""
    module, _, thing = place.partition(":")
    return getattr(importlib.import_module(module), thing or "BASELINE")
