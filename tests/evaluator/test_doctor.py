"""What the doctor says of a machine where things are missing, and whether the default works."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import doctor
from edgekernelbench.evaluator.doctor import Finding, diagnose
from edgekernelbench.targets import cuda, opencl, toolkit
from edgekernelbench.targets.toolkit import Toolkit
from tests.targets.test_opencl import device


def found(what: str, trial: str = "") -> Finding:
    return next(f for f in diagnose(lambda: trial).findings if f.what == what)


def test_the_default_is_tried_and_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert told["works"] and {"what", "needed_for", "state", "detail", "get"} == set(
        told["findings"][0]
    )
    monkeypatch.setattr(doctor, "try_default", lambda: "no linker")
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "missing  a kernel on this host (llvm): no linker -> " in result.output


def test_what_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(toolkit, "find_toolkit", lambda: None)
    nothing = cuda._Found(devices=(), missing="there is no CUDA driver: no such file")
    monkeypatch.setattr(cuda, "devices", lambda: nothing)
    monkeypatch.setattr(opencl, "devices", lambda: ())
    findings = diagnose(lambda: "").findings
    missing = {f.what for f in findings if f.state == "missing"}
    assert {"cc", "ld", "nvcc", "CUDA driver and device", "OpenCL devices"} <= missing
    assert all(f.get for f in findings if f.state == "missing")
    assert all("\n" not in f.detail + f.get for f in findings)


def test_a_driver_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise UsageError("asking the OpenCL drivers fails: boom", "leave it out")

    monkeypatch.setattr(opencl, "devices", fails)
    assert found("OpenCL devices").detail == "asking the OpenCL drivers fails: boom"
    assert found("OpenCL devices").get == "leave it out"


def test_extensions_and_architectures_that_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", lambda: (device("ARM Platform", "Mali-G710"),))
    lacking = found("OpenCL device")
    assert lacking.state == "limited" and lacking.detail.endswith("lacks cl_khr_fp64")
    fields: dict[str, object] = dict.fromkeys(cuda.CudaDevice.model_fields, 1)
    fields |= {"uuid": "GPU-1", "name": "NVIDIA Thor", "driver": "CUDA 13.0", "arch": "sm_110",
               "block": (1, 1, 1), "grid": (1, 1, 1), "integrated": True}  # fmt: skip
    thor = cuda.CudaDevice.model_validate(fields)
    monkeypatch.setattr(cuda, "devices", lambda: cuda._Found(devices=(thor,), missing=""))
    monkeypatch.setattr(toolkit, "find_toolkit", lambda: Toolkit("nvcc", "12.6", ("sm_87",)))
    unknown = found("CUDA device")
    assert unknown.state == "missing" and "nvcc does not know sm_110" in unknown.detail
    assert "CUDA_HOME" in unknown.get


def test_a_machine_that_isolates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_tried", lambda script: "Operation not permitted")
    assert found("seccomp").state == found("rlimits").state == "missing"
    assert found("user and network namespaces").state == "limited"
