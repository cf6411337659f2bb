"""A graph of loop functions for a device, each with a schedule that was found for it, or by the
compiler's rules (DLight)."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgekernelbench.compilers.base import Argument, Manifest, Role, StaticFacts
from edgekernelbench.compilers.launch import (
    Branch,
    BufferArgument,
    Launch,
    LaunchPlan,
    Repeat,
    Workspace,
)
from edgekernelbench.compilers.launch import Step as LaunchStep
from edgekernelbench.compilers.tvm.compiler import MANIFEST
from edgekernelbench.compilers.tvm.device import build, split
from edgekernelbench.compilers.tvm.gpu.build import device_target
from edgekernelbench.compilers.tvm.lift.model import last_line
from edgekernelbench.compilers.tvm.lift.refusal import Refused
from edgekernelbench.compilers.tvm.tuning.build import Traces, scheduled
from edgekernelbench.compilers.tvm.tuning.graph import Graph, functions, standalone
from edgekernelbench.compilers.tvm.tuning.plan import Plan, Planner, Space, Step
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.targets.model import Target

Plans = dict[Literal["main", "prepack"], LaunchPlan]
_RULES = ("Matmul", "GEMV", "Reduction", "GeneralReduction", "Fallback")
_LEFT_OUT = ((), ("GEMV",), ("Matmul",), ("Matmul", "GEMV"))
"""Sets of rules to go without, in the order they are tried."""

_DTYPES = {dtype.numpy: dtype for dtype in DType}


def build_graph(
    graph: Graph,
    ports: Mapping[str, Argument],
    target: Target,
    folder: Path,
    traces: Traces | None = None,
) -> tuple[tuple[str, ...], str]:
    """Writes code and manifest of a graph into ``folder``, as for any device kernel.

    Rules make kernels that a device's compiler does not take, or fail themselves (products of
    bytes on CUDA); then it is tried without them.

    Args:
        ports: the task's inputs and outputs by name.
        traces: schedules of functions; the rules are for the others.

    Returns:
        The rules that had to be left out, and why.

    Raises:
        Refused: the graph does something else than call loop functions, a trace does not fit its
            function, DLight cannot schedule one, or the device's compiler does not take what
            comes of it; the first reason.
    """
    found = scheduled(graph, traces or {})
    reasons: list[Refused] = []
    for without in _LEFT_OUT:
        try:
            _build(graph, found, ports, target, folder, without)
        except Refused as refused:
            reasons.append(refused)
        else:
            return without, str(reasons[0]) if reasons else ""
    raise reasons[0]


def _build(
    graph: Graph,
    found: Any,
    ports: Mapping[str, Argument],
    target: Target,
    folder: Path,
    without: tuple[str, ...],
) -> None:
    """``found``: the graph's module, with the schedules that were found for its functions."""
    began = time.perf_counter()
    planner = Planner(graph.module)
    plan = planner.run(graph.inputs, tuple(graph.params), graph.outputs)
    called = {step.function: step for step in (*plan.prepack, *plan.steps)}
    module = _ruled(found, called, target, without)
    names = {n: [f"#{i}" for i in range(len(step.operands))] for n, step in called.items()}
    built = build.build_device(module, names, target, folder, split.split_blocks)
    if built.code is None:
        raise Refused(f"not built: {built.diagnostics[0].message}")
    arguments = {a.name: a for a in _arguments(plan, graph, planner.baked, ports)}
    plans = _composed(plan, built.code.plans, set(arguments))
    flops = sum(_operations(graph, step.function) for step in plan.steps)
    facts = flops, time.perf_counter() - began
    manifest = _manifest(arguments, plans, planner.baked, target, facts, built)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")


def _operations(graph: Graph, name: str) -> float:
    """As the compiler counts them; it counts none in loops whose extents data decides."""
    from tvm.s_tir.analysis import estimate_tir_flops

    try:
        return float(estimate_tir_flops(standalone(functions(graph.module)[name])))
    except Exception:  # of no common base
        return 0.0


def _ruled(module: Any, called: Iterable[str], target: Target, without: tuple[str, ...]) -> Any:
    """The functions that are called, those without a schedule scheduled by rules."""
    import tvm
    from tvm.s_tir import dlight

    _place_import_frames()
    found = functions(module)
    parts = {n: found[n].with_attr("global_symbol", n) for n in sorted(called)}
    rules = [getattr(dlight.gpu, name)() for name in _RULES if name not in without]
    try:
        with device_target(target):
            schedule: Any = dlight.ApplyDefaultSchedule(*rules)
            return schedule(tvm.IRModule(parts))
    except Exception as error:  # its exceptions have no common base
        raise Refused(f"DLight: {last_line(error)}") from error


def _place_import_frames() -> None:
    """Tells `inspect` where frames of the import machinery belong.

    DLight's rules for tensor cores import a thousand intrinsics, each of which looks at the stack.
    Frames that lie in no file make `inspect` search all modules, every time: a minute in all.
    """
    for name in ("importlib._bootstrap", "importlib._bootstrap_external"):
        file = os.path.normcase(Path(f"<frozen {name}>").absolute())
        inspect.modulesbyfile[file] = name


# ---------------------------------------------------------------- interface
def _arguments(
    plan: Plan, graph: Graph, baked: Mapping[str, np.ndarray], ports: Mapping[str, Argument]
) -> Iterable[Argument]:
    yield from (ports[name] for name in (*plan.inputs, *plan.outputs))
    given: Any = graph.module["main"]
    for name, var in zip(graph.params, given.params[len(plan.inputs) :], strict=True):
        shape = [int(extent) for extent in var.ty.shape]
        yield _argument(name, np.dtype(str(var.ty.dtype)), shape, "const")
    for name, array in baked.items():
        yield _argument(name, array.dtype, array.shape, "table")
    for name in _early(plan):
        space = plan.spaces[name]
        yield _argument(name, np.dtype(space.dtype), space.shape, "packed")


def _argument(name: str, dtype: np.dtype, shape: Sequence[int], role: Role) -> Argument:
    if dtype not in _DTYPES:
        raise Refused(f"an array of {dtype}")
    return Argument(name=name, dtype=_DTYPES[dtype], shape=tuple(shape), role=role)


def _early(plan: Plan) -> set[str]:
    """Spaces that are filled before the timed call."""
    return {o.name for step in plan.prepack for o in step.operands} & set(plan.spaces)


def _manifest(
    arguments: Mapping[str, Argument],
    plans: Plans,
    baked: Mapping[str, np.ndarray],
    target: Target,
    facts: tuple[float, float],
    built: build.DeviceBuild,
) -> Manifest:
    """``facts``: operations of a call, seconds of building."""

    def total(*roles: Role) -> int:
        found = [a for a in arguments.values() if a.role in roles]
        return sum(int(np.prod(a.shape, dtype=np.int64)) * a.dtype.bytes for a in found)

    bill = StaticFacts(
        flops=facts[0],
        io_bytes=total("input", "output", "const"),
        packed_bytes=total("packed"),
        workspace_bytes=plans["main"].workspace_bytes,
        code_bytes=None,
        compile_seconds=facts[1],
        nest="",
        kernels=built.kernels,
    )
    return Manifest(
        kernel="graph",
        target=target.name,
        library=built.library,
        arguments=tuple(arguments.values()),
        main_args=plans["main"].params,
        prepack_args=plans["prepack"].params if "prepack" in plans else (),
        tables={name: tuple(array.reshape(-1).tolist()) for name, array in baked.items()},
        plans=plans,
        facts=bill,
    )


# ---------------------------------------------------------------- plans
def _composed(plan: Plan, parts: Mapping[str, LaunchPlan], arguments: set[str]) -> Plans:
    """The functions' plans one after another, as plans of the whole."""
    late = {n: s for n, s in plan.spaces.items() if n not in _early(plan)}
    out: Plans = {"main": _joined(plan.steps, parts, arguments, late)}
    if plan.prepack:
        out["prepack"] = _joined(plan.prepack, parts, arguments, {})
    return out


def _joined(
    steps: Sequence[Step],
    parts: Mapping[str, LaunchPlan],
    arguments: set[str],
    spaces: Mapping[str, Space],
) -> LaunchPlan:
    workspaces = [Workspace(name=n, bytes=_bytes(s)) for n, s in spaces.items()]
    launches: list[LaunchStep] = []
    used: dict[str, None] = {}
    for number, step in enumerate(steps):
        part = parts[step.function]
        given = [_plain(operand.name) for operand in step.operands]
        used |= dict.fromkeys(name for name in given if name in arguments)
        names = dict(zip(part.params, given, strict=True))
        for space in part.workspaces:
            names[space.name] = f"{number}.{space.name}"
            workspaces.append(Workspace(name=names[space.name], bytes=space.bytes))
        launches += [_renamed(each, names) for each in part.steps]
    return LaunchPlan(params=tuple(used), workspaces=tuple(workspaces), steps=tuple(launches))


def _plain(name: str) -> str:
    """Arrays from outside go by the names that the task gives them."""
    kind, _, rest = name.partition(".")
    return rest if kind in ("input", "param", "output") else name


def _bytes(space: Space) -> int:
    size = int(np.prod(space.shape, dtype=np.int64)) * np.dtype(space.dtype).itemsize
    return max(1, size)


def _renamed(step: LaunchStep, names: Mapping[str, str]) -> LaunchStep:
    match step:
        case Launch():
            arguments = tuple(
                BufferArgument(buffer=names[a.buffer]) if isinstance(a, BufferArgument) else a
                for a in step.arguments
            )
            return step.model_copy(update={"arguments": arguments})
        case Repeat():
            body = tuple(_renamed(inner, names) for inner in step.body)
            return step.model_copy(update={"body": body})
        case Branch():
            then = tuple(_renamed(inner, names) for inner in step.then)
            otherwise = tuple(_renamed(inner, names) for inner in step.otherwise)
            return step.model_copy(update={"then": then, "otherwise": otherwise})
