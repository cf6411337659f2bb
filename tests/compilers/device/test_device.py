"""Modules with loops bound to threads: read into plans, compiled, and run on PoCL."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tvm import tirx

from edgekernelbench.compilers.launch import LaunchPlan, calls, count_launches
from edgekernelbench.compilers.tvm.device import build, opencl_check, split
from edgekernelbench.compilers.tvm.device.bound import BoundCall, DeviceMissing
from edgekernelbench.compilers.tvm.device.opencl import (
    OpenClProgram,
    open_device,
    span_and_kernels,
)
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.targets.device import DeviceChoice
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target
from tests.compilers.device import modules
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


def run(code: build.DeviceCode, case: Case, target: Target) -> tuple[BoundCall, dict, np.ndarray]:
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
    program = OpenClProgram(code.source, target.opencl.choice)
    call = BoundCall(program, code.plans["main"], host, spans, {})
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


def refused(statement: Any, params: list[Any], target: Target, folder: Path) -> Diagnostic:
    names = {"main": [f"p{n}" for n in range(len(params))]}
    made = build.build_device(modules.module(params, statement), names, target, folder)
    assert made.code is None
    [found] = made.diagnostics
    return found


def test_work_left_to_the_host(target: Target, tmp_path: Path) -> None:
    x, y = modules.buffer("x", 8), modules.buffer("y", 8)
    i = tirx.Var("i", "int32")
    store = tirx.BufferStore(y, x[i], [i])
    loop = tirx.For(i, 0, 8, tirx.ForKind.SERIAL, store)
    found = refused(loop, [x, y], target, tmp_path)
    assert (found.rule.code, found.message) == ("E611", "a store to 'y' is left to the host")


def test_sizes_that_only_data_tells(target: Target, tmp_path: Path) -> None:
    n, y = modules.buffer("n", 1, dtype="int32"), modules.buffer("y", 64)
    count = tirx.Var("count", "int32")
    kernel = modules.bound(1, 64, lambda g, i: tirx.BufferStore(y, modules.f32(1), [i]))
    loop = tirx.For(tirx.Var("t", "int32"), 0, count, tirx.ForKind.SERIAL, kernel)
    body = modules.sequence(tirx.Bind(count, n[0]), loop)
    found = refused(body, [n, y], target, tmp_path)
    assert found.rule.code == "E610" and "the host side computes n" in found.message


def test_a_loop_of_too_many_launches(target: Target, tmp_path: Path) -> None:
    y = modules.buffer("y", 64)
    t = tirx.Var("t", "int32")
    kernel = modules.bound(1, 64, lambda g, i: tirx.BufferStore(y, tirx.Cast("float32", t), [i]))
    loop = tirx.For(t, 0, 60_000, tirx.ForKind.SERIAL, kernel)
    found = refused(loop, [y], target, tmp_path)
    assert found.rule.code == "E612" and "more than 50000 launches" in found.message


def test_groups_that_the_device_cannot_run(target: Target, tmp_path: Path) -> None:
    y = modules.buffer("y", 1 << 14)
    kernel = modules.bound(1, 1 << 14, lambda g, i: tirx.BufferStore(y, modules.f32(1), [i]))
    found = refused(kernel, [y], target, tmp_path)
    assert found.rule.code == "E613" and "groups of 16384 x 1 x 1 work items" in found.message


def test_code_is_generated_without_a_device(target: Target, tmp_path: Path) -> None:
    elsewhere = target.model_copy(update={"opencl": None})
    code = built(CASES["element_wise"], elsewhere, tmp_path)
    assert "reqd_work_group_size(64, 1, 1))) void main_kernel" in code.source
    assert (tmp_path / opencl_check.SOURCE).read_text() == code.source


def events(*intervals: tuple[int, int]) -> list[Any]:
    return [SimpleNamespace(profile=SimpleNamespace(start=a, end=b)) for a, b in intervals]


def test_gaps_between_kernels_count() -> None:
    assert span_and_kernels(events((100, 150), (170, 200)), 1) == (100, 80)
    # A clock that ticks in microseconds: neighbours seem to overlap.
    assert span_and_kernels(events((1000, 3000), (2000, 4000)), 1000) == (3000, 3000)


@pytest.mark.parametrize(
    "intervals", [[(0, 5)], [(100, 90)], [(100, 200), (120, 210)], [(100, 200), (90, 110)]]
)
def test_times_that_cannot_be(intervals: list[tuple[int, int]]) -> None:
    with pytest.raises(RuntimeError, match="times that cannot be"):
        span_and_kernels(events(*intervals), 1)


def test_a_device_that_is_gone() -> None:
    with pytest.raises(DeviceMissing, match="'nothing' of 'nobody' is not there"):
        open_device(DeviceChoice(platform="nobody", name="nothing"))
