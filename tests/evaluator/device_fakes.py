"""A compiler whose "kernels" are bodies in OpenCL C, so that what the language forbids can be tried
on a device. Runs in child processes; the task is `fakes.FakeTask`: ``y = x * w``."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.compilers.base import Manifest
from edgekernelbench.compilers.launch import (
    BufferArgument,
    Launch,
    LaunchPlan,
    Repeat,
    ScalarArgument,
    Workspace,
)
from edgekernelbench.compilers.tvm.device import build, cubin, nvcc, opencl_check
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.buildchild import KernelReply, refusal
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.targets.model import Target
from tests.evaluator.child_fakes import N, manifest

GROUP = 64

BODIES = {
    "canary": "y[i] = 2 * x[i] + 1;",
    "correct": "y[i] = x[i] * w[i];",
    "twice": "float s = 0; for (int k = 0; k < 64; ++k) s += x[i] * w[(i + k) % 4096] / 64.0f;"
    " y[i] = x[i] * w[i] + (s - s);",
    "wrong": "y[i] = x[i] * w[i] * (i == 17 ? 1.01f : 1.0f);",
    "nothing": "",
    "half": "if (i < 2048) y[i] = x[i] * w[i];",
    "behind": "y[i] = x[i] * w[i]; if (i == 0) y[4096] = 1.0f;",
    "before": "y[i] = x[i] * w[i]; if (i == 0) y[-1] = 1.0f;",
    "input": "y[i] = x[i] * w[i]; if (i == 3) x[3] = 0.5f;",
    "space": "y[i] = x[i] * w[i]; t[i] = y[i]; if (i == 0) t[4096] = 1.0f;",
    "loop": "while (w[0] == w[0]) *(volatile __global float *)(y + i) = 1.0f;",
    "segfault": "*(volatile __global int *)8 = 1; y[i] = x[i] * w[i];",
    "syntax": "y[i] = x[i] *;",
    "shared": "y[i] = x[i] * w[i];",
    "steps": "y[i] = step < 3 ? 0.0f : x[i] * w[i];",
    "forever": "y[i] = x[i] * w[i];",
    "large_groups": "y[i] = x[i] * w[i];",
}


def cuda_source(body: str) -> str:
    """The same as `source` in CUDA."""
    text = BODIES[body].replace("__global ", "")
    return (
        'extern "C" __global__ void k(float *x, const float *w, float *y, float *t, int step)\n'
        f"{{ int i = blockIdx.x * blockDim.x + threadIdx.x; {text} }}\n"
    )


def source(body: str) -> str:
    """The kernel of a body: ``t`` is a workspace, ``step`` a number from the host."""
    return (
        "__kernel void k(__global float *x, __global const float *w, __global float *y,"
        " __global float *t, int step)\n"
        f"{{ int i = get_global_id(0); {BODIES[body]} }}\n"
    )


def plan(body: str, n: int) -> LaunchPlan:
    """One launch, or a loop of them."""
    names = ("x", "x" if body == "canary" else "w", "y", "t")
    looped = body in ("steps", "forever")
    group = 8192 if body == "large_groups" else GROUP
    launch = Launch(
        kernel="k",
        arguments=(
            *(BufferArgument(buffer=name) for name in names),
            ScalarArgument(dtype="int32", value="step" if looped else 0),
        ),
        groups=(max(1, n // group), 1, 1),
        group_size=(group, 1, 1),
        shared_bytes=65536 if body == "shared" else 0,
    )
    extent = 10**9 if body == "forever" else 4
    loop = Repeat(var="step", low=0, extent=extent, body=(launch,))
    return LaunchPlan(
        params=("x", "y") if body == "canary" else ("x", "w", "y"),
        workspaces=(Workspace(name="t", bytes=4 * N),),
        steps=(loop if looped else launch,),
    )


def build_body(body: str, target: Target, folder: Path) -> KernelReply:
    """Code and manifest; the device's compiler takes it, as for any kernel. Of the driver in
    `fake_cuda.c` a body's name is all that is wanted."""
    n = 64 if body == "canary" else N
    made: Manifest = manifest(n=n, out=n, const=body != "canary")
    made = made.model_copy(update={"plans": {"main": plan(body, n)}})
    code = build.DeviceCode("", dict(made.plans))
    library, found = nvcc.CUBIN, ()
    if target.cuda is None:
        library, found = _opencl(replace(code, source=source(body)), body, target, folder)
    elif target.cuda.name.startswith("Fake"):
        (folder / library).write_text(body)
    elif body == "forever":
        library = _plain(cuda_source(body), folder)
    else:
        finished = cubin.finish(replace(code, source=cuda_source(body)), target, folder)
        library, found = finished.library, finished.diagnostics
    if found:
        dicts = tuple(d.as_dict() for d in found)
        return KernelReply(outcome=refusal(found), diagnostics=dicts)
    made = made.model_copy(update={"library": library})
    (folder / "manifest.json").write_text(made.model_dump_json())
    return KernelReply(outcome="built", kernel_hash="0" * 64)


def _opencl(
    code: build.DeviceCode, body: str, target: Target, folder: Path
) -> tuple[str, tuple[Diagnostic, ...]]:
    (folder / opencl_check.SOURCE).write_text(code.source)
    if body == "forever" or target.opencl is None:
        return opencl_check.SOURCE, ()
    return opencl_check.SOURCE, opencl_check.check_on_device(code, target.opencl, folder)


def _plain(text: str, folder: Path) -> str:
    """A file that is never loaded: the plan is refused before."""
    (folder / nvcc.SOURCE).write_text(text)
    return nvcc.SOURCE


def build_kernel(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Stands in for `buildchild.build_kernel`; the text is a body's name."""
    target = Target.model_validate(payload["target"])
    body = payload["text"].strip().removeprefix("#")
    wire.send(connection, build_body(body, target, Path.cwd()).model_dump())


class DeviceBaseline:
    """A baseline whose program is a body."""

    version = 1
    scored = True

    def __init__(self, name: str, body: str) -> None:
        self.name, self.body = name, body

    def available(self, materials: Materials, target: Target) -> str | None:
        return None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        reply = build_body(self.body, target, folder)
        if reply.outcome != "built":
            return Unavailable("not built")
        return Recipe(baseline=self.name, kind="device-kernel", route="OpenCL C")


SLOW = DeviceBaseline("slow", "twice")
WRONG = DeviceBaseline("wrong", "wrong")
