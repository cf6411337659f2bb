"""The baselines of the compiler: what they are built from, and that they are right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.baselines import programs, trial, tvm, tvm_raw, twins
from edgekernelbench.baselines.base import Baseline, Materials, Recipe, Unavailable
from edgekernelbench.compilers.base import Manifest
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import machinery
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.task import materials
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.gpus import cuda_target
from edgekernelbench.targets.host import host_target

SUITE = load_suite().workloads
BOTH: tuple[Baseline, ...] = (tvm.BASELINE, tvm_raw.BASELINE)
SETTINGS = EvalSettings(measure_s=0.05, roofline=False, baselines=("tvm", "tvm-raw"))


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    cache = tmp_path_factory.mktemp("cache")
    with Evaluator(host_target(), settings=SETTINGS, cache_dir=cache) as made:
        yield made


TASKS = {
    # with a twin, through the lift and through Relax's virtual machine
    "batch_matmul_nt__01": ("ONNX twin", "ONNX twin"),
    "argmax_channel_nchw__01": ("", "ONNX twin"),
    "embedding_bag_sum__01": ("", "ONNX twin"),
    "qdepthwise_bias_requant_s8_nhwc__01": ("", "ONNX twin"),
    "residual_add_rms_norm__01": ("", "ONNX twin"),
    # f16 sums are left to the canonical program; the importer lacks LSTM; no twin at all
    "gemv_row_major__01": ("", "canonical program"),
    "lstm_sequence__01": ("canonical program", "canonical program"),
    "cholesky_batched__02": ("canonical program", "canonical program"),
    "spmm_csr__01": ("canonical program", "canonical program"),
}


@pytest.mark.parametrize("name", [n for n in TASKS if n in SUITE])
def test_measured_and_right(name: str, evaluator: Evaluator) -> None:
    """The evaluator's own judge: inputs change under the binding, constants are redrawn."""
    task = SUITE[name]
    with evaluator.session(task) as session:
        for _ in range(2):
            result = session.evaluate(task.canonical())
            assert result.status in ("correct", "implausible"), result  # the latter: a busy machine
            for baseline, route in zip(("tvm", "tvm-raw"), TASKS[name], strict=True):
                found = result.baselines[baseline]
                assert found.status == "measured", found.message
                assert found.route.startswith(route)
                assert found.scored == (baseline == "tvm")
            session.redraw()


def only_canonical(name: str) -> Materials:
    return materials(SUITE[name]).model_copy(update={"twin": None, "fixed": ()})


@pytest.mark.parametrize("baseline", BOTH, ids=lambda b: b.name)
def test_availability(baseline: Baseline) -> None:
    target, described = host_target(), materials(SUITE["add__03"])
    assert baseline.available(described, target) is None
    on_cuda = baseline.available(described, cuda_target("sm_87"))
    assert on_cuda is None if baseline.name == "tvm" else "cuda" in str(on_cuda)
    nothing = described.model_copy(update={"twin": None, "canonical": None})
    assert "neither" in str(baseline.available(nothing, target))


@pytest.mark.parametrize("baseline", BOTH, ids=lambda b: b.name)
def test_without_a_twin(baseline: Baseline, tmp_path: Path) -> None:
    recipe = baseline.prepare(only_canonical("embedding_bag_sum__01"), host_target(), tmp_path)
    assert isinstance(recipe, Recipe) and recipe.kind == "tvm-library"
    assert recipe.route.startswith("canonical program") and not recipe.wants_twin
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kernel.so", "manifest.json"]


@pytest.mark.parametrize("baseline", BOTH, ids=lambda b: b.name)
def test_without_a_canonical_program(baseline: Baseline, tmp_path: Path) -> None:
    described = materials(SUITE["lstm_sequence__01"]).model_copy(update={"canonical": None})
    outcome = baseline.prepare(described, host_target(), tmp_path)
    assert isinstance(outcome, Unavailable) and "LSTM" in outcome.reason


@pytest.mark.parametrize(
    "text", ["no kernel", "kernel a(x: f32[2]) -> (y: f32[2]) { compute { } }", ""]
)
def test_a_broken_canonical_program_is_a_reason(text: str, tmp_path: Path) -> None:
    described = only_canonical("add__03").model_copy(update={"canonical": text})
    outcome = tvm.BASELINE.prepare(described, host_target(), tmp_path)
    assert isinstance(outcome, Unavailable) and "canonical program: E" in outcome.reason


def test_layers_of_the_canonical_program_are_taken_off() -> None:
    text = SUITE["add__03"].canonical().rstrip().removesuffix("}")
    layered = f"{text} schedule for cpu {{ loops nothing (i) }} }}"
    bare = programs.canonical(only_canonical("add__03").model_copy(update={"canonical": layered}))
    assert isinstance(bare, programs.Bare) and not bare.kernel.schedules


# ---------------------------------------------------------------- the faster of two
@pytest.mark.parametrize(
    ("times", "source"),
    [((10.0, 9.9), "ONNX twin"), ((10.0, 5.0), "canonical program"), ((5.0, 9.0), "ONNX twin")],
)
def test_the_faster_build_is_taken(
    times: tuple[float, float], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = trial.TrialReply(call_us=times)
    monkeypatch.setattr(trial, "compare", lambda job, threads: reply)
    described = materials(SUITE["embedding_bag_sum__01"])
    recipe = tvm.BASELINE.prepare(described, host_target(), tmp_path)
    assert isinstance(recipe, Recipe) and recipe.route.startswith(source)
    if times == (10.0, 5.0):
        assert recipe.route.endswith(" (the ONNX twin takes 2.00 times as long)")
    assert recipe.wants_twin == (source == "ONNX twin")
    manifest = Manifest.model_validate_json((tmp_path / "manifest.json").read_text())
    lifted = manifest.kernel != "embedding_bag_sum"
    assert lifted == (source == "ONNX twin")


def test_no_comparison_leaves_the_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "compare", lambda job, threads: Unavailable("no comparison: why"))
    described = materials(SUITE["embedding_bag_sum__01"])
    recipe = tvm.BASELINE.prepare(described, host_target(), tmp_path)
    assert isinstance(recipe, Recipe) and recipe.route.startswith("ONNX twin")
    assert recipe.notes == ("canonical program: no comparison: why",)


def test_trial_tells_fast_from_slow(tmp_path: Path) -> None:
    """Adding up a row of twice or of two hundred times the elements."""
    described = only_canonical("reduce_max_axis0__01")
    folders = (tmp_path / "few", tmp_path / "many")
    for folder, rounds in zip(folders, (2, 200), strict=True):
        folder.mkdir()
        text = f"""kernel k[N=4096](x: f32[N]) -> (y: f32[N]) {{
          compute {{ y[i] = sum[r: {rounds}](x[i] * r) }} }}"""
        bare = programs.canonical(described.model_copy(update={"canonical": text}))
        assert isinstance(bare, programs.Bare)
        assert programs.compile_program(bare.kernel, bare.program, host_target(), folder) is None
    ports = tuple(
        port.model_copy(update={"shape": (4096,), "name": name, "role": role})
        for port, name, role in zip(described.ports, "xy", ("input", "output"), strict=False)
    )
    reply = trial.compare(trial.TrialJob(folders=folders, ports=ports), 1)
    assert isinstance(reply, trial.TrialReply), reply
    assert reply.call_us[1] > 5 * reply.call_us[0] > 0


def test_a_trial_that_fails_is_a_reason(tmp_path: Path) -> None:
    job = trial.TrialJob(folders=(tmp_path,), ports=())
    outcome = trial.compare(job, 1)
    assert isinstance(outcome, Unavailable) and "manifest.json" in outcome.reason


# ---------------------------------------------------------------- constants
def test_a_baked_constant_that_changed_is_noticed() -> None:
    arrays = {"a": np.arange(3, dtype=np.int64), "b": np.ones(2, np.float32)}
    baked = twins.digests(arrays, ("a", "absent"))
    assert set(baked) == {"a"}
    twins.check_baked(arrays, baked)
    with pytest.raises(ValueError, match="constant a"):
        twins.check_baked({"a": np.array([0, 1, 3])}, baked)


def test_runners_are_found() -> None:
    """Each runner kind that a recipe may name has a factory."""
    import importlib

    for plug in machinery(1).runners.values():
        module, _, name = plug.factory.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_importing_is_light() -> None:
    """The parent imports these modules to ask for availability: no TVM, no ONNX."""
    for module in (tvm, tvm_raw, trial, twins, programs):
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text())
        top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        names = {getattr(n, "module", None) or n.names[0].name for n in top}
        assert not {n.split(".")[0] for n in names if n} & {"onnx", "onnxruntime"}
        assert not any(n == "tvm" or str(n).startswith("tvm.") for n in names)
