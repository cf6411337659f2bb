"""From an ONNX model to a core program, by way of the compiler's own lowering.

Relax imports the model and lowers each operator to a loop function of TOPI; every block of those
functions becomes a stage. So a task that ONNX can say has a program to start from, and the
compiler's view of a model can be scheduled like any kernel. Importing this package does not import
TVM.
"""

from edgekernelbench.compilers.tvm.lift.lift import LiftResult, lift

__all__ = ["LiftResult", "lift"]
