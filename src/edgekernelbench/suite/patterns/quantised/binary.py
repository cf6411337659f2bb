"""Products of +1 and -1, 32 to a word."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import integers
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps

WORDS = integers("0", "2**32")


@pattern(
    "xnor_popcount_matmul",
    draw={"A": WORDS, "B": WORDS},
    no_twin="ONNX does not count bits",
)
def xnor_popcount_matmul(A: Array, B: Array, KW: int) -> Array:
    differing = np.bitwise_count(A[:, None] ^ B).sum(axis=2, dtype=np.int64)
    return 32 * KW - 2 * differing


@pattern(
    "xnor_popcount_conv2d_nhwc",
    draw={"x": WORDS, "f": WORDS},
    no_twin="ONNX does not count bits",
)
def xnor_popcount_conv2d_nhwc(x: Array, f: Array, H: int, W: int, CW: int, K: int) -> Array:
    # A border word of zeros stands for 32 activations of -1.
    planes = pad_hw(x.transpose(2, 0, 1), 1, 1, 1, 1)
    y = np.zeros((H, W, K), np.int64)
    for r, s, xrs in taps(planes, 3, 3):
        for w in range(CW):
            differing = np.bitwise_count(xrs[w][:, :, None] ^ f[:, r, s, w])
            y += 32 - 2 * differing.astype(np.int64)
    return y
