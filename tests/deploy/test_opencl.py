"""Bundles for OpenCL devices: built by the device's compiler and run on PoCL."""

from __future__ import annotations

import json
import os
from ctypes.util import find_library
from pathlib import Path

import pytest

from edgekernelbench.deploy import Deployed, Request, deploy
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.opencl import loader_settings
from edgekernelbench.targets.registry import find_target
from tests.deploy.support import DEVICE, PLAIN, C, kernel_of, made, make

PACKED = """kernel dense[M=24, K=40, N=32](X: f32[M, K], W: const f32[K, N]) -> (Y: f32[M, N]) {
  compute {
    acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])
    Y[i, j] = gelu(acc[i, j])
  }
  memory for gpu { layout W [k, j] -> [j // 16, k, j % 16] }
}
"""


@pytest.fixture
def pocl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """The device of PoCL, and settings by which a C program finds it."""
    if find_library("OpenCL") is None:
        pytest.skip("libOpenCL.so.1 is not installed (Debian: ocl-icd-libopencl1)")
    try:
        target = find_target("opencl")
    except UsageError as error:
        pytest.skip(f"{error.message}: {error.help}")
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    for name, value in loader_settings().items():
        monkeypatch.setenv(name, value)
    return target


# A packed constant; one kernel for several stages; loops and many arrays of a controller; bytes.
@pytest.mark.parametrize(
    "workload", ["matmul_nt__01", "gru_cell__01", "tinympc_solve__02", "qmatmul_s8s8s32_nt__01"]
)
def test_the_selftest_passes(
    server: ForkServer, tmp_path: Path, pocl: Target, workload: str
) -> None:
    task = find_workload(workload)
    request = Request(kernel_of(workload), pocl, tmp_path / "b", workload=task, selftest=True)
    result = deploy(request, server)
    assert isinstance(result, Deployed), result
    assert result.selftest is not None and result.selftest.passed
    assert not (tmp_path / "b" / "build").exists(), "it was tested in a copy"


def test_constants_are_packed_on_the_device(
    server: ForkServer, tmp_path: Path, pocl: Target
) -> None:
    result = made(server, tmp_path / "b", PACKED, pocl)
    assert [(p.name, p.role) for p in result.manifest.prepared] == [("W", "const")]
    text = (tmp_path / "b" / "src" / "dense.c").read_text()
    once = text.partition("once[] = {")[2].partition("};\n")[0]
    assert "_kernel" in once
    done = make(tmp_path / "b", "selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("selftest passed\n") and not done.stderr


def test_a_wrong_output_fails(server: ForkServer, tmp_path: Path, pocl: Target) -> None:
    made(server, tmp_path / "b", PLAIN, pocl)
    source = tmp_path / "b" / "src" / "k.cl"
    text = source.read_text()
    assert "2.000000e+00f" in text
    source.write_text(text.replace("2.000000e+00f", "2.500000e+00f"))
    done = make(tmp_path / "b", "selftest")
    assert done.returncode != 0 and "WRONG" in done.stdout


def test_what_is_missing_is_named(
    server: ForkServer, tmp_path: Path, pocl: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(server, tmp_path / "b", PLAIN, pocl)
    monkeypatch.setenv("EKB_OPENCL_DEVICE", "no such thing")
    done = make(tmp_path / "b", "selftest")
    assert done.returncode != 0 and "no such thing: no OpenCL device has these words" in done.stderr
    monkeypatch.setenv("EKB_OPENCL_LIBRARY", "/no/library")
    done = make(tmp_path / "b", "selftest")
    assert done.returncode != 0 and "/no/library: cannot be loaded" in done.stderr


def test_the_drivers_compiler_is_quoted(server: ForkServer, tmp_path: Path, pocl: Target) -> None:
    made(server, tmp_path / "b", PLAIN, pocl)
    (tmp_path / "b" / "src" / "k.cl").write_text("this is no source\n")
    done = make(tmp_path / "b", "selftest")
    assert done.returncode != 0 and "the driver's compiler refuses the source" in done.stderr


def test_a_device_that_is_elsewhere(server: ForkServer, tmp_path: Path) -> None:
    phone = find_target("adreno-730")
    result = made(server, tmp_path / "b", PLAIN, phone)
    assert result.manifest.architecture == "opencl"
    files = json.loads((tmp_path / "b" / "manifest.json").read_text())["files"]
    assert {"src/k.cl", "src/ekb_opencl.c", "include/ekb_opencl.h"} <= set(files)
    assert "libOpenCL.so.1" in (tmp_path / "b" / "README.md").read_text()
    with pytest.raises(UsageError, match="adreno-730 is no device of this machine"):
        deploy(Request(PLAIN, phone, tmp_path / "c", selftest=True), server)


def test_the_runner_has_no_warnings(tmp_path: Path) -> None:
    made = tmp_path / "x.o"
    code = os.spawnvp(os.P_WAIT, "cc", [*C, "-c", str(DEVICE / "ekb_opencl.c"), "-o", str(made)])
    assert code == 0 and made.exists()
