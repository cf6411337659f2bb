"""Lifted twins of the suite: verified, and right for constants that the lift has not seen."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from edgekernelbench.baselines.twins import initializers
from edgekernelbench.compilers.tvm.lift import lift
from edgekernelbench.evaluator.task import materials
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.verify import verify
from edgekernelbench.suite import Workload, load_suite

SUITE = load_suite().workloads

LIFTED = [
    "matmul_nt__01",
    "gemv_row_major__01",
    "conv2d_nhwc__01",
    "conv2d_transpose_nchw__01",
    "max_pool2d_nchw__02",
    "layer_norm_last__01",
    "softmax_last__02",
    "argmax_channel_nchw__01",
    "depth_to_space_nchw__01",
    "resize_bilinear_u8_hwc__01",
    "rope_half_split__01",
    "embedding_bag_sum__01",
    "gqa_decode_attention__01",
    "residual_add_rms_norm__01",
    "qdepthwise_bias_requant_s8_nhwc__01",
    "log_mel_filterbank__01",
    "heatmap_peak_nms__01",
    "ds_cnn_kws__01",
    "fc_autoencoder__01",
    "rel_shift__01",
]
REFUSED = {
    "qconv2d_s8s32_nhwc__01": "ConvInteger",
    "gemv_q4_0_block32__01": "not imported",
    "lstm_sequence__01": "LSTM",
    "rnnoise_network__01": "GRU",
}


def lifted(task: Workload) -> Program:
    described = materials(task)
    assert described.twin is not None
    result = lift(onnx.load_from_string(described.twin), described.ports, described.fixed)
    assert result.program is not None, result.reason
    return result.program


def arrays(task: Workload, program: Program, drawn: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs of the program: the task's, and the initializers of the twin of this draw."""
    model = task.twin(drawn)
    assert model is not None
    constants = initializers(model.SerializeToString())
    return {t.name: constants[t.name] if t.const else drawn[t.name] for t in program.inputs}


@pytest.mark.parametrize("name", [n for n in LIFTED if n in SUITE])
def test_lifted_twin_gives_the_truth(name: str) -> None:
    task = SUITE[name]
    program = lifted(task)
    assert not [d for d in verify(program) if d.severity == "error"]
    for seed in (11, 12):
        drawn = task.inputs(seed)
        out = interpret(program, arrays(task, program, drawn), "f64")
        dtypes = {t.name: t.dtype.numpy for t in program.outputs}
        stored = {key: value.astype(dtypes[key]) for key, value in out.items()}
        verdict = task.compare(stored, task.truth(drawn))
        assert verdict.passed, verdict


@pytest.mark.parametrize("name", [n for n in REFUSED if n in SUITE])
def test_what_the_importer_lacks_is_a_reason(name: str) -> None:
    task = SUITE[name]
    described = materials(task)
    assert described.twin is not None
    result = lift(onnx.load_from_string(described.twin), described.ports, described.fixed)
    assert result.program is None and REFUSED[name] in result.reason


def test_interface() -> None:
    task = SUITE["embedding_bag_sum__01"]
    program = lifted(task)
    assert [(t.name, t.const) for t in program.inputs] == [("idx", False), ("table", True)]
    assert [t.name for t in program.outputs] == [s.name for s in task.output_specs]


def test_only_fixed_initializers_are_baked_in() -> None:
    task = SUITE["gelu_erf__02"]
    described = materials(task)
    assert described.twin is not None and described.fixed
    model = onnx.load_from_string(described.twin)
    baked = lift(model, described.ports, described.fixed).program
    free = lift(model, described.ports, ()).program
    assert baked is not None and free is not None
    assert [t.name for t in baked.inputs] == ["x"]
    assert {t.name for t in free.inputs if t.const} == set(described.fixed)


def test_fixed_are_those_that_no_draw_changes() -> None:
    described = materials(SUITE["qdepthwise_bias_requant_s8_nhwc__01"])
    twins = [SUITE["qdepthwise_bias_requant_s8_nhwc__01"].twin for _ in range(2)]
    drawn = [SUITE["qdepthwise_bias_requant_s8_nhwc__01"].inputs(0, seed) for seed in (5, 6)]
    first, second = (
        initializers(twin(values).SerializeToString())  # type: ignore[union-attr]
        for twin, values in zip(twins, drawn, strict=True)
    )
    same = {name for name in first if np.array_equal(first[name], second[name])}
    assert set(described.fixed) <= same
    assert "const.7" not in described.fixed  # the weights, rearranged


def test_chains_are_fused_and_views_are_gone() -> None:
    gelu = lifted(SUITE["gelu_erf__02"])
    assert len(gelu.body) == 1
    norm = lifted(SUITE["layer_norm_last__01"])
    names = [stage.name for _, stage in core.stages(norm.body)]
    assert names[-1] == "y" and all(name.startswith("layer_norm.") for name in names[:-1])
