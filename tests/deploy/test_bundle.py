"""A bundle for this host: it builds and tests itself, and is the same each time."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.deploy import Deployed, Refused, Request, deploy
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.host import host_target
from tests.deploy.support import GEMM, kernel_of, made, make


@pytest.fixture(scope="module")
def dense(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """Packed and plain constants, a parallel loop, two outputs; no workload."""
    folder = tmp_path_factory.mktemp("bundles") / "dense"
    return made(server, folder, GEMM, host_target())


def test_it_tests_itself_with_the_compiler_of_the_system(dense: Deployed) -> None:
    done = make(dense.folder, "selftest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("selftest passed\n")
    assert len(re.findall(r"Y +right", done.stdout)) == len(
        re.findall(r"total +right", done.stdout)
    )
    assert not (dense.folder / "build" / "selftest").is_symlink()


def test_an_emulator_goes_in_front(dense: Deployed) -> None:
    done = make(dense.folder, "selftest", "RUN=echo would run")
    assert done.stdout.startswith("would run ./build/selftest")


@pytest.mark.parametrize(
    "file",
    ["golden/0/out0-Y.bin", "golden/1/out1-total.bin", "constants.bin", "golden/1/in0-X.bin"],
)
def test_it_notices_what_is_wrong(dense: Deployed, tmp_path: Path, file: str) -> None:
    copy = tmp_path / "copy"
    subprocess.run(("cp", "-r", str(dense.folder), str(copy)), check=True)
    data = np.fromfile(copy / file, np.uint8)
    data[7::8] ^= 0x40
    data.tofile(copy / file)
    make(copy, "clean")
    done = make(copy, "selftest")
    assert done.returncode != 0
    assert "WRONG" in done.stdout and "selftest FAILED" in done.stdout


def test_a_golden_file_that_is_cut_is_no_test(dense: Deployed, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(("cp", "-r", str(dense.folder), str(copy)), check=True)
    (copy / "golden/0/in0-X.bin").write_bytes(b"123")
    done = make(copy, "selftest")
    assert done.returncode != 0 and "has another size" in done.stderr


def test_the_manifest_says_what_is_there(dense: Deployed) -> None:
    manifest = json.loads((dense.folder / "manifest.json").read_text())
    known = {"build"}
    files = {
        str(file.relative_to(dense.folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in dense.folder.rglob("*")
        if file.is_file() and file.relative_to(dense.folder).parts[0] not in known
    }
    files.pop("manifest.json")
    assert files == {name: entry["sha256"] for name, entry in manifest["files"].items()}
    assert [p["name"] for p in manifest["parameters"]] == ["X", "Y", "total"]
    assert {p["role"] for p in manifest["prepared"]} == {"const", "packed"}
    assert manifest["measured"] is None
    assert manifest["bill"]["code_bytes"] > 0
    assert manifest["licence"]["runtime and generated C"] == "Apache-2.0"


@pytest.mark.parametrize("workload", [None, "rope_half_split__02"])
def test_the_same_again_is_the_same(
    server: ForkServer, tmp_path: Path, workload: str | None
) -> None:
    text = GEMM if workload is None else kernel_of(workload)
    folders = [tmp_path / "first", tmp_path / "elsewhere" / "second"]
    for folder in folders:
        made(server, folder, text, host_target(), workload)
    first, second = (
        {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
        for folder in folders
    )
    assert first == second
    assert any(name.startswith("prebuilt/") for name in first)


def test_another_seed_is_another_bundle(server: ForkServer, tmp_path: Path) -> None:
    request = Request(GEMM, host_target(), tmp_path / "b", seed=7, selftest=True)
    result = deploy(request, server)
    assert isinstance(result, Deployed) and result.selftest is not None
    assert result.selftest.passed and result.manifest.golden.seed == 7


def test_your_own_weights(server: ForkServer, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = {
        "W": rng.normal(size=(40, 32)).astype(np.float32),
        "b": np.arange(32, dtype=np.float32),
    }
    file = tmp_path / "weights.npz"
    np.savez(file, **weights)
    request = Request(GEMM, host_target(), tmp_path / "b", constants=file, selftest=True)
    result = deploy(request, server)
    assert isinstance(result, Deployed)
    stored = np.frombuffer((result.folder / "constants.bin").read_bytes(), np.float32)
    placed = {p.name: p for p in result.manifest.prepared}
    start = placed["b"].offset // 4
    assert np.array_equal(stored[start : start + 32], weights["b"])
    [packed] = [p for p in placed.values() if p.role == "packed"]
    values = stored[packed.offset // 4 :][: 40 * 32].reshape(2, 40, 16)
    assert np.array_equal(values, weights["W"].reshape(40, 2, 16).transpose(1, 0, 2))


PROGRAM = """#include "dense.h"
#include <stdio.h>

int main(void) {
  float *X = ekb_alloc(24 * 40 * 4), *Y = ekb_alloc(24 * 32 * 4), *total = ekb_alloc(24 * 4);
  for (int k = 0; k < 24 * 40; k++) X[k] = 1;
  int right = kernel_dense(X, Y, total);
  int null = kernel_dense(X, NULL, total), moved = kernel_dense(X + 1, Y, total);
  int shared = kernel_dense(X, X, total);
  printf("%d %d %d %d %s\\n", right, null, moved, shared, ekb_error());
  return 0;
}
"""


@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_a_program_calls_it(dense: Deployed, tmp_path: Path, language: str) -> None:
    """The header is C and C++; bad arguments are refused and not used."""
    compiler = "cc" if language == "c11" else "c++"
    if subprocess.run(("which", compiler), capture_output=True, check=False).returncode:
        pytest.skip(f"no {compiler}")
    source = tmp_path / ("program.c" if language == "c11" else "program.cpp")
    text = PROGRAM if language == "c11" else PROGRAM.replace("ekb_alloc", "(float *)ekb_alloc")
    source.write_text(text)
    make(dense.folder)
    library = dense.folder / "build" / "libdense.a"
    command = (
        compiler, f"-std={language}", "-Wall", "-Werror", f"-I{dense.folder}/include", str(source),
        str(library), "-lm", "-pthread", "-o", str(tmp_path / "program"),
    )  # fmt: skip
    subprocess.run(command, check=True, timeout=120)
    out = subprocess.run((str(tmp_path / "program"),), capture_output=True, text=True, check=True)
    assert out.stdout == "0 1 2 3 Y: shares memory with another argument\n"


CLASHES = """kernel clash[N=16](x: f32[N], X: s8[N], register: f32[N], int: const f32[N])
    -> (short: f32[N]) {
  compute { short[i] = x[i] + f32(X[i]) * register[i] + int[i] }
}
"""


def test_names_that_c_has_no_use_for(server: ForkServer, tmp_path: Path) -> None:
    result = made(server, tmp_path / "b", CLASHES, host_target())
    assert [p.c_name for p in result.manifest.parameters] == ["x", "X", "arg_register", "arg_short"]
    done = make(result.folder, "selftest")
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_compiler_the_device_builds(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgekernelbench.deploy.write.find_compiler", lambda _: None)
    result = made(server, tmp_path / "b", GEMM, host_target())
    assert result.manifest.toolchain.c_compiler is None
    assert "gcc where the bundle was made" in result.manifest.toolchain.not_prebuilt
    assert not (result.folder / "prebuilt").exists()
    done = make(result.folder, "selftest", "CC=no-such-compiler")
    assert done.returncode != 0 and "no C compiler here (no-such-compiler)" in done.stdout
    assert make(result.folder, "selftest").returncode == 0


def test_a_wrong_kernel_is_not_deployed(server: ForkServer, tmp_path: Path) -> None:
    task = find_workload("relu__02")
    text = task.canonical().replace("max", "min").replace("relu", "abs", 0)
    if text == task.canonical():
        text = re.sub(r"(\w+\[[^\]]*\]) = (.*)", r"\1 = -(\2)", text, count=1)
    result = deploy(Request(text, host_target(), tmp_path / "b", workload=task), server)
    assert isinstance(result, Refused) and result.status == "wrong_result"
    assert list(tmp_path.iterdir()) == []
