"""The plugs of an evaluator: fork servers, compiler, runners, baselines, and the canary.

`machinery` gives the real ones. Everything is named by text (``module:thing``) and imported in
the process that uses it; tests put fakes in their place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edgekernelbench.baselines.base import RunnerKind
from edgekernelbench.evaluator.forkserver import ServerSpec
from edgekernelbench.targets import cuda, opencl
from edgekernelbench.targets.device import CudaDevice, Device
from edgekernelbench.targets.model import Backend

ServerName = Literal["compile", "run", "ort", "device", "torch"]

CANARY = """
kernel canary[N=64](x: f32[N]) -> (y: f32[N]) {
  compute { y[i] = x[i] * 2 + 1 }
}
"""
"""Known to be good. Its time is the launch overhead; its failure means the device is broken."""

CANARY_SIZE = 64


@dataclass(frozen=True, slots=True)
class RunnerPlug:
    """Which server forks the process, and what makes the runner there (folder, options).

    ``device`` is where it runs programs, if that is not the host's own processor and memory.
    """

    server: ServerName
    factory: str
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class Machinery:
    """See the module. ``compiler`` is ``module:Class``; ``baselines`` maps names to modules."""

    servers: Mapping[ServerName, ServerSpec]
    compiler: str
    runners: Mapping[RunnerKind, RunnerPlug]
    baselines: Mapping[str, str]
    canary: str = CANARY
    build_kernel: str = "edgekernelbench.evaluator.buildchild:build_kernel"
    build_baseline: str = "edgekernelbench.evaluator.buildchild:build_baseline"

    def packages(self) -> frozenset[str]:
        """Names of the packages that children import plugs from."""
        factories = (plug.factory for plug in self.runners.values())
        named = (self.compiler, self.build_kernel, self.build_baseline, *factories)
        modules = (*named, *self.baselines.values())
        return frozenset(name.partition(":")[0].partition(".")[0] for name in modules) - {""}


def machinery(threads: int, device: Device | None = None, backend: Backend = "llvm") -> Machinery:
    """The compiler of ``backend`` for kernels, the registered baselines, ``threads`` cores for
    every contestant, or a device for all of them."""
    from edgekernelbench.baselines.packs import PACKS_VARIABLE, pack_places
    from edgekernelbench.baselines.registry import BASELINES

    here = "edgekernelbench.evaluator.preload"
    run_env = {
        "TVM_NUM_THREADS": str(threads),
        "TVM_THREAD_POOL_SPIN_COUNT": str(spin_count()),
        "TVM_BIND_THREADS": "0",  # see `targets.placement`
    } | HUGE_PAGES
    packs = pack_places()
    compile_env = {PACKS_VARIABLE: packs}
    compile_side: tuple[str, ...] = (f"{here}:compile_side", "edgekernelbench.analysis.report")
    servers: dict[ServerName, ServerSpec] = {
        "run": ServerSpec("run", (f"{here}:run_side",), run_env),
        "ort": ServerSpec("ort", (f"{here}:ort_side",), HUGE_PAGES),
    }
    if device is not None:
        on_cuda = isinstance(device, CudaDevice)
        env = cuda_environment() if on_cuda else device_environment(threads)
        side = f"{here}:cuda_side" if on_cuda else f"{here}:device_side"
        compile_env |= env
        compile_side += (side, f"{here}:toolkit_side") if on_cuda else (side,)
        servers["device"] = ServerSpec("device", (side,), env, drivers=True)
        servers["torch"] = ServerSpec("torch", (f"{here}:torch_side",), env, drivers=True)
    if backend == "c":
        compile_side += (f"{here}:c_side",)
    servers["compile"] = ServerSpec(
        "compile",
        compile_side,
        compile_env,
        drivers=device is not None,
        reads=tuple(packs.split(os.pathsep)),
    )
    runners = "edgekernelbench.evaluator.runners"
    return Machinery(
        servers=servers,
        compiler=_COMPILERS.get(backend, "edgekernelbench.compilers.tvm:TvmCompiler"),
        runners={
            "tvm-library": RunnerPlug("run", f"{runners}:tvm_library"),
            "tvm-plan": RunnerPlug("run", f"{runners}:tvm_plan"),
            "relax": RunnerPlug("run", f"{runners}:relax"),
            "device-kernel": RunnerPlug("device", f"{runners}:device_kernel", device),
            "ort": RunnerPlug("ort", "edgekernelbench.baselines.ort:OrtRunner"),
            "torch": RunnerPlug("torch", "edgekernelbench.baselines.torch:TorchRunner", device),
        },
        baselines=BASELINES,
    )


_COMPILERS: Mapping[str, str] = {"c": "edgekernelbench.compilers.c:CCompiler"}
"""Of backends that have another one than TVM."""


def device_environment(threads: int) -> dict[str, str]:
    """Where OpenCL drivers are, and how many cores one for CPUs may take."""
    places = {name: os.environ[name] for name in opencl.PASSED_ON if name in os.environ}
    return places | {"POCL_MAX_PTHREAD_COUNT": str(threads), "PYOPENCL_NO_CACHE": "1"}


def cuda_environment() -> dict[str, str]:
    """Which NVIDIA devices there are, and where driver and compiler lie. Both sides of every
    comparison multiply f32 as f32."""
    places = {name: os.environ[name] for name in cuda.PASSED_ON if name in os.environ}
    return places | {"NVIDIA_TF32_OVERRIDE": "0"}


HUGE_PAGES = {
    "GLIBC_TUNABLES": ":".join(
        (
            "glibc.malloc.hugetlb=1",
            f"glibc.malloc.mmap_threshold={32 << 20}",
            f"glibc.malloc.top_pad={64 << 20}",
        )
    )
}
"""Lets the C library take huge pages for what contestants allocate themselves (workspace, packed
weights), as their arenas do: with small pages, where those happen to lie decides how arrays share
a cache, and a program's time differs by 10 % from process to process."""

SPIN_SECONDS = 0.0005
"""How long idle worker threads of a contestant spin before they sleep. By default TVM's spin for
150 ms and ONNX Runtime's for 30 ms, which would take a core from the next contestant. This
outlasts the gaps between the calls of a sample, so a contestant's own time stays the same."""


def spin_count() -> int:
    """Spins of TVM's thread pool that take about `SPIN_SECONDS`; each yields the processor.

    The shortest of many short trials: on a busy machine most yields hand the processor over.
    """
    rounds = 10
    best = min(_seconds_of_yields(rounds) for _ in range(300))
    return max(100, min(300_000, int(SPIN_SECONDS * rounds / best)))


def _seconds_of_yields(rounds: int) -> float:
    began = time.perf_counter()
    for _ in range(rounds):
        os.sched_yield()
    return time.perf_counter() - began
