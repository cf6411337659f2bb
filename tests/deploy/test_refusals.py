"""What cannot be deployed is named, with the way out, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgekernelbench.deploy import Refused, Request, deploy
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.registry import find_target
from tests.deploy.support import GEMM, PLAIN


def _deploy(server: ForkServer, folder: Path, text: str = PLAIN, **changes: Any) -> Any:
    target = changes.pop("target", None) or host_target()
    return deploy(Request(text, target, folder, **changes), server)


@pytest.mark.parametrize(
    ("update", "says"),
    [
        ({"mtriple": "mips-linux-gnu"}, "no bundles are made for mips-linux-gnu"),
        ({"mtriple": "armv7l-linux-gnueabi"}, "armv7 with hard floats"),
        ({"mtriple": "aarch64-apple-darwin"}, "Linux on x86-64, aarch64, armv7, riscv64"),
    ],
)
def test_a_machine_without_bundles(
    server: ForkServer, tmp_path: Path, update: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        _deploy(server, tmp_path / "b", target=host_target().model_copy(update=update))
    assert says in f"{caught.value.message} {caught.value.help}"


def test_cuda_is_not_there_yet(server: ForkServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="backend cuda are not there yet"):
        _deploy(server, tmp_path / "b", target=find_target("cuda-sm_87"))


def test_a_folder_that_exists_is_left_alone(server: ForkServer, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    folder.mkdir()
    (folder / "mine").write_text("keep")
    for place in (folder, tmp_path / "dangling"):
        (tmp_path / "dangling").unlink(missing_ok=True)
        (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
        with pytest.raises(UsageError, match="exists"):
            _deploy(server, place)
    assert (folder / "mine").read_text() == "keep"


def test_a_kernel_that_is_none(server: ForkServer, tmp_path: Path) -> None:
    result = _deploy(server, tmp_path / "b", PLAIN.replace("x[i] * 2", "x[i + 1]"))
    assert isinstance(result, Refused) and result.status == "invalid_ir"
    assert result.diagnostics
    assert list(tmp_path.iterdir()) == []


def test_a_schedule_that_is_illegal(server: ForkServer, tmp_path: Path) -> None:
    text = PLAIN.rstrip().removesuffix("}") + "  schedule for cpu { loops y (i by 3, j) }\n}\n"
    result = _deploy(server, tmp_path / "b", text)
    assert isinstance(result, Refused) and result.status == "compile_error"


def test_another_header_than_the_tasks(server: ForkServer, tmp_path: Path) -> None:
    result = _deploy(server, tmp_path / "b", workload=find_workload("relu__02"))
    assert isinstance(result, Refused) and result.status == "invalid_ir"


@pytest.mark.parametrize(
    ("update", "status", "says"),
    [
        ({"memory_bytes": 40}, "over_budget", "memory: 64 bytes needed, 40 allowed"),
        ({"code_bytes": 16}, "over_budget", "code: "),
        ({"dtypes_missing": ("f32",)}, "unsupported", "cannot compute with f32"),
    ],
)
def test_a_device_that_is_too_small(
    server: ForkServer, tmp_path: Path, update: dict[str, Any], status: str, says: str
) -> None:
    result = _deploy(server, tmp_path / "b", target=host_target().model_copy(update=update))
    assert isinstance(result, Refused)
    assert result.status == status and says in result.message
    assert list(tmp_path.iterdir()) == []


def _other_shape(file: Path) -> None:
    np.savez(file, W=np.zeros((40, 31), np.float32), b=np.zeros(32, np.float32))


def _one_missing(file: Path) -> None:
    np.savez(file, W=np.zeros((40, 32), np.float32))


def _pickled(file: Path) -> None:
    np.savez(file, W=np.array([{}], object), b=np.zeros(32, np.float32))


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (_other_shape, r"W is float32\[40, 31\], not f32\[40, 32\]"),
        (_one_missing, r"not just the const inputs \(b\)"),
        (_pickled, "cannot be read"),
        (lambda file: file.write_bytes(b"PK nothing"), "cannot be read"),
        (lambda file: None, "cannot be read"),
    ],
)
def test_weights_that_do_not_fit(
    server: ForkServer, tmp_path: Path, write: Callable[[Path], Any], says: str
) -> None:
    file = tmp_path / "weights.npz"
    write(file)
    with pytest.raises(UsageError, match=says):
        _deploy(server, tmp_path / "b", GEMM, constants=file)
    assert not (tmp_path / "b").exists()


def test_a_selftest_that_cannot_be_run(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgekernelbench.deploy.write.find_compiler", lambda _: None)
    with pytest.raises(UsageError, match="there is no prebuilt program"):
        _deploy(server, tmp_path / "b", selftest=True)
    assert list(tmp_path.iterdir()) == []
