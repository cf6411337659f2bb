"""The evaluator: correctness and speed of a kernel on a device, judged by the parent process."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgekernelbench.evaluator.evaluator import Evaluator, evaluate
    from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
    from edgekernelbench.evaluator.session import TaskSession
    from edgekernelbench.evaluator.settings import EvalSettings

__all__ = [
    "EvalSettings",
    "Evaluation",
    "EvaluationStatus",
    "Evaluator",
    "TaskSession",
    "evaluate",
]

_HOMES = {
    "EvalSettings": "settings",
    "Evaluation": "model",
    "EvaluationStatus": "model",
    "Evaluator": "evaluator",
    "TaskSession": "session",
    "evaluate": "evaluator",
}


def __getattr__(name: str) -> Any:
    # Lazily, because every child process imports this package for one small module of it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
