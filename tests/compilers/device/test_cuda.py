"""Machine code for CUDA without a device: bills, limits, what the compiler refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.compilers.base import KernelBill
from edgekernelbench.compilers.launch import Launch, LaunchPlan
from edgekernelbench.compilers.tvm.device import cubin, nvcc
from edgekernelbench.compilers.tvm.device.build import DeviceCode
from edgekernelbench.targets.gpus import cuda_target
from edgekernelbench.targets.toolkit import find_toolkit

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'main_kernel_1' for 'sm_90'
ptxas info    : Function properties for main_kernel_1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compiling entry function 'main_kernel' for 'sm_90'
ptxas info    : Function properties for main_kernel
    264 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 264 bytes cumulative stack size
"""
KERNEL = 'extern "C" __global__ void k(float *y) { y[threadIdx.x] = 2.0f; }\n'
TARGET = cuda_target("sm_90")


def code(
    source: str = KERNEL,
    groups: tuple[int, int, int] = (1, 1, 1),
    size: tuple[int, int, int] = (32, 1, 1),
    shared: int = 0,
) -> DeviceCode:
    launch = Launch(kernel="k", arguments=(), groups=groups, group_size=size, shared_bytes=shared)
    return DeviceCode(source, {"main": LaunchPlan(params=(), steps=(launch,))})


def test_bills_are_read_kernel_by_kernel() -> None:
    first, second = nvcc.read_bills(LOG)
    assert first == KernelBill(
        name="main_kernel_1", registers=12, shared_bytes=1024, spilled_bytes=0, stack_bytes=0
    )
    assert (second.name, second.registers, second.shared_bytes) == ("main_kernel", 255, 0)
    assert (second.spilled_bytes, second.stack_bytes) == (40, 264)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            code(size=(2048, 1, 1)),
            "E613: blocks of 2048 x 1 x 1 threads in k; the device runs 1024",
        ),
        (code(size=(1, 1, 128)), "E613: blocks of 1 x 1 x 128 threads in k"),
        (code(shared=50_000), "E613: 50000 bytes of shared memory in k; a block has 49152"),
        (code(groups=(1, 70_000, 1)), "E615: a grid of 1 x 70000 x 1 blocks of k"),
    ],
)
def test_what_no_architecture_runs(
    given: DeviceCode, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cubin, "find_toolkit", lambda: None)
    built = cubin.finish(given, TARGET, tmp_path)
    assert built.code is None
    [found] = built.diagnostics
    assert f"{found.rule.code}: {found.message}".startswith(says)


def test_without_a_compiler_the_source_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cubin, "find_toolkit", lambda: None)
    built = cubin.finish(code(), TARGET, tmp_path)
    assert built.code is not None and built.library == "kernel.cu" and built.kernels == ()
    assert (tmp_path / built.library).read_text() == KERNEL


@pytest.mark.parametrize(
    ("source", "says"), [(KERNEL, ""), (KERNEL.replace("2.0f", "nothing"), "nothing")]
)
def test_the_compiler_takes_or_refuses(source: str, says: str, tmp_path: Path) -> None:
    toolkit = find_toolkit()
    if toolkit is None or "sm_90" not in toolkit.architectures:
        pytest.skip("there is no nvcc that knows sm_90")
    built = cubin.finish(code(source), TARGET, tmp_path)
    if says:
        [found] = built.diagnostics
        assert found.rule.code == "E614" and says in found.message
    else:
        assert built.library == "kernel.cubin" and [b.name for b in built.kernels] == ["k"]
        assert (tmp_path / built.library).read_bytes().startswith(b"\x7fELF")
