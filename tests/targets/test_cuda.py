"""CUDA targets by name, the compiler behind them, and what is said when something is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.targets import cuda, toolkit
from edgekernelbench.targets.registry import find_target, list_targets
from edgekernelbench.targets.toolkit import Toolkit

NVCC = """#!/bin/sh
case $1 in
  --version) echo "Cuda compilation tools, release 12.6, V12.6.85";;
  --list-gpu-code) printf 'sm_72\\nsm_87\\n';;
esac
"""


def nvcc(folder: Path, text: str = NVCC) -> Path:
    file = folder / "bin" / "nvcc"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)
    return folder


def test_code_only_targets() -> None:
    target = find_target("cuda-sm_87")
    assert target.backend == "cuda" and target.device is None
    assert target.gpu is not None and target.gpu.arch == "sm_87"
    with pytest.raises(UsageError, match="architecture 'sm_999' is unknown") as raised:
        find_target("cuda-sm_999")
    assert "cuda-sm_87" in raised.value.help


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = cuda._Found(devices=(), missing="there is no CUDA driver: no such file")
    monkeypatch.setattr(cuda, "devices", lambda: nothing)
    with pytest.raises(UsageError, match="there is no CUDA driver") as raised:
        find_target("cuda")
    assert "cuda-sm_87" in raised.value.help
    assert any(line.startswith("cuda: target 'cuda'") for line in list_targets().missing)


@pytest.mark.parametrize(
    ("code", "printed", "says"), [(-11, "", "exit code -11"), (0, '{"devices": 1}', "exit code 0")]
)
def test_a_driver_that_fails(
    monkeypatch: pytest.MonkeyPatch, code: int, printed: str, says: str
) -> None:
    cuda.devices.cache_clear()
    died = subprocess.CompletedProcess[Any]([], code, printed, "")
    monkeypatch.setattr(cuda.subprocess, "run", lambda *a, **k: died)
    with pytest.raises(UsageError, match=f"asking the CUDA driver fails: {says}"):
        cuda.devices()
    cuda.devices.cache_clear()


def test_a_toolkit_is_found_where_it_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(nvcc(tmp_path / "toolkit")))
    found = toolkit.find_toolkit()
    assert found is not None and found.version == "12.6"
    assert found.architectures == ("sm_72", "sm_87")
    assert toolkit.toolkit_for("sm_72") == found


def test_a_broken_compiler_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(nvcc(tmp_path / "broken", "#!/bin/sh\nexit 1\n")))
    monkeypatch.setenv("CUDA_PATH", str(nvcc(tmp_path / "good")))
    found = toolkit.find_toolkit()
    assert found is not None and found.nvcc == str(tmp_path / "good" / "bin" / "nvcc")


def test_what_is_missing_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "find_toolkit", lambda: None)
    with pytest.raises(UsageError, match="nvcc, which is missing") as raised:
        toolkit.toolkit_for("sm_90")
    assert "CUDA_HOME" in raised.value.help and "nvidia-cuda-nvcc" in raised.value.help
    old = Toolkit("nvcc", "11.8", ("sm_80",))
    monkeypatch.setattr(toolkit, "find_toolkit", lambda: old)
    with pytest.raises(UsageError, match=r"nvcc 11\.8 does not know the architecture sm_90"):
        toolkit.toolkit_for("sm_90")
