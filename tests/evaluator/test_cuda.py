"""Every status that a kernel can get on a CUDA device, on real processes and a driver of our own
(`fake_cuda.c`) in the place of NVIDIA's. What kernels compute on a GPU is not tested here."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekernelbench.evaluator.model import Evaluation
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.targets import cuda
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.toolkit import Toolkit
from tests.evaluator import device_session
from tests.evaluator.device_session import check_status, device_evaluator
from tests.evaluator.fakes import FakeTask

TOOLKIT = Toolkit("nvcc", "13.0", ("sm_90",))

CASES = [
    *device_session.CASES,
    ("illegal", "crashed", "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("refused", "crashed", "ProgramRefused: cuModuleLoadData"),
    ("segfault", "crashed", "SIGSEGV"),
    ("shared", "correct", ""),
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """The library is found by every process that is started from here."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("fake_cuda.c")
    words = ["cc", "-shared", "-fPIC", "-O1", "-o", str(folder / "libcuda.so.1"), str(source)]
    subprocess.run(words, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(folder))
        patch.setattr(cuda.toolkit, "find_toolkit", lambda: TOOLKIT)
        cuda.devices.cache_clear()
        yield patch
    cuda.devices.cache_clear()


@pytest.fixture(scope="module")
def target(driver: pytest.MonkeyPatch) -> Target:
    return cuda.find_cuda("cuda")


@pytest.fixture(scope="module")
def session(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskSession]:
    cache = tmp_path_factory.mktemp("cache")
    with (
        device_evaluator(target, cache, run_s=8.0) as evaluator,
        evaluator.session(FakeTask()) as made,
    ):
        yield made


def test_devices_by_name(target: Target) -> None:
    assert target.cuda is not None and target.cuda.name == "Fake 1"
    assert target.cuda.uuid == "GPU-10101010-1010-1010-1010-101010101010"
    assert target.gpu is not None and (target.gpu.arch, target.gpu.units) == ("sm_90", 8)
    assert target.cache_bytes == (4 << 20,) and target.memory_bytes == 1 << 30
    listed = cuda.list_cuda()
    assert [t.name for t in listed] == ["cuda", "cuda:1"]
    assert [cuda.find_cuda(t.name) for t in listed] == list(listed)
    second = cuda.find_cuda("cuda:fake 2").cuda
    assert second is not None and second == listed[1].cuda


def test_correct(session: TaskSession) -> None:
    result = session.evaluate("correct")
    assert result.status == "correct", result.message
    performance = result.performance
    assert performance is not None and performance.device is not None
    assert performance.timer == "cuda events around calls back to back/child"
    assert performance.device.launches == 1 and performance.device.kernels_us is None
    assert performance.device.state is not None
    assert performance.device.state.name == "Fake 1, CUDA 13.0"
    assert result.baselines["slow"].status == "measured" and result.best == "slow"
    assert (result.baselines["slow"].speedup or 0) > 3
    assert result.baselines["wrong"].status == "wrong_result"
    assert Evaluation.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(("text", "status", "says"), CASES)
def test_status_and_the_next_is_right(
    session: TaskSession, text: str, status: str, says: str
) -> None:
    check_status(session, text, status, says)
