"""The tuned baseline: search, resumption, replay. Searches run in processes of their own."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.baselines import packs, tvm_tuned
from edgekernelbench.baselines.base import Recipe, Unavailable
from edgekernelbench.baselines.schedules import Schedule, cpu_of
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.model import BaselineResult
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.task import materials
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.gpus import cuda_target
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
    assert told[0][:2] == ["begins", "0"] and told[-1][:2] == ["searching", "8"]
    return path


def test_a_search_ends_in_the_pack(pack: Path) -> None:
    (schedule,) = packs.read_pack(pack)
    assert schedule.trials == schedule.wanted == 8 and schedule.us is not None
    assert schedule.trace and schedule.checked and not schedule.reason
    assert schedule.cpu == schedule.host == cpu_of(host_target())
    assert not pack.with_name(pack.name + ".parts").exists()


def test_more_trials_go_on_from_the_best(pack: Path, tmp_path: Path) -> None:
    longer = tmp_path / "longer.jsonl"
    longer.write_bytes(pack.read_bytes())
    told = search(longer, 12)
    assert [line[:2] for line in told] == [["begins", "8"], ["searching", "12"]]
    (schedule,) = packs.read_pack(longer)
    assert schedule.trials == schedule.wanted == 12


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
    parts = pack.with_name(pack.name + ".parts")
    running = subprocess.Popen(command(pack, 16, 2), stdout=subprocess.DEVNULL, env=environment())
    deadline = time.monotonic() + 120
    while not (lines := [file.read_text().count("\n") for file in parts.glob("*")]) or lines < [3]:
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    (part,) = parts.iterdir()
    kept = part.read_text().count("\n") - 1
    with part.open("a") as file:
        file.write('{"trace": [')  # as a kill in the middle of a line leaves it
    told = search(pack, kept + 2)
    assert [line[:2] for line in told] == [["begins", str(kept)], ["searching", str(kept + 2)]]
    assert packs.read_pack(pack)[0].trials == kept + 2 and not parts.exists()


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
    assert tvm_tuned.BASELINE.available(described, cuda_target("sm_87")) is None


# ---------------------------------------------------------------- the whole way
SMALL = ("softmax_last__03", "batch_matmul_nt__02")
"""No pack that ships has schedules for these, nor may have: one that fits would be taken."""


def tune(pack: Path, *options: str) -> list[str]:
    start = [sys.executable, "-m", "edgekernelbench.cli", "baseline", "tune", "-o", str(pack)]
    return [*start, *options, *(f"--workload={name}" for name in SMALL)]


@pytest.fixture(scope="module")
def own_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trials of two small tasks; the command was killed once in the middle."""
    path = tmp_path_factory.mktemp("own") / "here.json"
    running = subprocess.Popen(tune(path, "--trials=2"), env=environment(), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not path.exists():
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    running.kill()
    running.communicate()
    before = packs.read_pack(path)
    done = subprocess.run(
        [*tune(path, "--trials=2", "--json")],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["counts"] == {"tuned": 2} and said["slots"] >= 1
    assert packs.read_pack(path)[: len(before)] == before
    assert not path.with_name(path.name + ".parts").exists()
    return path


def test_the_command_ends_at_its_time(tmp_path: Path) -> None:
    pack = tmp_path / "late.jsonl"
    done = subprocess.run(
        tune(pack, "--trials=64", "--minutes=0", "--json"),
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["counts"] == {"unfinished": 2} and said["trials"] == 0
    assert all(task["message"] == "the time was up" for task in said["tasks"])


def changed(pack: Path, **changes: object) -> list[Schedule]:
    return [schedule.model_copy(update=changes) for schedule in packs.read_pack(pack)]


def evaluated(lines: Sequence[Schedule], cache: Path) -> BaselineResult:
    """What an evaluation says of the baseline with a pack of these."""
    folder = cache / "packs"
    folder.mkdir()
    (folder / "changed.jsonl").write_text("".join(s.model_dump_json() + "\n" for s in lines))
    task = SUITE[SMALL[0]]
    settings = EvalSettings(measure_s=0.05, roofline=False, baselines=("tvm-tuned",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(packs.PACKS_VARIABLE, str(folder))
        with Evaluator(host_target(), settings=settings, cache_dir=cache) as evaluator:
            result = evaluator.evaluate(task.canonical(), task)
    assert result.status in ("correct", "implausible"), result  # the latter: a busy machine
    found = result.baselines["tvm-tuned"]
    assert (result.best == "tvm-tuned") == (found.scored and found.status == "measured")
    return found


def test_a_schedule_of_this_cpu_counts(own_pack: Path, tmp_path: Path) -> None:
    found = evaluated(changed(own_pack), tmp_path)
    assert found.status == "measured" and found.scored, found.message
    assert found.route == "ONNX twin, MetaSchedule, 2 trials a function"


def test_so_does_one_of_its_kind(own_pack: Path, tmp_path: Path) -> None:
    found = evaluated(changed(own_pack, cpu="elsewhere", host="elsewhere"), tmp_path)
    assert found.status == "measured" and found.scored, found.message
    assert found.route.endswith(f"tuned for {platform.machine()} elsewhere")


def test_one_of_another_kind_is_shown_only(own_pack: Path, tmp_path: Path) -> None:
    found = evaluated(changed(own_pack, arch="riscv64", cpu="u74", host="u74"), tmp_path)
    assert found.status == "measured" and not found.scored, found.message
    assert "transferred from riscv64 u74, unmeasured in the search here" in found.route


def test_a_wrong_program_is_noticed_and_said(own_pack: Path, tmp_path: Path) -> None:
    """Its exponentials are kept in eight bits."""
    steps = [
        ["GetSBlock", [], ["T_softmax_exp", "main"], ["b0"]],
        ["UnsafeSetDType", ["b0"], [0, "int8"], []],
    ]
    found = evaluated(changed(own_pack, trace=[steps, []]), tmp_path)
    assert found.status == "wrong_result" and found.message, found
    assert found.median_us is None


def test_a_schedule_of_another_cpu_is_code_for_this_one(own_pack: Path) -> None:
    """Functions have the same keys for every target, and traces ask for nothing of a CPU's own."""
    import tvm

    from edgekernelbench.baselines.tunable import Tunable, tunable
    from edgekernelbench.compilers.tvm.build import tvm_target
    from edgekernelbench.compilers.tvm.tuning import graph, search

    changes = {"mcpu": "cortex-a76", "mtriple": "aarch64-linux-gnu", "vector_bits": 128}
    arm = host_target().model_copy(update=changes)
    book = packs.Book(packs.read_pack(own_pack), arm)
    for name in SMALL:
        task = tunable(materials(SUITE[name]), arm)
        assert isinstance(task, Tunable), task
        for function in task.functions.values():
            choice = book.find(graph.key(function))
            assert choice is not None and choice.kinship == "transferred"
            made = search.replay(choice.schedule.trace, graph.standalone(function)).mod
            assert tvm.tirx.build(made, tvm_target(arm)) is not None
