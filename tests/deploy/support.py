"""Bundles for tests: kernels, targets, compilers that may be missing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import pytest

from edgekernelbench.deploy import Deployed, Request, deploy
from edgekernelbench.deploy.architecture import ARCHITECTURES, Architecture
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target

ROOT = Path(__file__).parents[2]
DEVICE = ROOT / "src" / "edgekernelbench" / "deploy" / "device"
TARGETS = {
    "x86-64": "llvm",
    "aarch64": "raspberry-pi-5",
    "armv7": str(ROOT / "docs" / "devices" / "armv7.yaml"),
    "riscv64": str(ROOT / "docs" / "devices" / "riscv64.yaml"),
}
C = ("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", f"-I{DEVICE}")

GEMM = """kernel dense[M=24, K=40, N=32](X: f32[M, K], W: const f32[K, N], b: const f32[N])
    -> (Y: f32[M, N], total: f32[M]) {
  compute {
    acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])
    Y[i, j] = gelu(acc[i, j] + b[j])
    total[i] = sum[j: N](Y[i, j])
  }
  schedule for cpu {
    loops acc (parallel i by 8, j by 16, k by 4, unroll k, unroll i, vectorize j)
  }
  memory for cpu { layout W [k, j] -> [j // 16, k, j % 16] }
}
"""
PLAIN = """kernel k[N=8](x: f32[N]) -> (y: f32[N]) {
  compute { y[i] = x[i] * 2 }
}
"""


def architecture(name: str) -> Architecture:
    return next(a for a in ARCHITECTURES if a.name == name)


def needs(name: str) -> Target:
    """The target of an architecture; skips where it can be neither built for nor run."""
    wanted = architecture(name)
    if not wanted.here:
        for tool in (f"{wanted.triple}-gcc", wanted.emulator):
            if which(tool) is None:
                pytest.skip(f"{tool} is not installed (Debian: gcc-{wanted.triple}, qemu-user)")
    return find_target(TARGETS[name])


def kernel_of(workload: str) -> str:
    file = ROOT / "gallery" / f"{workload}.ekir"
    return file.read_text() if file.exists() else find_workload(workload).canonical()


def made(
    server: ForkServer, folder: Path, text: str, target: Target, workload: str | None = None
) -> Deployed:
    task = None if workload is None else find_workload(workload)
    result = deploy(Request(text, target, folder, workload=task), server)
    assert isinstance(result, Deployed), result
    return result


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("make", "-s", "-C", str(folder), *words), capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
