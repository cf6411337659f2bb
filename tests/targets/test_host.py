"""The host's profile: what is read from the system, and what is remembered of LLVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgekernelbench.targets import host

X86 = "processor\t: 0\nmodel name\t: CPU\ncpu MHz\t\t: 2400.1\nflags\t\t: fpu sse2 avx avx2 fma\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32\n"


@pytest.mark.parametrize(
    ("cpuinfo", "bits"),
    [(X86, 256), (X86.replace("avx2", "avx512f"), 512), (ARM, 128), ("", 128)],
)
def test_vector_width_follows_the_flags(cpuinfo: str, bits: int) -> None:
    assert host.vector_bits(cpuinfo) == bits


def test_profile_of_this_host() -> None:
    target = host.host_target()
    assert target.name == target.backend == "llvm"
    assert 1 <= target.threads <= len(os.sched_getaffinity(0))
    assert list(target.cache_bytes) == sorted(target.cache_bytes)
    assert target.memory_bytes > 1 << 28
    assert target.mcpu and target.mcpu != "generic"


def test_threads_sharing_a_core_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = {0: "0", 1: "1", 2: "0", 3: "1"}

    def read(path: Path) -> str:
        if path.name == "core_id":
            return cores[int(path.parent.parent.name.removeprefix("cpu"))]
        return "0" if path.name == "physical_package_id" else ""

    monkeypatch.setattr(host, "_read", read)
    assert host.physical_cores({0, 1, 2, 3}) == 2
    assert host.physical_cores({0, 2}) == 1


def test_a_quota_of_the_container_bounds_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> str:
        return "200000 100000" if path.name == "cpu.max" else ""

    monkeypatch.setattr(host, "_read", read)
    assert host.physical_cores(set(range(8))) == 2


def test_the_cpu_name_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answers = iter(["somecpu"])
    monkeypatch.setattr(host, "_ask_llvm", lambda: next(answers))
    assert host.llvm_cpu_name(X86) == "somecpu"
    assert host.llvm_cpu_name(X86.replace("2400.1", "1800.0")) == "somecpu"
    with pytest.raises(StopIteration):
        host.llvm_cpu_name(ARM)
    (stored,) = (tmp_path / "edgekernelbench" / "host").iterdir()
    stored.write_text("{broken")
    monkeypatch.setattr(host, "_ask_llvm", lambda: "again")
    assert host.llvm_cpu_name(X86) == "again"
    assert json.loads(stored.read_text()) == {"mcpu": "again"}


def test_an_unwritable_cache_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no/such")
    monkeypatch.setattr(host, "_ask_llvm", lambda: "somecpu")
    assert host.llvm_cpu_name(X86) == "somecpu"


def test_asking_for_the_profile_does_not_import_tvm() -> None:
    code = (
        "import sys; from edgekernelbench.targets.host import host_target; host_target();"
        "assert 'tvm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
