"""Every reference against an executor that knows nothing of it.

The ONNX twin in ONNX Runtime where there is one; the canonical program in the kernel IR's
interpreter, for every pattern that has no twin and for all that are cheap enough.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.suite.twin import OPSET, SESSION_CONFIG

WORKLOADS = list(load_suite().workloads.values())
each_workload = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.id)

INTERPRETED_BELOW = 20_000_000
"""Operations up to which a workload that has a twin is interpreted at full size too."""


def canonical_file(workload: Workload):
    return resources.files("edgekernelbench.suite") / "canonical" / f"{workload.pattern}.ekir"


def run_twin(model, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for key, value in SESSION_CONFIG.items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    feeds = {given.name: inputs[given.name] for given in session.get_inputs()}
    return dict(zip(names, session.run(None, feeds), strict=True))


def assert_right(workload: Workload, outputs, inputs):
    for spec in workload.output_specs:
        assert outputs[spec.name].shape == spec.shape
    verdict = workload.compare(outputs, workload.truth(inputs, cache=False))
    assert verdict.passed, [detail.reason for detail in verdict.outputs]
    return verdict


@each_workload
def test_every_pattern_has_an_independent_executor(workload: Workload):
    has_twin = workload.definition.pattern.build_twin is not None
    assert has_twin == (workload.no_twin_reason is None)
    assert has_twin or canonical_file(workload).is_file(), "neither a twin nor a canonical program"


@pytest.mark.parametrize(
    "workload", [w for w in WORKLOADS if w.no_twin_reason is None], ids=lambda w: w.id
)
def test_twin_agrees(workload: Workload):
    for seed in (1, 2):
        inputs = workload.inputs(seed)
        model = workload.twin(inputs)
        assert model is not None
        outputs = run_twin(model, inputs)
        for spec in workload.output_specs:
            assert outputs[spec.name].dtype == spec.dtype.numpy
        verdict = assert_right(workload, outputs, inputs)
        if not workload.tolerance.startswith("int"):
            assert verdict.worst_error < 0.5, "a tolerance this tight rejects honest kernels"


OTHER_SIZES = {
    "matmul_nt__01": {"M": 3, "N": 5, "K": 7},
    "conv2d_nchw__01": {"N": 2, "H": 11, "W": 9, "R": 5, "S": 3, "stride": 3, "pad_h": 2},
    "conv2d_nhwc__01": {"N": 2, "C": 3, "stride": 1, "pt": 0, "pb": 3, "pl": 2, "pr": 0},
    "conv2d_pointwise_nchw__02": {"N": 2, "H": 3, "W": 5},
    "conv2d_transpose_nchw__01": {
        "N": 2, "C": 3, "H": 5, "W": 7, "K": 4, "R": 3, "S": 4, "stride": 2, "pad": 1, "opad": 1,
    },
    "correlation_cost_volume__01": {"N": 2, "H": 5, "W": 30},
    "depthwise_conv2d_nchw__02": {"N": 2, "C": 6, "R": 3, "S": 2, "stride": 2, "pad": 1},
    "conv1d_causal_dilated_ncw__01": {"N": 2, "K": 5, "L": 40, "R": 3, "dil": 4},
    "max_pool2d_nchw__02": {"N": 2, "C": 3, "R": 3, "S": 2, "stride": 2, "pad": 1},
    "qconv2d_s8s32_nhwc__01": {"H": 9, "W": 7, "K": 5, "stride": 2, "pt": 0, "pb": 2, "pl": 1},
    "qdepthwise_bias_requant_s8_nhwc__01": {
        "H": 20, "W": 9, "R": 3, "S": 4, "stride": 2, "pt": 1, "pb": 0, "pl": 1, "pr": 2,
    },
    "resize_bilinear_u8_hwc__01": {"H": 15, "W": 12, "OH": 30, "OW": 24},
    "depth_to_space_nchw__01": {"N": 2, "C": 3, "H": 4, "W": 5, "r": 2},
    "rope_half_split__01": {"L": 3, "H": 2, "D": 6},
    "depthwise_separable_nhwc__01": {"K": 5, "stride": 2, "pt": 0, "pb": 2, "pl": 1, "pr": 0},
    "inverted_residual_se_hswish_nchw__01": {"K": 24, "R": 3, "stride": 2, "res": 0},
    "gqa_decode_attention__01": {"Hkv": 4, "G": 2, "TK": 9, "D": 8},
    "relu_linear_attention__01": {"H": 2, "L": 5, "D": 4},
    "lstm_sequence__01": {"L": 5, "I": 3, "Hd": 4},
    "admm_mpc_iteration__01": {"n": 5, "m": 2, "Nh": 4, "rho": 1.5, "umin": -0.2},
    "ds_cnn_kws__01": {"H": 13, "W": 7, "C": 6, "NBk": 2, "NC": 5},
    "yolov8_c2f__01": {"C": 6, "Q": 4, "K": 5, "Nl": 3, "H": 5, "W": 7},
    "mobilebert_layer__02": {"L": 5, "C": 12, "Cb": 8, "I": 10, "Hn": 2},
    "llama_layer_prefill__01": {"L": 6, "C": 12, "Hq": 4, "Hkv": 2, "D": 6, "I": 10},
    "rnnoise_network__01": {"L": 3, "Hd": 8},
}  # fmt: skip
"""Sizes at which a swapped axis, stride or border shows."""


@pytest.mark.parametrize("id", OTHER_SIZES)
def test_twin_agrees_at_other_sizes(id):
    workload = load_suite().workloads[id].resized(**OTHER_SIZES[id])
    inputs = workload.inputs(3)
    outputs = run_twin(workload.twin(inputs), inputs)
    assert_right(workload, outputs, inputs)


@pytest.mark.parametrize("id", OTHER_SIZES)
def test_canonical_program_agrees_at_other_sizes(id):
    workload = load_suite().workloads[id].resized(**OTHER_SIZES[id])
    outputs, inputs = interpret_canonical(workload)
    assert_right(workload, outputs, inputs)


@pytest.mark.parametrize(
    "workload", [w for w in WORKLOADS if w.no_twin_reason is None], ids=lambda w: w.id
)
def test_twin_has_the_workloads_interface(workload: Workload):
    model = workload.twin(workload.inputs(1))
    assert model is not None
    assert [entry.version for entry in model.opset_import] == [OPSET]
    graph = model.graph
    given = [s for s in workload.input_specs if not s.const]
    assert [value.name for value in graph.input] == [s.name for s in given]
    assert [value.name for value in graph.output] == [s.name for s in workload.output_specs]
    for value, spec in zip(graph.input, given, strict=True):
        assert tuple(d.dim_value for d in value.type.tensor_type.shape.dim) == spec.shape
    read = {name for node in graph.node for name in node.input}
    assert {s.name for s in given} <= read, "an input that the twin does not use"
    made = [name for node in graph.node for name in node.output]
    assert len(made) == len(set(made))


@pytest.mark.parametrize(
    "workload",
    [w for w in WORKLOADS if w.no_twin_reason is not None or w.flops < INTERPRETED_BELOW],
    ids=lambda w: w.id,
)
def test_canonical_program_agrees(workload: Workload):
    if not canonical_file(workload).is_file():
        assert workload.no_twin_reason is None, "neither a twin nor a canonical program"
        pytest.skip("no canonical program; the twin is checked instead")
    outputs, inputs = interpret_canonical(workload)
    assert_right(workload, outputs, inputs)


def interpret_canonical(workload: Workload):
    pytest.importorskip("edgekernelbench.ir.interpret.run")
    from edgekernelbench.ir.elaborate import elaborate
    from edgekernelbench.ir.interpret import interpret
    from edgekernelbench.ir.parse import parse

    parsed = parse(workload.canonical())
    assert parsed.kernel is not None and not parsed.diagnostics
    elaborated = elaborate(parsed.kernel)
    assert elaborated.program is not None, elaborated.diagnostics
    inputs = workload.inputs(1)
    results = interpret(elaborated.program, inputs)
    return {
        spec.name: np.asarray(results[spec.name], spec.dtype.numpy)
        for spec in workload.output_specs
    }, inputs
