"""The canonical programs of the 46 agent patterns against literal formulas, on small shapes."""

from __future__ import annotations

import re
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest

from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.diagnostics import render
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.suite import load_suite
from tests.suite.canonical_formulas import FORMULAS, Tensors

CANONICAL = files("edgekernelbench.suite") / "canonical"

# Small shapes: size overrides, more than one where borders or branches differ.
SHAPES: dict[str, tuple[str, ...]] = {
    "add": ("L=7",),
    "argmax_channel_nchw": ("C=5 HW=9", "C=1 HW=3"),
    "batch_matmul_nt": ("B=2 M=3 N=5 K=4",),
    "cholesky_batched": ("B=3 M=5", "B=1 M=1"),
    "conv1d_causal_dilated_ncw": ("N=2 C=3 L=11 K=4 R=3 dil=2", "N=1 C=2 L=5 K=3 R=2 dil=8"),
    "conv2d_nchw": (
        "N=2 C=3 H=7 W=8 K=4 R=3 S=3 stride=2 pad_h=1 pad_w=1",
        "N=1 C=2 H=9 W=9 K=3 R=6 S=6 stride=2 pad_h=2 pad_w=2",
        "N=1 C=2 H=5 W=6 K=3 R=3 S=1 stride=1 pad_h=1 pad_w=0",
    ),
    "conv2d_nhwc": (
        "N=1 C=1 H=13 W=6 K=4 R=10 S=4 stride=2 pt=4 pb=5 pl=1 pr=1",
        "N=2 C=3 H=6 W=7 K=4 R=3 S=3 stride=2 pt=0 pb=1 pl=0 pr=1",
    ),
    "conv2d_pointwise_nchw": ("N=2 C=3 H=4 W=5 K=6",),
    "conv2d_transpose_nchw": (
        "N=1 C=3 H=4 W=5 K=2 R=2 S=2 stride=2 pad=0 opad=0",
        "N=2 C=2 H=3 W=4 K=3 R=3 S=3 stride=2 pad=1 opad=1",
    ),
    "correlation_cost_volume": ("N=2 C=3 H=4 W=7 D=5",),
    "depth_to_space_nchw": ("N=2 C=2 H=3 W=4 r=3",),
    "depthwise_conv2d_nchw": (
        "N=2 C=3 H=6 W=7 R=5 S=5 stride=1 pad=2",
        "N=1 C=3 H=7 W=8 R=3 S=3 stride=2 pad=1",
    ),
    "embedding_bag_sum": ("B=4 NH=3 V=10 D=5",),
    "fir_q15": ("L=40 NT=8",),
    "gelu_erf": ("L=50",),
    "gemv_q4_0_block32": ("N=5 KB=3",),
    "gemv_row_major": ("N=6 K=9",),
    "layer_norm_last": ("M=4 C=9", "M=2 C=5 eps=1e-12"),
    "mamba_selective_scan": ("L=6 Di=5 Ns=3",),
    "matmul_nt": ("M=5 N=7 K=6",),
    "max_pool2d_nchw": (
        "N=2 C=2 H=6 W=7 R=5 S=5 stride=1 pad=2",
        "N=1 C=3 H=7 W=8 R=3 S=3 stride=2 pad=1",
        "N=1 C=2 H=7 W=7 R=3 S=3 stride=2 pad=0",
    ),
    "qconv2d_s8s32_nhwc": (
        "H=5 W=6 C=3 K=4",
        "H=13 W=6 C=1 K=3 R=10 S=4 stride=2 pt=4 pb=5 pl=1 pr=1",
    ),
    "reduce_max_axis0": ("L=6 C=5",),
    "resize_bilinear_u8_hwc": ("H=15 W=20 C=3 OH=7 OW=7", "H=4 W=5 C=2 OH=9 OW=7"),
    "rope_half_split": ("L=3 H=2 D=6", "L=1 H=3 D=2"),
    "softmax_last": ("M=4 C=9", "M=1 C=1"),
    "spmm_csr": ("L=6 E=17 V=5 D=4",),
    "admm_mpc_iteration": ("n=4 m=2 Nh=6", "n=3 m=1 Nh=2 rho=1.0 umin=-0.2 umax=0.4"),
    "depthwise_separable_nhwc": ("H=6 W=5 C=4 K=3", "H=6 W=8 C=3 K=4 stride=2 pt=0 pb=1 pl=0 pr=1"),
    "gqa_decode_attention": ("Hkv=2 G=3 TK=7 D=4",),
    "heatmap_peak_nms": ("C=3 H=6 W=7",),
    "image_normalize_to_nchw": ("H=5 W=6",),
    "inverted_residual_se_hswish_nchw": (
        "C=4 E=6 K=4 Q=3 R=5 H=5 W=6 stride=1 res=1",
        "C=3 E=6 K=5 Q=3 R=3 H=5 W=6 stride=2 res=0",
    ),
    "log_mel_filterbank": ("NFr=4 NK=9 NB=5",),
    "lstm_sequence": ("L=6 I=3 Hd=4", "L=1 I=1 Hd=2"),
    "qdepthwise_bias_requant_s8_nhwc": (
        "H=9 W=1 C=4",
        "H=6 W=7 C=3 R=3 S=3 stride=2 pt=0 pb=1 pl=0 pr=1",
    ),
    "relu_linear_attention": ("H=2 L=7 D=3",),
    "residual_add_rms_norm": ("M=3 C=8",),
    "sppf_nchw": ("C=5 Q=3 K=4 H=6 W=5",),
    "swiglu_mlp": ("M=3 C=5 I=7", "M=1 C=4 I=6"),
    "ds_cnn_kws": ("H=9 W=6 C=4 NBk=3 NC=5", "H=8 W=5 C=2 NBk=1"),
    "fc_autoencoder": ("M=3 D=10 Hd=6 Z=2",),
    "llama_layer_prefill": ("L=5 C=8 Hq=4 Hkv=2 D=6 I=7",),
    "mobilebert_layer": ("L=4 C=10 Cb=6 I=7 Hn=2",),
    "rnnoise_network": ("L=1 Hd=5", "L=4 Hd=6"),
    "yolov8_c2f": ("C=4 Q=3 K=5 Nl=2 H=5 W=6", "Nl=1 C=2 Q=1 K=2 H=3 W=4"),
}


def sizes_of(text: str) -> dict[str, int | float]:
    pairs = (item.split("=") for item in text.split())
    return {name: float(v) if "." in v or "e" in v else int(v) for name, v in pairs}


CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


def compiled(name: str, sizes: dict[str, int | float], half: bool = False) -> Program:
    text = (CANONICAL / f"{name}.ekir").read_text()
    if half:
        text = in_f16(name, text)
    found = check_text(text, sizes)
    assert found.program is not None, "\n".join(render(d, text) for d in found.diagnostics)
    return found.program


def in_f16(name: str, text: str) -> str:
    """The header with f16 for every tensor whose dtype the pattern leaves open."""
    definition = load_suite().definitions[name]
    for decl in (*definition.inputs, *definition.outputs):
        if decl.dtype is None:
            text = re.sub(rf"\b({decl.name}: (?:const )?)f32\[", r"\1f16[", text)
    return text


def drawn(name: str, program: Program, rng: np.random.Generator) -> Tensors:
    sizes = dict(program.sizes)
    return {t.name: draw(name, t, sizes, rng) for t in program.inputs}


def draw(
    name: str, tensor: Tensor, sizes: dict[str, int | float], rng: np.random.Generator
) -> np.ndarray:
    """Legal values of one input, rounded to its dtype."""
    shape, dtype = tensor.shape, tensor.dtype
    match name, tensor.name:
        case "cholesky_batched", _:
            g = rng.standard_normal(shape)
            value = g @ g.swapaxes(1, 2) / shape[-1] + np.eye(shape[-1])
        case ("embedding_bag_sum", "idx") | ("spmm_csr", "col"):
            value = rng.integers(0, sizes["V"], shape)
        case "spmm_csr", "ptr":
            inner = np.sort(rng.integers(0, sizes["E"] + 1, shape[0] - 2))
            value = np.concatenate([[0], inner, [sizes["E"]]])
        case "mamba_selective_scan", "dt":
            value = np.log1p(np.exp(rng.standard_normal(shape) - 1))
        case "mamba_selective_scan", "A":
            value = -np.broadcast_to(np.arange(1, shape[1] + 1), shape).astype(float)
        case "image_normalize_to_nchw", "std":
            value = rng.uniform(0.2, 0.3, shape)
        case "qdepthwise_bias_requant_s8_nhwc", "sc":
            value = rng.uniform(0.5, 2, shape) / 400
        case _, "zx" | "zy":
            value = rng.integers(-9, 10, shape)
        case _, "bias" if dtype.is_int:
            value = rng.integers(-2000, 2001, shape)
        case _ if dtype.is_int:
            low, high = dtype.int_range
            value = rng.integers(low, high, shape, endpoint=True)
        case _:
            value = rng.standard_normal(shape)
    return value.astype(dtype.numpy)


def reference(name: str, program: Program, inputs: Tensors) -> Tensors:
    wide = {k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in inputs.items()}
    return FORMULAS[name](SimpleNamespace(**dict(program.sizes)), wide)


def check(program: Program, got: Tensors, want: Tensors, rtol: float) -> None:
    """Integers exactly; floats to ``rtol``, with a tenth of it of the output's rms absolute."""
    assert set(got) == set(want)
    for tensor in program.outputs:
        have, expected = got[tensor.name], want[tensor.name]
        assert have.shape == expected.shape == tensor.shape
        if tensor.dtype.is_int:
            np.testing.assert_array_equal(have, expected)
            continue
        low = rtol if tensor.dtype.bits > 16 else max(rtol, 1e-3)
        scale = float(np.sqrt(np.mean(np.square(expected))))
        np.testing.assert_allclose(have, expected, low, low * scale / 10)


def test_every_program_has_a_formula_and_shapes() -> None:
    written = {p.name.removesuffix(".ekir") for p in CANONICAL.iterdir()}
    assert set(SHAPES) == set(FORMULAS)
    assert set(SHAPES) <= written


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_canonical_program_agrees_with_the_formula(name: str, shape: str) -> None:
    program = compiled(name, sizes_of(shape))
    for seed in (0, 1):
        inputs = drawn(name, program, np.random.default_rng(seed))
        want = reference(name, program, inputs)
        check(program, interpret(program, inputs, mode="f64"), want, 1e-9)
        check(program, interpret(program, inputs, mode="declared"), want, 1e-4)


HALF = [name for name in SHAPES if "f16" in load_suite().definitions[name].dtypes]


@pytest.mark.parametrize("name", HALF)
def test_f16_rounds_once_at_the_output(name: str) -> None:
    program = compiled(name, sizes_of(SHAPES[name][0]), half=True)
    inputs = drawn(name, program, np.random.default_rng(2))
    want = reference(name, program, inputs)
    got = interpret(program, inputs, mode="declared")
    check(program, got, want, 1e-3)


def test_every_workload_of_these_patterns_verifies() -> None:
    for workload in load_suite().workloads.values():
        if workload.pattern in SHAPES:
            text = workload.canonical()
            found = check_text(text)
            assert not found.diagnostics, "\n".join(render(d, text) for d in found.diagnostics)
