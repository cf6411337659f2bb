"""Bundles for other machines, under qemu-user: a sample of every level and dtype class."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.deploy import Deployed, Request, deploy
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.suite.find import find_workload
from tests.deploy.support import architecture, kernel_of, made, make, needs

SAMPLE = ("gru_cell__01", "qmatmul_s8s8s32_nt__01", "rope_half_split__02", "tinympc_solve__02")
MB = 1 << 20


@pytest.mark.parametrize("machine", ["x86-64", "aarch64", "armv7", "riscv64"])
@pytest.mark.parametrize("workload", SAMPLE)
def test_the_selftest_passes(
    server: ForkServer, tmp_path: Path, machine: str, workload: str
) -> None:
    target, task = needs(machine), find_workload(workload)
    request = Request(kernel_of(workload), target, tmp_path / "b", workload=task, selftest=True)
    result = deploy(request, server)
    assert isinstance(result, Deployed), result
    assert result.selftest is not None and result.selftest.passed
    assert result.manifest.architecture == machine


def test_make_takes_cross_compiler_and_emulator(server: ForkServer, tmp_path: Path) -> None:
    target = needs("aarch64")
    made(server, tmp_path / "b", kernel_of("softmax_last__02"), target, "softmax_last__02")
    done = make(tmp_path / "b", "selftest", f"RUN={architecture('aarch64').emulator}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_run_time_part_is_small(server: ForkServer, tmp_path: Path) -> None:
    """All that an aarch64 device runs, C library and self-test and kernel included."""
    target = needs("aarch64")
    result = made(server, tmp_path / "b", kernel_of("gru_cell__01"), target, "gru_cell__01")
    program = (tmp_path / "b" / "prebuilt" / "selftest").stat().st_size
    assert program - result.manifest.bill.constants_bytes < MB
    make(tmp_path / "b")
    assert (tmp_path / "b" / "build" / "ekb_runtime.c.o").stat().st_size < 16 << 10
