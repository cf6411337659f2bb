"""From TIR to a shared library, with a pass list of our own.

TVM's default pipeline is made for block-form TIR; most of it has nothing to do here, and its
common-subexpression pass costs much and may take exponential time. What remains: flatten
buffers, vectorise, share workspace, unroll, wrap for the calling convention, generate code. TVM's
simplifier is left out on purpose: it takes ``x == x`` for true and ``not (a < b)`` for ``b <= a``,
which NaN disproves; the loop program comes with simple indices, and LLVM folds the constants.
"""

from __future__ import annotations

import math
import subprocess
from functools import lru_cache
from pathlib import Path
from shutil import which
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, tirx

from edgekernelbench.targets.model import Target

_STACK_BYTES = 1 << 16


def tvm_target(
    target: Target, features: tuple[str, ...] = (), llvm_options: tuple[str, ...] = ()
) -> Any:
    """The TVM target of a profile with the ``llvm`` backend.

    Args:
        features: what the code certainly uses. LLVM's idea of a CPU may lack what it has, and
            selecting an instruction that is missing would end the process.
        llvm_options: of LLVM's own, for this compilation only.
    """
    spec: dict[str, Any] = {"kind": "llvm", "num-cores": target.threads}
    if target.mcpu:
        spec["mcpu"] = target.mcpu
    if target.mattr or features:
        spec["mattr"] = [*target.mattr, *(f"+{feature}" for feature in features)]
    if target.mtriple:
        spec["mtriple"] = full_triple(target.mtriple)
    if llvm_options:
        spec["cl-opt"] = list(llvm_options)
    out = tvm.target.Target(spec)
    return out.with_host(out)


def full_triple(triple: str) -> str:
    """A triple with its vendor, which people leave out (``armv7l-linux-gnueabihf``): LLVM then
    takes the system for it, and passes floats as if the hardware had none."""
    parts = triple.split("-")
    if len(parts) == 3 and parts[1] == "linux":
        parts.insert(1, "unknown")
    return "-".join(parts)


def lower(module: ir.IRModule, target: Any) -> ir.IRModule:
    """Runs the passes from loop nests to code-generator input."""
    t = tirx.transform
    passes = [
        t.BindTarget(target),
        t.FlattenBuffer(),
        t.VectorizeLoop(True),
        t.StorageRewrite(),
        t.UnrollLoop(),
        _keep_on_stack(),
        t.AnnotateEntryFunc(),
        t.SplitHostDevice(),
        t.MakePackedAPI(),
        t.LowerTVMBuiltin(),
        t.LowerIntrin(),
    ]
    return tvm.ir.transform.Sequential(passes)(module)


def _keep_on_stack() -> Any:
    """Marks small ``local`` buffers so that they stay stack slots, which LLVM keeps in registers.

    Without the mark TVM turns those of 1 KiB and more into calls of the workspace allocator.
    """

    def mark(allocation: tirx.AllocBuffer) -> tirx.AllocBuffer:
        buffer: Any = allocation.buffer
        if buffer.scope() != "local" or _bytes(buffer) > _STACK_BYTES:
            return allocation
        return tirx.AllocBuffer(buffer, {"disable_lower_builtin": tirx.IntImm("bool", 1)})

    def rewrite(function: Any, _module: Any, _context: Any) -> Any:
        body = tvm_ffi.structural_map(function.body, (tirx.AllocBuffer, mark))
        return function.with_body(body)

    return tirx.transform.prim_func_pass(rewrite, opt_level=0, name="ekb.KeepOnStack")


def _bytes(buffer: Any) -> int:
    dtype = tvm.DataType(str(buffer.dtype))
    return math.prod(int(n) for n in buffer.shape) * dtype.bits * dtype.lanes // 8


def generate(module: ir.IRModule, target: Any) -> Any:
    """LLVM module (a `tvm.runtime.Module`) of lowered functions."""
    return tvm.get_global_func("target.build.llvm")(module, target)


@lru_cache(maxsize=8)
def _linkers(triple: str | None) -> tuple[tuple[str, ...], ...]:
    """Commands that link shared libraries, the fastest first: a bare ``ld`` takes 3 ms, the C
    compiler's driver ten times as long."""
    if triple is not None:
        triple = triple.replace("-unknown-", "-")  # GNU's tools are called without it
    prefix = "" if triple is None else f"{triple}-"
    names = ("ld", "cc", "gcc", "clang") if triple is None else ("ld", "gcc")
    found = tuple((path, "-shared") for name in names if (path := which(prefix + name)))
    if not found:
        what = "ld, cc, gcc or clang" if triple is None else f"{prefix}gcc"
        raise FileNotFoundError(f"nothing found to link a shared library with: install {what}")
    return found


def link(code: Any, library: Path, triple: str | None = None) -> None:
    """Writes the object code of an LLVM module and links it into a shared library.

    Args:
        code: what `generate` returned.
        library: the file to write.
        triple: the GNU triple of the target when it is not this host.

    Raises:
        FileNotFoundError: if there is no linker.
        RuntimeError: if every linker fails.
    """
    object_file = library.with_suffix(".o")
    code.write_to_file(str(object_file), "o")
    failures = []
    for linker in _linkers(triple):
        command = [*linker, "-o", str(library), str(object_file), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            object_file.unlink()
            return
        failures.append(f"{linker[0]}: {done.stderr.strip()[-300:]}")
    raise RuntimeError("linking failed: " + "; ".join(failures))
