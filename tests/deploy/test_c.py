"""Bundles with the kernel as C source: for this host, and for a device without a compiler here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekernelbench.deploy import Request, deploy
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.targets import cc
from edgekernelbench.targets.registry import find_target
from tests.deploy.support import GEMM, PLAIN, made, make


def test_a_bundle_builds_the_kernel_from_its_source(server: ForkServer, tmp_path: Path) -> None:
    folder = tmp_path / "dense"
    deployed = made(server, folder, GEMM, find_target("c"))
    source = (folder / "src" / "dense_kernel.c").read_text()
    assert "int __tvm_ffi_ekb_dense(" in source and not (folder / "lib").exists()
    manifest = deployed.manifest
    assert manifest.toolchain.llvm is None and manifest.bill.code_bytes
    assert {p.role for p in manifest.prepared} == {"const", "packed"}
    done = make(folder, "selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("selftest passed\n")
    assert (folder / "build" / "dense_kernel.c.o").exists()


def test_a_profile_needs_no_cross_compiler(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = find_target("c:raspberry-pi-4")
    if cc.find_cross_compiler(target) is not None:
        pytest.skip("there is a cross compiler here")
    deployed = made(server, tmp_path / "pi", PLAIN, target)
    assert deployed.manifest.architecture == "aarch64"
    assert deployed.manifest.bill.code_bytes is None
    makefile = (tmp_path / "pi" / "Makefile").read_text()
    assert "-mcpu=cortex-a72" in makefile and "-ffp-contract=off" in makefile
    assert "an unknown amount of code" in (tmp_path / "pi" / "README.md").read_text()
    written = json.loads((tmp_path / "pi" / "manifest.json").read_text())
    assert "src/k_kernel.c" in written["files"]


def test_what_is_no_processor_has_no_c() -> None:
    with pytest.raises(UsageError, match="is no processor"):
        find_target("c:nvidia-h200")
    with pytest.raises(UsageError, match="'nowhere' is unknown"):
        find_target("c:nowhere")


@pytest.mark.parametrize(
    ("machine", "name", "wanted"),
    [
        ("aarch64-linux-gnu", "raspberry-pi-5", "-mcpu=cortex-a76"),
        ("arm-linux-gnueabihf", "docs/devices/armv7.yaml", "-mfpu=neon-vfpv4"),
    ],
)
def test_options_name_the_processor_of_the_profile(machine: str, name: str, wanted: str) -> None:
    root = Path(__file__).parents[2]
    path = str(root / name) if name.endswith(".yaml") else name
    assert wanted in cc.flags(machine, find_target(f"c:{path}"))


def test_the_source_of_a_kernel_that_is_refused_is_not_deployed(
    server: ForkServer, tmp_path: Path
) -> None:
    refused = deploy(Request("kernel k(", find_target("c"), tmp_path / "none"), server)
    assert getattr(refused, "status", "") == "invalid_ir" and not (tmp_path / "none").exists()
