"""Which example is shown with a task, and where the files are found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.parse import parse
from edgekernelbench.suite import gallery, load_suite
from edgekernelbench.suite.gallery import KIN, load_gallery, shown_for
from edgekernelbench.suite.model import Workload

ROOT = Path(__file__).parents[2]
WORKLOADS = load_suite().workloads
PATTERNS = {workload.pattern: workload for workload in WORKLOADS.values()}


def shown(id: str) -> Workload:
    return shown_for(WORKLOADS[id]).workload


def test_an_example_is_of_another_pattern_and_not_held_out() -> None:
    for workload in PATTERNS.values():
        example = shown_for(workload).workload
        assert example.pattern != workload.pattern
        assert not example.heldout


def test_the_family_comes_first_then_kin_then_the_level() -> None:
    there = {example.workload.family for example in load_gallery().values()}
    for workload in PATTERNS.values():
        example = shown_for(workload).workload
        alone = [e for e in load_gallery().values() if e.workload.pattern != workload.pattern]
        if any(e.workload.family == workload.family for e in alone):
            assert example.family == workload.family
        elif workload.family in KIN:
            assert example.family in KIN[workload.family]
        elif workload.family not in there:
            nearest = min(abs(e.workload.level - workload.level) for e in alone)
            assert abs(example.level - workload.level) == nearest


def test_shared_words_decide_within_a_family() -> None:
    assert shown("conv2d_dilated_nchw__01").pattern == "conv2d_nchw"
    assert shown("softmax_channel_nchw__01").pattern == "softmax_last"
    assert shown("avg_pool2d_nchw__01").pattern == "max_pool2d_nchw"


def test_the_choice_is_the_same_each_time() -> None:
    first = [shown_for(workload).workload.id for workload in PATTERNS.values()]
    load_gallery.cache_clear()
    assert [shown_for(workload).workload.id for workload in PATTERNS.values()] == first


def test_a_held_out_example_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    task = WORKLOADS["conv2d_dilated_nchw__01"]
    usual = shown_for(task)
    hidden = usual.workload.model_copy(update={"heldout": True})
    examples = {
        id: gallery.Example(hidden, e.kernel_file, e.page_file) if e is usual else e
        for id, e in load_gallery().items()
    }
    monkeypatch.setattr(gallery, "load_gallery", lambda: examples)
    assert shown_for(task).workload.id != usual.workload.id


def test_kin_are_families_that_the_gallery_has_and_for_those_it_lacks() -> None:
    families = {workload.family for workload in WORKLOADS.values()}
    there = {example.workload.family for example in load_gallery().values()}
    assert set(KIN) <= families - there
    assert {kin for others in KIN.values() for kin in others} <= there


def test_the_wheel_carries_kernels_and_pages_where_they_are_looked_for() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert (
        included.items()
        >= {
            "gallery": "edgekernelbench/suite/data/gallery/kernels",
            "docs/gallery": "edgekernelbench/suite/data/gallery/pages",
            "docs/ir.md": "edgekernelbench/agents/prompts/ir.md",
        }.items()
    )
    assert all((ROOT / source).exists() for source in included)


def test_files_of_a_wheel_come_first_and_their_lack_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery.resources, "files", lambda _package: tmp_path)
    monkeypatch.setattr(gallery, "__file__", str(tmp_path / "a/b/c/gallery.py"))
    with pytest.raises(UsageError, match="neither"):
        gallery._folders()
    folder = tmp_path / "data/gallery/kernels"
    folder.mkdir(parents=True)
    (folder / "ids.txt").write_text("matmul_nn__01\n")
    assert gallery._folders() == (folder, folder.parent / "pages")


def test_an_unknown_id_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ids.txt").write_text("# the first\nmatmul_nn__01\nnonsense__01\n")
    monkeypatch.setattr(gallery, "_folders", lambda: (tmp_path, tmp_path))
    with pytest.raises(UsageError, match="nonsense__01"):
        load_gallery.__wrapped__()


def test_an_example_has_the_layers_of_one_kind_of_target() -> None:
    both = [e for e in load_gallery().values() if "for gpu" in e.kernel]
    assert len(both) >= 10
    for example in both:
        cpu, gpu = example.kernel_for("cpu"), example.kernel_for("gpu")
        assert "for gpu" not in cpu and "schedule for cpu" in cpu
        assert "for cpu" not in gpu and "schedule for gpu" in gpu
        for text in (cpu, gpu):
            parsed = parse(text)
            assert parsed.kernel is not None and not parsed.diagnostics
    other = next(e for e in load_gallery().values() if e not in both)
    assert other.kernel_for("gpu") == other.kernel
