"""The bill of a kernel against a target's limits, on every kind of target, before it runs."""

from __future__ import annotations

from typing import Any

import pytest

from edgekernelbench.analysis.code import device_code
from edgekernelbench.compilers import budget
from edgekernelbench.compilers.base import Argument, KernelBill, Manifest, StaticFacts
from edgekernelbench.compilers.launch import Launch, LaunchPlan, Workspace
from edgekernelbench.compilers.tvm.device import rules as device_rules
from edgekernelbench.evaluator.buildchild import KernelJob, _build_kernel
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.gpus import cuda_target
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Gpu, Target
from edgekernelbench.targets.registry import find_target

GPU = Gpu(arch="sm_90", max_threads=256, shared_bytes=1000, shared_optin_bytes=5000,
          registers=64, registers_block=10_000)  # fmt: skip


def manifest(
    size: tuple[int, int, int] = (128, 1, 1),
    asked: int = 0,
    static: int = 0,
    registers: int | None = 32,
    workspace: int = 0,
) -> Manifest:
    launch = Launch(kernel="k", arguments=(), groups=(1, 1, 1), group_size=size, shared_bytes=asked)
    spaces = (Workspace(name="w", bytes=workspace),) if workspace else ()
    return Manifest(
        kernel="t",
        target="x",
        library="kernel.cubin",
        arguments=(Argument(name="x", dtype=DType.F32, shape=(100,), role="input"),),
        main_args=("x",),
        plans={"main": LaunchPlan(params=("x",), workspaces=spaces, steps=(launch,))},
        facts=StaticFacts(
            flops=1,
            io_bytes=400,
            packed_bytes=0,
            workspace_bytes=workspace,
            code_bytes=640,
            compile_seconds=0,
            nest="",
            kernels=(KernelBill(name="k", registers=registers, shared_bytes=static),),
        ),
    )


def target(**changed: Any) -> Target:
    limits = {"memory_bytes": 1000, "gpu": GPU, "unreachable": ""}
    return cuda_target("sm_90").model_copy(update={**limits, **changed})


@pytest.mark.parametrize(
    ("built", "changed", "says"),
    [
        (manifest(), {}, ""),
        (
            manifest(workspace=601),
            {},
            "memory: 1001 bytes needed, 1000 allowed (inputs and outputs 400 + packed constants 0 "
            "+ workspace 601)",
        ),
        (manifest(workspace=301), {"workspace_bytes": 300}, "workspace: 301 bytes needed, 300 al"),
        (manifest(workspace=500), {"buffer_bytes": 450}, "buffer w: 500 bytes needed, 450 allowed"),
        (manifest(), {"buffer_bytes": 399}, "buffer x: 400 bytes needed, 399 allowed"),
        (manifest(), {"code_bytes": 639}, "code: 640 bytes needed, 639 allowed"),
        (manifest(size=(257, 1, 1)), {}, "threads of k: 257 threads needed, 256 allowed"),
        (manifest(static=1001), {}, "shared memory of k: 1001 bytes needed, 1000 allowed"),
        (manifest(static=1000, asked=4000), {}, ""),
        (
            manifest(static=1000, asked=4001),
            {},
            "shared memory of k: 5001 bytes needed, 5000 allowed (static 1000 + asked for by the "
            "launch 4001)",
        ),
        (manifest(registers=65), {}, "registers of a thread of k: 65 registers needed, 64 allowed"),
        (
            manifest(size=(256, 1, 1), registers=40),
            {},
            "registers of a block of k (256 threads of 40): 10240 registers needed, 10000 allowed",
        ),
        (manifest(registers=None), {}, ""),
    ],
)
def test_a_line_a_limit_with_its_sum(built: Manifest, changed: dict[str, Any], says: str) -> None:
    said = budget.over(budget.bill_of(built, target(**changed)))
    assert said.startswith(says) and bool(said) == bool(says)


def test_the_rules_of_limits_exist() -> None:
    own = (device_rules.WORK_GROUP, device_rules.GRID, rules.THREADS, rules.SHARED_BYTES)
    assert {rule.code for rule in own} == budget.LIMIT_CODES


WIDE = """kernel k[N=64](x: f32[N, N]) -> (y: f32[N]) {
  compute { y[i] = sum[j: N](x[i, j]) }
  schedule for gpu { loops y (block i by 32, thread i, thread j) }
}
"""


@pytest.mark.parametrize("name", ["mali-g710", "jetson-orin-nano", "opencl"])
def test_too_many_threads_are_over_budget_and_nothing_else_is(name: str) -> None:
    """32 x 64 threads: refused by the lowering, before code is generated or a device asked."""
    there = find_target(name)
    assert there.gpu is not None
    limited = there.model_copy(
        update={"gpu": there.gpu.model_copy(update={"max_threads": 1024}), "opencl": None}
    )
    job = KernelJob(text=WIDE, interface=None, target=limited,
                    compiler="edgekernelbench.compilers.tvm:TvmCompiler")  # fmt: skip
    reply = _build_kernel(job)
    assert reply.outcome == "over_budget"
    [found] = reply.diagnostics
    assert found["code"] == "E630" and "= 2048 threads" in found["message"]
    nonsense = WIDE.replace("block i by 32", "block q by 32")
    wrong = _build_kernel(job.model_copy(update={"text": nonsense}))
    assert wrong.outcome == "compile_error"


PLAIN = """kernel k[N=4096](x: f32[N]) -> (y: f32[N]) {
  compute {
    t[i: N] = exp(x[i])
    y[i] = t[i] * t[4095 - i]
  }
}
"""


def bill(text: str, there: Target) -> str:
    checked = check_text(text)
    assert checked.kernel is not None and checked.program is not None
    lowered = lower(checked.kernel, checked.program, there)
    assert lowered.module is not None
    return device_code(checked.program, lowered.module, there).over_budget


@pytest.mark.parametrize("name", ["llvm", "raspberry-pi-4", "adreno-730", "jetson-orin-nano"])
def test_each_limit_is_known_without_a_device(name: str) -> None:
    there = find_target(name)
    assert bill(PLAIN, there) == ""
    memory = there.model_copy(update={"memory_bytes": 40_000})
    assert "memory: 49152 bytes needed, 40000 allowed" in bill(PLAIN, memory)
    assert "+ workspace 16384)" in bill(PLAIN, memory)
    workspace = there.model_copy(update={"workspace_bytes": 1})
    assert "workspace: 16384 bytes needed, 1 allowed" in bill(PLAIN, workspace)


def test_machine_code_is_measured_for_another_cpu() -> None:
    small = find_target("raspberry-pi-5").model_copy(update={"code_bytes": 10})
    assert "code: " in bill(PLAIN, small) and "10 allowed" in bill(PLAIN, small)
    here = host_target().model_copy(update={"code_bytes": 10})
    assert "code: " in bill(PLAIN, here)
