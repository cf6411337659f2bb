"""What the assembler is told of a kernel whose grid is small."""

from __future__ import annotations

import pytest

from edgekernelbench.compilers.launch import Launch, LaunchPlan
from edgekernelbench.compilers.tvm.device.build import DeviceCode
from edgekernelbench.compilers.tvm.device.cubin import resident
from edgekernelbench.targets.gpus import cuda_target

SOURCE = 'extern "C" __global__ void __launch_bounds__(256) k(int* a) {}'


@pytest.mark.parametrize(
    ("blocks", "bounds"), [(1, "256, 1"), (8, "256, 1"), (16, "256, 2"), (17, "256")]
)
def test_blocks_of_a_multiprocessor(blocks: int, bounds: str) -> None:
    gpu = cuda_target("sm_87").gpu  # of 8 multiprocessors
    assert gpu is not None
    step = Launch(kernel="k", arguments=(), groups=(blocks, 1, 1), group_size=(256, 1, 1))
    code = DeviceCode(SOURCE, {"main": LaunchPlan(params=(), workspaces=(), steps=(step,))})
    assert f"__launch_bounds__({bounds}) k(" in resident(code, gpu)
