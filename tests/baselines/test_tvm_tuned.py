"""The tuned baseline: search, resumption, replay. Searches run in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.baselines import packs, tvm_tuned
from edgekernelbench.baselines.base import Recipe, Unavailable
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.task import materials
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.host import host_target
from tests.baselines.tuned_worker import matmul

SUITE = load_suite().workloads
WORKER = Path(__file__).with_name("tuned_worker.py")


def command(pack: Path, trials: int, batch: int = 4) -> list[str]:
    return [sys.executable, str(WORKER), str(pack), str(trials), str(batch)]


def environment() -> dict[str, str]:
    root = str(WORKER.parents[2])
    path = os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))
    return os.environ | {"PYTHONPATH": path}


def search(pack: Path, trials: int) -> list[list[str]]:
    """What the search told: state, trials, best time."""
    done = subprocess.run(
        command(pack, trials), capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines() if line.count(" ") == 2]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight trials of a small matrix product."""
    path = tmp_path_factory.mktemp("tuned") / "small.jsonl"
    told = search(path, 8)
    assert told[-1][0] == "done" and told[-1][1] == "8"
    return path


def test_a_search_ends_in_the_pack(pack: Path) -> None:
    (schedule,) = packs.read_pack(pack)
    assert schedule.trials == schedule.wanted == 8 and schedule.us is not None
    assert schedule.trace and schedule.cpu == packs.cpu_of(host_target())
    assert not pack.with_name(pack.name + ".part").exists()


def test_what_is_known_is_not_searched_again(pack: Path) -> None:
    before = pack.read_bytes()
    assert [told[0] for told in search(pack, 8)] == ["known"]
    assert pack.read_bytes() == before


def test_keys_are_the_same_in_every_process(pack: Path) -> None:
    """The pack's was made by another process; names and places of memory differ between them."""
    import onnx

    from edgekernelbench.compilers.tvm.build import tvm_target
    from edgekernelbench.compilers.tvm.tuning import build, graph

    def keys(model: bytes) -> list[str]:
        made = graph.fused(onnx.load_from_string(model), (), tvm_target(host_target()))
        return [graph.key(f) for f in build.timed(made).values()]

    twin, wider = matmul().twin, matmul(columns=80).twin
    assert twin is not None and wider is not None
    assert keys(twin) == [schedule.function for schedule in packs.read_pack(pack)]
    assert keys(wider) != keys(twin)


def test_a_killed_search_goes_on(tmp_path: Path) -> None:
    pack = tmp_path / "a.jsonl"
    part = pack.with_name(pack.name + ".part")
    running = subprocess.Popen(command(pack, 16, 2), stdout=subprocess.DEVNULL, env=environment())
    deadline = time.monotonic() + 60
    while not (part.exists() and part.read_text().count("\n") >= 3):
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    kept = part.read_text().count("\n") - 1
    with part.open("a") as file:
        file.write('{"trace": [')  # as a kill in the middle of a line leaves it
    told = search(pack, kept + 2)
    assert [int(line[1]) for line in told] == [kept + 2] * 2, told
    assert told[-1][0] == "done" and packs.read_pack(pack)[0].trials == kept + 2


# ---------------------------------------------------------------- replay
def test_replay_is_right_for_other_constants(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgekernelbench.compilers.tvm.execute import aligned_empty
    from edgekernelbench.compilers.tvm.tuning.execute import LoadedPlan

    monkeypatch.setenv(packs.PACKS_VARIABLE, str(pack))
    recipe = tvm_tuned.BASELINE.prepare(matmul(), host_target(), tmp_path)
    assert isinstance(recipe, Recipe) and recipe.scored is None, recipe
    assert "8 trials" in recipe.route
    loaded = LoadedPlan(tmp_path)
    rng = np.random.default_rng(1)
    for _ in range(2):
        x, w, y = (aligned_empty(s, np.dtype("f4")) for s in ((32, 48), (48, 64), (32, 64)))
        w[...] = rng.normal(size=w.shape)
        call = loaded.bind({"x": x}, {"w": w}, {"y": y})
        for _ in range(2):
            x[...] = rng.normal(size=x.shape)
            call()
            np.testing.assert_allclose(y, np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def test_without_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(packs.PACKS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(packs, "pack_files", lambda: ())
    reason = tvm_tuned.BASELINE.available(matmul(), host_target())
    assert reason and "ekb baseline tune --workload small" in reason
    outcome = tvm_tuned.BASELINE.prepare(matmul(), host_target(), tmp_path)
    assert isinstance(outcome, Unavailable)
    assert outcome.reason.startswith("no schedule for 1 of 1 functions")
    assert "ekb baseline tune --workload small" in outcome.reason


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"trace": [[["GetSBlock", [], ["nothing", "main"], ["b0"]]], []]}, "does not apply"),
        ({"trace": [[["NoSuchStep", [], [], []]], []]}, "does not apply"),
        ({"function": 5}, "no schedule of a pack"),
    ],
)
def test_a_pack_that_does_not_fit_is_a_reason(
    change: dict[str, object],
    told: str,
    pack: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = json.loads(pack.read_text().splitlines()[-1]) | change
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(line) + "\n")
    monkeypatch.setenv(packs.PACKS_VARIABLE, str(broken))
    outcome = tvm_tuned.BASELINE.prepare(matmul(), host_target(), tmp_path)
    assert isinstance(outcome, Unavailable) and told in outcome.reason, outcome


def test_availability() -> None:
    described = materials(SUITE["add__03"])
    cuda = host_target().model_copy(update={"backend": "cuda"})
    assert "cuda" in str(tvm_tuned.BASELINE.available(described, cuda))


def test_shown_by_the_evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuned by the command, judged right, in ``best``; shown only when from another CPU."""
    pack = tmp_path / "packs" / "here.jsonl"
    monkeypatch.setenv(packs.PACKS_VARIABLE, str(pack.parent))
    tune = [sys.executable, "-m", "edgekernelbench.cli", "baseline", "tune", "--trials", "2"]
    done = subprocess.run(
        [*tune, "--workload", "batch_matmul_nt__01", "-o", str(pack)],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "tuned 1" in done.stdout
    task = SUITE["batch_matmul_nt__01"]
    settings = EvalSettings(measure_s=0.05, roofline=False, baselines=("tvm-tuned",))
    with Evaluator(host_target(), settings=settings, cache_dir=tmp_path) as evaluator:
        for cpu, scored in ((packs.cpu_of(host_target()), True), ("elsewhere", False)):
            lines = [s.model_copy(update={"cpu": cpu}) for s in packs.read_pack(pack)]
            pack.write_text("".join(line.model_dump_json() + "\n" for line in lines))
            result = evaluator.evaluate(task.canonical(), task)
            assert result.status in ("correct", "implausible"), result  # the latter: a busy machine
            found = result.baselines["tvm-tuned"]
            assert found.status == "measured", found.message
            assert found.scored == scored and (result.best == "tvm-tuned") == scored
            assert ("transferred from elsewhere" in found.route) != scored
