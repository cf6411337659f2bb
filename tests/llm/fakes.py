"""A device that needs none, and a run on it, for tests of what stands above."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.llm import tasks
from edgekernelbench.llm.run import Asking
from edgekernelbench.records.schema import Spent
from edgekernelbench.runs import run as runs
from edgekernelbench.runs.order import Order
from edgekernelbench.suite import load_suite
from tests.factories import baseline, correct, performance

MODEL = "openai-api/loopback/scripted"
NAMES = ("relu__01", "softmax_last__02", "gelu_erf__02", "matmul_nt__01", "rms_norm__02")
TASKS = tuple(load_suite().workloads[name] for name in NAMES)


class Session:
    """Says of a kernel what its text says; two at a time would be noticed.

    Attributes:
        spans: when each evaluation of all sessions began and ended.
    """

    busy = threading.Lock()
    overlaps = 0
    spans: ClassVar[list[tuple[float, float]]] = []

    def __init__(self, workload: str) -> None:
        self.workload = workload

    def renew(self) -> None: ...

    def close(self) -> None: ...

    def check(self, text: str) -> Check:
        return Check("ab" * 32, None, "", ())

    def evaluate(self, text: str) -> Evaluation:
        if not Session.busy.acquire(blocking=False):
            Session.overlaps += 1
        else:
            began = time.monotonic()
            time.sleep(0.05)
            Session.spans.append((began, time.monotonic()))
            Session.busy.release()
        if "# wrong" in text:
            return Evaluation(
                status=EvaluationStatus.CRASHED, workload=self.workload, target="llvm", message="no"
            )
        speed = 2.0 if "# fast" in text else 0.5
        result = correct(self.workload, {"tvm": baseline(speed, speed * 0.9)}, "tvm")
        return result.model_copy(update={"performance": performance(10 / speed)})


class Evaluator:
    cache_dir = Path("/tmp")

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def session(self, task: Any) -> Session:
        return Session(task.id)

    def close(self) -> None: ...


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the test have no device, and may ask a server on loopback."""
    monkeypatch.setattr(tasks, "Evaluator", Evaluator)
    monkeypatch.setattr(runs, "build_ahead", lambda _evaluator, found: iter(found))
    monkeypatch.setenv("LOOPBACK_API_KEY", "none")
    Session.overlaps = 0
    Session.spans.clear()


def kernel(task: str, word: str) -> str:
    return f"{load_suite().workloads[task].header()} {{ compute {{ }} # {word}\n}}"


def order(folder: Path, agent: str = "direct", **more: Any) -> Order:
    usual: dict[str, Any] = {
        "target": "llvm",
        "workloads": TASKS,
        "subset": "named",
        "limits": Spent(evaluations=2),
        "epochs": 1,
        "seed": 0,
        "resume": False,
    }
    return Order(agent=agent, folder=folder, **{**usual, **more})


def asking(url: str, **more: Any) -> Asking:
    return Asking(MODEL, base_url=url, **more)
