"""What takes too much time or memory on the way to the end of verification is found."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from edgekernelbench.ir.check import Checked
from edgekernelbench.ir.check import check_text as right
from tests.fuzz import jobs
from tests.fuzz.engine import run_batches

TEXT = "kernel k(x: f32[4]) -> (y: f32[4]) { compute { y[i] = x[j] } }"


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def reserve(mebibytes: int) -> None:
    """Address space, which the limit counts; its pages are not touched, which may take seconds."""
    np.empty(mebibytes << 20, np.uint8)


def touch(mebibytes: int) -> None:
    np.ones(mebibytes << 20, np.uint8)


def outcome(part: str, deed: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> str:
    """What the part says of a text during whose check ``deed`` is done."""

    def check(text: str) -> Checked:
        deed()
        return right(TEXT)

    job = jobs.JOBS[part]
    job.prepare()
    monkeypatch.setattr(jobs, "check_text", check)
    monkeypatch.setattr(type(job), "text", lambda self, seed: f"# mutation\n{TEXT}")
    (batch,) = run_batches(job, [(4, 5)], 1)
    return batch.failures[0].kind if batch.failures else next(iter(batch.counts))


@pytest.mark.parametrize("part", ["parser", "programs"])
def test_two_seconds_are_a_hang(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(part, lambda: spin(2.5), monkeypatch) == "hang"


@pytest.mark.parametrize("part", ["parser", "programs"])
def test_one_second_is_none(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(part, lambda: spin(1.0), monkeypatch).endswith(("parsed", "refused"))


@pytest.mark.parametrize("part", ["parser", "programs"])
def test_512_mebibytes_are_too_much(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = outcome(part, lambda: reserve(600), monkeypatch)
    assert kind.startswith("exception") and "MemoryError" in kind


@pytest.mark.parametrize("part", ["parser", "programs"])
def test_300_mebibytes_are_not(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(part, lambda: reserve(300), monkeypatch).endswith(("parsed", "refused"))


def test_time_and_memory_up_to_verification_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.JOBS["programs"]
    job.prepare()

    def check(text: str) -> Checked:
        spin(0.5)
        touch(100)
        return right(TEXT)

    monkeypatch.setattr(jobs, "check_text", check)
    monkeypatch.setattr(type(job), "text", lambda self, seed: f"# mutation\n{TEXT}")
    (batch,) = run_batches(job, [(4, 5)], 1)
    assert 0.5 <= batch.most.values["text_s"][0] < 2
    assert 90 < batch.most.values["text_mb"][0] < 300
