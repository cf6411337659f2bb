"""Host and device functions of a module, and the device's source.

Two ways lead here. Loop programs come as plain TIR with loops bound to threads and need a short
list of passes. What a scheduler made comes in blocks and takes the compiler's own pipeline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, tirx
from tvm.ir.instrument import pass_instrument

from edgekernelbench.compilers.tvm.gpu import build

_SPLIT = "tirx.SplitHostDevice"


@dataclass(frozen=True, slots=True)
class Split:
    """Functions by symbol; ``module`` holds the kernels as the code generator wants them."""

    hosts: dict[str, Any]
    kernels: dict[str, Any]
    module: ir.IRModule


def split_loops(module: ir.IRModule, target: Any) -> Split:
    """Of plain loops bound to threads (``thread_extent``) with their barriers: see `gpu.build`."""
    return _parts(build.split(module, target))


def split_blocks(module: ir.IRModule, target: Any) -> Split:
    """Of scheduled blocks, by the compiler's default pipeline up to the split."""
    seen = _AfterSplit()
    ways: Any = tirx.get_default_tir_pipeline(target)
    pipeline = ways[0]
    with tvm.transform.PassContext(instruments=[seen]):
        pipeline(tirx.transform.BindTarget(target)(module))
    if seen.module is None:
        raise RuntimeError(f"the pipeline has no pass {_SPLIT}")
    return _parts(seen.module)


@pass_instrument
class _AfterSplit:
    """Keeps the module as it is right after host and device have been parted."""

    def __init__(self) -> None:
        self.module: ir.IRModule | None = None

    def run_after_pass(self, module: ir.IRModule, info: Any) -> None:
        if info.name == _SPLIT:
            self.module = module


def _parts(module: Any) -> Split:
    hosts, kernels = {}, {}
    for variable, function in module.functions.items():
        on_device = "tirx.kernel_launch_params" in (function.attrs or {})
        (kernels if on_device else hosts)[str(variable.name_hint)] = function
    return Split(hosts, kernels, ir.IRModule(dict(kernels)))


def shared_bytes(kernel: Any) -> int:
    """Shared memory that a kernel allocates statically."""
    found = 0

    def look(allocation: tirx.AllocBuffer) -> None:
        nonlocal found
        buffer: Any = allocation.buffer
        if buffer.scope() == "shared":
            dtype = tvm.DataType(str(buffer.dtype))
            bits = math.prod(int(n) for n in buffer.shape) * dtype.bits * dtype.lanes
            found += -(-bits // 8)

    tvm_ffi.structural_walk(kernel.body, (tirx.AllocBuffer, look))
    return found


def source(split: Split, target: Any) -> str:
    """All kernels in the device's language."""
    passes = [tirx.transform.LowerWarpMemory(), tirx.transform.LowerIntrin()]
    module = tvm.ir.transform.Sequential(passes)(split.module)
    return build.source_text(build.generate(module, target), tuple(split.kernels))
