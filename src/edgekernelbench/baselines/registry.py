"""The baselines by name. A new one is a file with a ``BASELINE`` object, and a line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgekernelbench.baselines.base import Baseline

BASELINES: dict[str, str] = {
    "tvm": "edgekernelbench.baselines.tvm",
    "tvm-raw": "edgekernelbench.baselines.tvm_raw",
    "ort": "edgekernelbench.baselines.ort",
}
"""Name to module; modules are imported on use."""


def load_baseline(module: str) -> Baseline:
    """The baseline that a module defines as ``BASELINE``."""
    return importlib.import_module(module).BASELINE
