"""From TIR with bound loops to host functions and device source, with a pass list of our own.

As on the CPU, TVM's simplifier and its common-subexpression pass are left out: see `..build`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, tirx
from tvm.ir.expr import TensorLoad

from edgekernelbench.compilers.tvm.gpu.definitions import with_definitions
from edgekernelbench.compilers.tvm.scalars import dtype_name
from edgekernelbench.targets.model import Target


def device_target(target: Target) -> Any:
    """The TVM target of a profile with a GPU's backend; its host is this machine's CPU.

    On OpenCL it says nothing of threads that run in step, as TVM's own default does: told of a
    warp, TVM reduces with barriers that only some work items reach, on which NVIDIA's driver hangs.

    Raises:
        ValueError: the profile has no GPU.
    """
    if target.gpu is None:
        raise ValueError(f"target {target.name!r} has no GPU")
    spec: dict[str, Any] = {
        "kind": target.backend,
        "max_num_threads": target.gpu.sure_threads,
        "max_threads_per_block": target.gpu.sure_threads,
        "max_shared_memory_per_block": target.gpu.shared_bytes,
        "thread_warp_size": 1 if target.backend == "opencl" else target.gpu.warp,
    }
    if target.gpu.arch is not None:
        spec["arch"] = target.gpu.arch
    return tvm.target.Target(spec).with_host(tvm.target.Target("llvm"))


def split(module: ir.IRModule, target: Any) -> ir.IRModule:
    """Runs the passes from bound loops to kernels and a host function that launches them."""
    t = tirx.transform
    passes = [
        t.BindTarget(target),
        t.FlattenBuffer(),
        t.VectorizeLoop(True),
        t.UnrollLoop(),
        _branches(),
        t.AnnotateEntryFunc(),
        t.SplitHostDevice(),
    ]
    return tvm.ir.transform.Sequential(passes)(module)


def _branches() -> Any:
    """Scalar selections become conditional expressions.

    OpenCL's ``select`` wants its condition as wide as its values, and loads both of them.
    """

    def branch(node: tirx.Select) -> Any:
        if tvm.DataType(dtype_name(node)).lanes > 1:
            return node
        return tirx.if_then_else(node.condition, node.true_value, node.false_value)

    def rewrite(function: Any, _module: Any, _context: Any) -> Any:
        return function.with_body(tvm_ffi.structural_map(function.body, (tirx.Select, branch)))

    return tirx.transform.prim_func_pass(rewrite, opt_level=0, name="ekb.Branches")


def device_functions(lowered: ir.IRModule) -> ir.IRModule:
    """The kernels of a module that was `split`, ready for the code generator."""
    kernels = {
        name: function
        for name, function in _functions(lowered).items()
        if "tirx.kernel_launch_params" in function.attrs
    }
    return tirx.transform.LowerIntrin()(ir.IRModule(kernels))


def device_module(lowered: ir.IRModule, target: Any) -> Any:
    """What the device's code generator makes of the kernels (a `tvm.runtime.Module`)."""
    return generate(device_functions(lowered), target)


def generate(kernels: ir.IRModule, target: Any) -> Any:
    """The same of a module that holds nothing but kernels. No more than source is made of them."""
    kernels = _honest_aliases()(kernels)
    kernels = _exact_constants(target.kind.name)(kernels)
    with _uncompiled(), target:
        return tvm.get_global_func(f"target.build.{target.kind.name}")(kernels, target)


def _honest_aliases() -> Any:
    """Takes ``restrict`` off kernels that read what they write.

    nvcc turns a choice between reading such a buffer and reading a constant one into a choice of
    pointers, and reads through the cache for constant data, which does not see the writes: a
    recurrence on sm_90 read its own last step from there.
    """

    def rewrite(function: Any, _module: Any, _context: Any) -> Any:
        written = _global_buffers(function.body, tirx.BufferStore, "buffer")
        read = _global_buffers(function.body, TensorLoad, "source")
        both = any(a.same_as(b) for a in written for b in read)
        return function.without_attr("tirx.noalias") if both else function

    return tirx.transform.prim_func_pass(rewrite, opt_level=0, name="ekb.HonestAliases")


_Written = tuple[type[np.floating], type[np.integer], str, str]
_WRITTEN: dict[str, dict[str, _Written]] = {
    "opencl": {
        "float32": (np.float32, np.int32, "as_float", "{:.6e}"),
        "float64": (np.float64, np.int64, "as_double", "{:.6e}"),
    },
    "cuda": {"float64": (np.float64, np.int64, "__longlong_as_double", "{:.15f}")},
}
"""How TVM's code generators write constants, where that can be another number, and the function
that makes the number of its bits."""


def _exact_constants(backend: str) -> Any:
    """Constants by their bits where what the code generator would write is another number."""
    written = _WRITTEN.get(backend, {})

    def exact(node: tirx.FloatImm) -> Any:
        name = dtype_name(node)
        if name not in written or not np.isfinite(node.value):
            return node
        floats, integers, function, form = written[name]
        value = floats(node.value)
        if floats(form.format(value)) == value:
            return node
        bits = tirx.IntImm(np.dtype(integers).name, int(value.view(integers)))
        return tirx.call_pure_extern(name, function, bits)

    def rewrite(function: Any, _module: Any, _context: Any) -> Any:
        return function.with_body(tvm_ffi.structural_map(function.body, (tirx.FloatImm, exact)))

    return tirx.transform.prim_func_pass(rewrite, opt_level=0, name="ekb.ExactConstants")


def _global_buffers(body: Any, kind: type, field: str) -> list[Any]:
    found: list[Any] = []

    def look(node: Any) -> None:
        buffer = getattr(node, field)
        if buffer.scope() == "global" and not any(buffer.same_as(known) for known in found):
            found.append(buffer)

    tvm_ffi.structural_walk(body, (kind, look))
    return found


_COMPILE = "tvm_callback_cuda_compile"


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Where TVM finds a CUDA device it compiles what it generates, with flags of its own choice;
    here the source is what counts."""
    before = tvm.get_global_func(_COMPILE)
    tvm_ffi.register_global_func(_COMPILE, lambda code, *_: code.encode(), override=True)
    try:
        yield
    finally:
        tvm_ffi.register_global_func(_COMPILE, before, override=True)


def device_source(lowered: ir.IRModule, target: Any) -> str:
    """The kernels of a module that was `split` in the device's language.

    Raises:
        ValueError: a kernel is missing from what the code generator wrote. It answers a question
            for a format that it does not know with an empty text.
    """
    return source_text(device_module(lowered, target), kernel_names(lowered))


def source_text(made: Any, names: tuple[str, ...]) -> str:
    """The source in what a code generator made (a `tvm.runtime.Module`) of kernels of these names.

    Raises:
        ValueError: see `device_source`.
    """
    source = made.inspect_source()
    missing = [name for name in names if not re.search(rf"\b{name}\(", source)]
    if missing or not names:
        raise ValueError(f"no source of kernels {', '.join(missing) or '(there are none)'}")
    return with_definitions(source)


def kernel_names(lowered: ir.IRModule) -> tuple[str, ...]:
    """The kernels of a module that was `split`."""
    return tuple(name.name_hint for name in _functions(device_functions(lowered)))


def _functions(module: Any) -> Any:
    """Functions by `GlobalVar`; type checkers do not see the attribute."""
    return module.functions
