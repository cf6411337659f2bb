"""What each fork server imports before its first fork. Nothing here may start a thread."""

from __future__ import annotations


def compile_side() -> None:
    """The language, the lowering and TVM's compiler."""
    import sys

    # With PyTorch installed TVM would import it, too: three seconds for nothing.
    sys.modules["torch"] = None  # type: ignore[assignment]
    import tvm  # noqa: F401

    import edgekernelbench.compilers.tvm.compiler
    import edgekernelbench.evaluator.buildchild
    import edgekernelbench.ir.elaborate
    import edgekernelbench.ir.parse
    import edgekernelbench.ir.printer
    import edgekernelbench.ir.verify
    import edgekernelbench.lowering.lower  # noqa: F401


def run_side() -> None:
    """TVM's run time and NumPy."""
    import edgekernelbench.compilers.tvm.execute as execute
    import edgekernelbench.evaluator.runchild
    import edgekernelbench.evaluator.runners  # noqa: F401

    execute._load_runtime()


def ort_side() -> None:
    """ONNX Runtime and NumPy."""
    import onnxruntime  # noqa: F401

    import edgekernelbench.baselines.ort
    import edgekernelbench.evaluator.runchild  # noqa: F401
