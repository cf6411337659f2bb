"""Decoder layers whose matrices hold 4 bits a weight."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from edgekernelbench.suite.draw import Draw, Generator, activations, near
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.attention.inputs import values
from edgekernelbench.suite.patterns.attention.rotary import rope_angle
from edgekernelbench.suite.patterns.llm_model.llama import decode_operators, llama_layer_decode
from edgekernelbench.suite.patterns.quantised.weight_only import q4_0_matmul, q4_0_nibbles
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.twin import Graph, Value


def block_scales(columns: str) -> Generator:
    """Scales that give a product with so many columns about the scale of its vector."""

    def generate(draw: Draw, spec: TensorSpec) -> np.ndarray:
        uniform_levels = 16 / math.sqrt(12)
        scale = 1 / (uniform_levels * math.sqrt(draw.size(columns)))
        return activations(scale, spread=0.5)(draw, spec)

    return generate


def q4_0_matrix(q: Array, d: Array) -> Array:
    return (d[:, :, None] * (q4_0_nibbles(q) - 8)).reshape(len(q), -1)


@pattern(
    "llama_layer_decode_q4_0",
    draw={
        "g1": near(1.0),
        "g2": near(1.0),
        **{name: block_scales("32*Cb") for name in ("dq", "dk", "dv", "dg", "du")},
        "do_": block_scales("32*Ab"),
        "dd": block_scales("32*Ib"),
        "kc": activations(1.0, spread=0.75),
        "vc": values,
    },
)
def llama_layer_decode_q4_0(
    x: Array, g1: Array, g2: Array, qq: Array, dq: Array, qk: Array, dk: Array, qv: Array,
    dv: Array, qo: Array, do_: Array, qg: Array, dg: Array, qu: Array, du: Array, qd: Array,
    dd: Array, cos: Array, sin: Array, kc: Array, vc: Array, D: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    packed = ((qq, dq), (qk, dk), (qv, dv), (qo, do_), (qg, dg), (qu, du), (qd, dd))
    Wq, Wk, Wv, Wo, Wg, Wu, Wd = (q4_0_matrix(q, d) for q, d in packed)
    Hq, Hkv = len(Wq) // D, len(Wk) // D
    return llama_layer_decode(x, g1, Wq, Wk, Wv, Wo, g2, Wg, Wu, Wd, cos, sin, kc, vc, Hq, Hkv, D)


llama_layer_decode_q4_0.inputs(rope_angle)


@llama_layer_decode_q4_0.twin
def _(
    g: Graph, x: Value, g1: Array, g2: Array, qq: Array, dq: Array, qk: Array, dk: Array,
    qv: Array, dv: Array, qo: Array, do_: Array, qg: Array, dg: Array, qu: Array, du: Array,
    qd: Array, dd: Array, cos: Value, sin: Value, kc: Value, vc: Value, D: int
) -> tuple[Value, Value, Value]:  # fmt: skip
    packed = ((qq, dq), (qk, dk), (qv, dv), (qo, do_), (qg, dg), (qu, du), (qd, dd))
    products = tuple(partial(q4_0_matmul, g, q, d) for q, d in packed)
    Hq, Hkv = len(qq) // D, len(qk) // D
    return decode_operators(g, x, (g1, g2), products, cos, sin, kc, vc, Hq, Hkv, D)
