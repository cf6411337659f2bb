"""The complete example kernels, on shapes whose tiles divide and on shapes whose tiles do not."""

from __future__ import annotations

import pytest

from .support import DATA, check, load_text

SHAPES = {
    "attention_head": [{"L": 16, "D": 64}, {"L": 43, "D": 64}],
    "conv2d_3x3_relu": [{"C": 2, "H": 4, "Wd": 8, "F": 32}, {"C": 2, "H": 5, "Wd": 11, "F": 40}],
    "depthwise_3x3": [{"C": 2, "H": 8, "Wd": 16}, {"C": 3, "H": 9, "Wd": 13}],
    "layer_norm": [{"R": 4, "C": 64}, {"R": 3, "C": 77}],
    "linear_nt": [{"M": 16, "K": 7, "N": 64}, {"M": 13, "K": 5, "N": 49}],
    "matmul_bias_relu": [{"M": 16, "K": 8, "N": 64}, {"M": 11, "K": 7, "N": 75}],
    "s8_gemm": [{"M": 16, "K": 8, "N": 64}, {"M": 11, "K": 7, "N": 75}],
    "softmax_last": [{"R": 4, "C": 128}, {"R": 3, "C": 101}],
}


@pytest.mark.parametrize(
    ("name", "sizes"), [(name, sizes) for name, all_sizes in SHAPES.items() for sizes in all_sizes]
)
def test_layered_example(name, sizes):
    text = (DATA / "examples-layered" / f"{name}.ekir").read_text()
    kernel, program = load_text(text, sizes)
    result = check(kernel, program)
    assert result.diagnostics == ()
