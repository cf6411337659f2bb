"""Tunes a small matrix product into a pack, in a process that may be killed: PACK TRIALS BATCH."""

from __future__ import annotations

import sys
from pathlib import Path

from edgekernelbench.baselines.base import Materials, Port, Unavailable
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.placement import host_cores, slots


def matmul(rows: int = 32, sums: int = 48, columns: int = 64) -> Materials:
    """``y = relu(x @ w)`` with a constant ``w``."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(sums, columns)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "matmul",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, sums))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    ports = (
        Port(name="x", dtype=DType.F32, shape=(rows, sums), role="input"),
        Port(name="w", dtype=DType.F32, shape=(sums, columns), role="const"),
        Port(name="y", dtype=DType.F32, shape=(rows, columns), role="output"),
    )
    return Materials(workload="small", header="", ports=ports, twin=model.SerializeToString())


def main(pack: str, trials: int, batch: int) -> None:
    sys.modules["torch"] = None  # type: ignore[assignment]
    from edgekernelbench.baselines.tuning import Means, Progress, errands, open_pack, search
    from edgekernelbench.compilers.tvm.tuning import search as tuning

    tuning.BATCH = batch
    target = host_target()
    (slot,) = slots(host_cores(), target.threads, 1)

    def heard(told: Progress) -> None:
        print(told.state, told.trials, told.best_us, flush=True)

    with open_pack(Path(pack), target) as writer:
        wanted = errands(matmul(), target, trials)
        if isinstance(wanted, Unavailable):
            sys.exit(wanted.reason)
        for errand in wanted:
            means = Means(target, slot, writer.parts, Path(pack))
            found = search(matmul(), errand, writer.known(errand.function), means, heard)
            assert found is not None
            writer.add(found)
            writer.finished(errand.function)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
