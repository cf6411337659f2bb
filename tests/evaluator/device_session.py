"""Evaluators for devices on the bodies of `device_fakes`, and what every kind of device is tried
with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import Machinery, machinery
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.targets.model import Target
from tests.evaluator.fakes import CARELESS, QUICK

HERE = "tests.evaluator.device_fakes"

CASES = [
    *CARELESS,
    ("space", "crashed", "wrote outside of its workspace 't'"),
    ("loop", "run_timeout", "time limit"),
    ("steps", "correct", ""),
]
"""A body, its status, and what the message says."""


def device_plugs(target: Target) -> Machinery:
    """The real processes, with fake kernels and baselines."""
    return replace(
        machinery(target.threads, target.device),
        build_kernel=f"{HERE}:build_kernel",
        canary="#canary",
        baselines={"slow": f"{HERE}:SLOW", "wrong": f"{HERE}:WRONG"},
    )


@contextmanager
def device_evaluator(target: Target, cache: Path, **effort: Any) -> Iterator[Evaluator]:
    """Args:
    effort: settings beside those that all devices are tried with.
    """
    common = {"total_run_s": 120, "replicas": 2, "baselines": ("slow", "wrong")}
    settings = QUICK.model_copy(update={**common, **effort})
    with Evaluator(
        target, settings=settings, cache_dir=cache, machinery=device_plugs(target)
    ) as made:
        yield made


def check_status(session: TaskSession, text: str, status: str, says: str) -> None:
    """A body has its status, and the next kernel is right."""
    result = session.evaluate(text)
    assert result.status == status, (result.status, result.message)
    assert says in result.message
    assert (result.performance is None) == (status != "correct")
    after = session.evaluate("correct")
    assert after.status == "correct", after.message
