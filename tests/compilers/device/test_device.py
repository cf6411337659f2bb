"""Modules with loops bound to threads: read into plans, compiled, and run on PoCL."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # TVM would import it

from edgekernelbench.compilers.launch import LaunchPlan, calls, count_launches
from edgekernelbench.compilers.tvm.device import build, split
from edgekernelbench.compilers.tvm.device.opencl import DeviceProgram, OpenClCall
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.compilers.device.modules import CASES, Case

GUARD = 4096


@pytest.fixture(scope="module")
def target() -> Target:
    return find_target("opencl")


def built(case: Case, target: Target, folder: Path) -> build.DeviceCode:
    names = {"main": [*case.inputs, *case.outputs]}
    splitter = split.split_blocks if case.blocks else split.split_loops
    made = build.build_device(case.make(), names, target, folder, splitter)
    assert made.code is not None, made.diagnostics
    return made.code


def run(code: build.DeviceCode, case: Case, target: Target) -> tuple[OpenClCall, dict, np.ndarray]:
    """The bound call after one run, arrays by name (outputs as the device left them)."""
    rng = np.random.default_rng(0)
    spans, position = {}, GUARD
    for name, (dtype, shape) in (*case.inputs.items(), *case.outputs.items()):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        spans[name] = (position, size)
        position = -(-(position + size + GUARD) // 512) * 512
    host = np.full(position, 0x5A, np.uint8)
    arrays = {}
    for name, (dtype, shape) in case.inputs.items():
        offset, size = spans[name]
        arrays[name] = host[offset : offset + size].view(dtype).reshape(shape)
        arrays[name][...] = rng.standard_normal(shape)
    assert target.opencl is not None
    program = DeviceProgram(code.source, target.opencl.choice)
    call = OpenClCall(program, code.plans["main"], host, spans, {})
    call.upload()
    times = call.timed(3)
    assert 0 < times.kernels_ns <= times.span_ns <= times.host_ns
    back = np.empty_like(host)
    call.download(back)
    for name, (dtype, shape) in case.outputs.items():
        offset, size = spans[name]
        arrays[name] = back[offset : offset + size].view(dtype).reshape(shape)
    return call, arrays, back


@pytest.mark.parametrize("name", CASES)
def test_results_are_numpys(name: str, target: Target, tmp_path: Path) -> None:
    case = CASES[name]
    code = built(case, target, tmp_path)
    plan = code.plans["main"]
    assert LaunchPlan.model_validate_json(plan.model_dump_json()) == plan
    assert count_launches(plan) == case.launches
    call, arrays, _ = run(code, case, target)
    assert call.launches == case.launches
    expected = case.expected(*(arrays[n] for n in case.inputs))
    for output, wanted in zip(case.outputs, expected, strict=True):
        np.testing.assert_allclose(arrays[output], wanted, rtol=2e-5, atol=1e-5)


def test_arguments_follow_the_kernels_order(target: Target, tmp_path: Path) -> None:
    plan = built(CASES["host_loop"], target, tmp_path).plans["main"]
    first, second, *_ = calls(plan)
    assert first.arguments == ("w#0", "x", ("int32", 0))
    assert second.arguments == ("w#0", "y", ("int32", 0))
    assert (first.groups, first.group_size) == ((2, 1, 1), (32, 1, 1))
    assert [space.bytes for space in plan.workspaces] == [256, 256]
