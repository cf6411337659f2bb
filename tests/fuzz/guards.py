"""Kernels run with every buffer between closed pages: inputs, outputs, constants, workspace.

A read or write beyond a buffer ends the process, unless it stays within the 63 bytes that alignment
may leave: there writes are seen by a pattern, and reads because two runs with different patterns
give different results. `guarded` moves what a loaded kernel is given; `guarded_build` makes the
code generator take from the workspace what it would keep on the stack.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from edgekernelbench.ir.dtypes import DType

SURPLUS = 1024
"""Bytes from which TVM takes constant-size buffers from the workspace: so many are added."""

_SOURCE = Path(__file__).with_name("guards.c")


@functools.cache
def library() -> ctypes.CDLL:
    """``guards.c``, compiled once per process and its children.

    Raises:
        subprocess.CalledProcessError: the C compiler refuses it.
    """
    with TemporaryDirectory(prefix="ekb-guards-") as folder:
        built = Path(folder) / "guards.so"
        flags = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-Wall", "-Werror")
        subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", built, _SOURCE], check=True)
        out = ctypes.CDLL(str(built))
    out.guards_alloc.restype = ctypes.c_void_p
    out.guards_alloc.argtypes = (ctypes.c_int64,)
    out.guards_damage.restype = ctypes.c_int64
    out.guards_damage.argtypes = out.guards_free.argtypes = (ctypes.c_void_p,)
    return out


class Guards:
    """The buffers of one run. Arrays from `empty` are gone after `close`."""

    def __init__(self, at_end: bool, fill: int, surplus: int = 0) -> None:
        self._arrays: list[tuple[int, int]] = []
        self._set("at_end", ctypes.c_int, int(at_end))
        self._set("fill", ctypes.c_ubyte, fill)
        self._set("surplus", ctypes.c_int64, surplus)
        for name in ("workspaces", "live", "damaged"):
            self._set(name, ctypes.c_long, 0)

    @staticmethod
    def _set(name: str, kind: Any, value: int) -> None:
        kind.in_dll(library(), f"guards_{name}").value = value

    @staticmethod
    def _count(name: str) -> int:
        return ctypes.c_long.in_dll(library(), f"guards_{name}").value

    @property
    def workspaces(self) -> int:
        """How many buffers the kernel has taken from the workspace."""
        return self._count("workspaces")

    def empty(self, shape: tuple[int, ...], dtype: np.dtype | DType) -> np.ndarray:
        """Stands in for `execute.aligned_empty`.

        Raises:
            MemoryError: there is none.
        """
        dtype = dtype.numpy if isinstance(dtype, DType) else np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        address = library().guards_alloc(size)
        if not address:
            raise MemoryError(f"{size} bytes between guards")
        self._arrays.append((address, size))
        raw = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address))
        return raw.view(dtype).reshape(shape)

    def attach(self, kernel: Path) -> None:
        """Gives a library that is loaded already this workspace allocator."""
        loaded = ctypes.CDLL(str(kernel))
        for theirs, ours in (("Alloc", "workspace"), ("Free", "release")):
            name = f"__TVMBackend{theirs}Workspace"
            if not hasattr(loaded, name):  # a kernel without workspace
                continue
            pointer = ctypes.c_void_p.in_dll(loaded, name)
            function = getattr(library(), f"guards_{ours}")
            pointer.value = ctypes.cast(function, ctypes.c_void_p).value

    def damage(self) -> str:
        """What was written beside buffers or not given back; empty if nothing."""
        for address, size in self._arrays:
            if bad := library().guards_damage(address):
                return f"{bad} bytes beside an array of {size}"
        if bad := self._count("damaged"):
            return f"beside {bad} workspace buffers"
        if left := self._count("live"):
            return f"{left} workspace buffers are not given back"
        return ""

    def close(self) -> None:
        """Gives all arrays back."""
        for address, _ in self._arrays:
            library().guards_free(address)
        self._arrays.clear()


@contextmanager
def guarded(at_end: bool, fill: int, surplus: int = 0) -> Iterator[Guards]:
    """Inside, every array that a loaded kernel is given or makes lies between guards.

    Args:
        at_end: buffers end at a closed page, else they begin behind one.
        fill: byte that new buffers and what is beside them hold.
        surplus: bytes that `guarded_build` has added to every workspace buffer.
    """
    from edgekernelbench.compilers.tvm import execute

    guards, plain = Guards(at_end, fill, surplus), execute.aligned_empty
    execute.aligned_empty = guards.empty
    try:
        yield guards
    finally:
        execute.aligned_empty = plain
        guards.close()


@contextmanager
def guarded_build() -> Iterator[None]:
    """Inside, kernels are compiled with all their buffers in the workspace, `SURPLUS` bytes longer
    than they are, and without the optimiser: it would drop accesses whose value is not used."""
    from edgekernelbench.compilers.tvm import build

    keep, target = build._keep_on_stack, build.tvm_target
    build._keep_on_stack = _into_workspace
    build.tvm_target = _without_optimiser(target)
    try:
        yield
    finally:
        build._keep_on_stack, build.tvm_target = keep, target


def _without_optimiser(make: Any) -> Any:
    import tvm

    def target(profile: Any, *features: Any) -> Any:
        spec = {**make(profile, *features).export(), "opt-level": 0}
        spec.pop("host", None)
        out = tvm.target.Target(spec)
        return out.with_host(out)

    return target


def _into_workspace() -> Any:
    """The pass that stands in for the one that keeps small buffers on the stack."""
    import tvm_ffi
    from tvm import tirx
    from tvm.ir import Var

    from edgekernelbench.compilers.tvm.build import _bytes

    def rewrite(function: Any, _module: Any, _context: Any) -> Any:
        longer: dict[Any, Any] = {}

        def see(allocation: tirx.AllocBuffer) -> tirx.AllocBuffer:
            old: Any = allocation.buffer
            count = math.prod(int(n) for n in old.shape)
            more = SURPLUS // (_bytes(old) // count)
            longer[old] = tirx.decl_buffer((count + more,), old.dtype, old.name, scope=old.scope())
            return allocation

        tvm_ffi.structural_map(function.body, (tirx.AllocBuffer, see))
        used = (Var, lambda var: longer.get(var, var))
        return function.with_body(tvm_ffi.structural_map(function.body, used))

    return tirx.transform.prim_func_pass(rewrite, opt_level=0, name="ekb.IntoWorkspace")
