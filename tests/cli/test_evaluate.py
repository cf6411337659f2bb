"""What ``ekb eval`` says of noise, of running on, and of the bill."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.cli.evaluate import _print
from edgekernelbench.evaluator import sustained as module
from edgekernelbench.evaluator.conditions import Energy, Noise
from edgekernelbench.evaluator.model import Evaluation
from tests.evaluator.fakes import FakeTask, make_evaluator


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST_SECONDS", 1.5)
        with make_evaluator(folder) as evaluator, evaluator.session(FakeTask()) as session:
            return module.sustained(session, "correct", 1.5, window_s=0.05, root=folder)


def said(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> str:
    _print(evaluation, "kernel.ekir")
    return " ".join(capsys.readouterr().out.split())


def test_bill_and_roofline(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(evaluation, capsys)
    assert "caches warm" in text and "held against no roofline" in text
    for term in ("workspace", "memory", "peak of the process", "compiled in", "first run"):
        assert term in text


def test_running_on(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(evaluation, capsys)
    assert "without pause: burst" in text and "looked at times)" in text
    assert "no energy: this system has no counter" in text
    assert evaluation.sustained is not None
    energy = Energy(counter="RAPL", idle_watts=2.0, watts=5.0, joules_per_call=1.5e-5)
    told = evaluation.sustained.model_copy(
        update={"energy": energy, "energy_note": "energy by RAPL", "throttled": ("times: 1.3",)}
    )
    text = said(evaluation.model_copy(update={"sustained": told}), capsys)
    assert "energy by RAPL: 5.00 W, idle 2.00 W, 1.5e-05 J a call" in text
    assert "times: 1.3 (looked at" in text and "nothing shows" not in text


@pytest.mark.parametrize("causes", [(), ("other processes took 40% of the processors",)])
def test_noise(
    evaluation: Evaluation, causes: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluation.performance is not None
    noise = Noise(seconds=1.0, causes=causes, widening=1.4)
    performance = evaluation.performance.model_copy(update={"noise": noise})
    text = said(evaluation.model_copy(update={"performance": performance}), capsys)
    assert ("noisy machine" in text) == bool(causes)
    assert ("1.40 times wider" in text) == bool(causes)


def test_the_record_keeps_it(evaluation: Evaluation, tmp_path: Path) -> None:
    assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation
