"""Every kernel of the gallery is one for its workload, and its layers are legal on this host."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.evaluator.static import Interface, check_text
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.lowering.lower import lower
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.gpus import cuda_target, opencl_target
from edgekernelbench.targets.host import host_target

GALLERY = Path(__file__).parents[2] / "gallery"
FILES = sorted(GALLERY.glob("*.ekir"))
WORKLOADS = load_suite().workloads


def test_the_list_of_workloads_is_the_gallery() -> None:
    lines = (GALLERY / "ids.txt").read_text().splitlines()
    ids = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    assert len(ids) == len(set(ids)) >= 30
    assert {file.stem for file in FILES} == set(ids)
    assert not [name for name in ids if WORKLOADS[name].heldout]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_kernel(file: Path) -> None:
    interface = Interface.of(as_task(WORKLOADS[file.stem]))
    checked = check_text(file.read_text(encoding="utf-8"), interface)
    assert checked.kernel is not None and checked.program is not None, checked
    assert checked.kernel.schedules, "an expert says how"
    lowered = lower(checked.kernel, checked.program, host_target())
    assert lowered.module is not None, [d.message for d in lowered.diagnostics]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_layers_for_gpus(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if "for gpu" not in text:
        pytest.skip("none")
    checked = check_text(text, Interface.of(as_task(WORKLOADS[file.stem])))
    assert checked.kernel is not None and checked.program is not None
    for target in (opencl_target(), cuda_target("sm_87")):
        lowered = lower(checked.kernel, checked.program, target)
        assert lowered.module is not None, [d.message for d in lowered.diagnostics]
