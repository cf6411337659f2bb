"""A small task in two dtypes, apart from the suite."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.tolerance import Facts, compare

M, K, N = 32, 48, 64


class Dense:
    """``Y = relu(X W + b)``."""

    id = "dense"
    dtype = "f32"
    tolerance = "f32_reduction"
    flops = 2 * M * N * K
    bytes_touched = 4 * (M * K + K * N + N + M * N)
    sizes: Mapping[str, int | float] = {"M": M, "K": K, "N": N}
    input_specs = (
        TensorSpec(name="X", dtype=DType.F32, shape=(M, K)),
        TensorSpec(name="W", dtype=DType.F32, shape=(K, N), const=True),
        TensorSpec(name="b", dtype=DType.F32, shape=(N,), const=True),
    )
    output_specs = (TensorSpec(name="Y", dtype=DType.F32, shape=(M, N)),)

    def header(self) -> str:
        return (
            f"kernel dense[M={M}, K={K}, N={N}]"
            "(X: f32[M, K], W: const f32[K, N], b: const f32[N]) -> (Y: f32[M, N])"
        )

    def kernel(self, compute: str, layers: str = "") -> str:
        return f"{self.header()} {{ compute {{ {compute} }} {layers} }}"

    def canonical(self) -> str:
        return self.kernel("Y[i, j] = relu(sum[k: K](X[i, k] * W[k, j]) + b[j])")

    def inputs(self, seed: int, const_seed: int | None = None) -> dict[str, np.ndarray]:
        moving, fixed = np.random.default_rng(seed), np.random.default_rng(const_seed)
        return {
            s.name: (fixed if s.const else moving).standard_normal(s.shape).astype(np.float32)
            for s in self.input_specs
        }

    def truth(
        self, inputs: Mapping[str, np.ndarray], *, cache: bool = True
    ) -> dict[str, np.ndarray]:
        x, w, b = (inputs[name].astype(np.float64) for name in "XWb")
        return {"Y": np.maximum(x @ w + b, 0)}

    def twin(self, inputs: Mapping[str, np.ndarray]) -> None:
        return None

    def compare(
        self, outputs: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]
    ) -> Correctness:
        return compare(outputs, truth, "f32_reduction", Facts(accumulation=K))
