"""The suite: patterns, workloads, references, ONNX twins, inputs and tolerances."""

from edgekernelbench.suite.correctness import TOLERANCE_VERSION, Correctness
from edgekernelbench.suite.load import SUBSETS, Suite, load_suite
from edgekernelbench.suite.model import Definition, TensorSpec, Workload

__all__ = [
    "SUBSETS",
    "TOLERANCE_VERSION",
    "Correctness",
    "Definition",
    "Suite",
    "TensorSpec",
    "Workload",
    "load_suite",
]
