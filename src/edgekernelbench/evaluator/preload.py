"""What each fork server imports before its first fork. Nothing here may start a thread."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


def compile_side() -> None:
    """The language, the lowering and TVM's compiler, each used once: grammar tables, lazy imports
    and compiler passes are then there for every fork."""
    import tempfile
    from pathlib import Path

    without_torch()
    from edgekernelbench.compilers.tvm.compiler import TvmCompiler
    from edgekernelbench.evaluator import buildchild  # noqa: F401
    from edgekernelbench.evaluator.machinery import CANARY
    from edgekernelbench.evaluator.static import check_text
    from edgekernelbench.ir.printer import kernel_hash
    from edgekernelbench.targets.host import host_target

    checked = check_text(CANARY, None)
    if checked.kernel is None or checked.program is None:
        raise RuntimeError(f"the canary is refused: {checked.diagnostics}")
    kernel_hash(checked.kernel)
    with tempfile.TemporaryDirectory() as folder:
        target = host_target()
        TvmCompiler().compile(checked.kernel, checked.program, target, Path(folder))


class _NoTorch(MetaPathFinder):
    """Makes ``import torch`` fail, without a trace in `sys.modules`, where SciPy looks for it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname.partition(".")[0] == "torch":
            raise ModuleNotFoundError("PyTorch is not wanted in this process", name=fullname)


def without_torch() -> None:
    """TVM imports PyTorch where it is installed: that takes seconds, and on a machine with a GPU
    it starts a thread."""
    sys.meta_path.insert(0, _NoTorch())


def run_side() -> None:
    """TVM's run time and NumPy."""
    without_torch()
    import edgekernelbench.compilers.tvm.execute as execute
    import edgekernelbench.evaluator.runchild
    import edgekernelbench.evaluator.runners  # noqa: F401

    execute.load_runtime()


def device_side() -> None:
    """NumPy, the runner and pyopencl. No driver: loading one starts threads."""
    without_torch()
    import pyopencl  # noqa: F401

    import edgekernelbench.compilers.tvm.device.load
    import edgekernelbench.evaluator.runchild
    import edgekernelbench.evaluator.runners  # noqa: F401


def cuda_side() -> None:
    """NumPy and the runner. No driver: loading one starts threads."""
    without_torch()
    import edgekernelbench.compilers.tvm.device.cuda
    import edgekernelbench.compilers.tvm.device.load
    import edgekernelbench.evaluator.runchild
    import edgekernelbench.evaluator.runners  # noqa: F401


def c_side() -> None:
    """The C compiler, asked and tried, so that no fork has to do it again."""
    from edgekernelbench.compilers.c.functions import library
    from edgekernelbench.targets.cc import c_target

    library()
    c_target()


def toolkit_side() -> None:
    """What nvcc says of itself, so that no fork has to ask again."""
    from edgekernelbench.targets.toolkit import find_toolkit

    find_toolkit()


def torch_side() -> None:
    """NumPy and the runner. Not PyTorch itself: importing it may start threads."""
    import edgekernelbench.baselines.torch
    import edgekernelbench.evaluator.runchild  # noqa: F401


def ort_side() -> None:
    """NumPy and the runner. Not ONNX Runtime itself: importing it starts a thread."""
    import edgekernelbench.baselines.ort
    import edgekernelbench.evaluator.runchild  # noqa: F401
