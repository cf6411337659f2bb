"""The baselines by name. A new one is a file with a ``BASELINE`` object, and a line here."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgekernelbench.baselines.base import Baseline

BASELINES: dict[str, str] = {
    "tvm": "edgekernelbench.baselines.tvm",
    "tvm-raw": "edgekernelbench.baselines.tvm_raw",
    "ort": "edgekernelbench.baselines.ort",
}
"""Name to module; modules are imported on use."""


@cache
def find_baseline(name: str) -> Baseline:
    """The baseline of that name.

    Raises:
        KeyError: there is none; the message names those there are.
    """
    if name not in BASELINES:
        raise KeyError(f"no baseline {name!r}; there are {', '.join(BASELINES)}")
    return importlib.import_module(BASELINES[name]).BASELINE
