"""Blocks in which branches or maps of differing sizes meet."""

from __future__ import annotations

import numpy as np

from edgekernelbench.suite.draw import weights
from edgekernelbench.suite.patterns import blocks
from edgekernelbench.suite.patterns.functions import relu
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import conv3x3, pointwise
from edgekernelbench.suite.twin import Graph, Value


@pattern("fire_module_nchw")
def fire_module_nchw(
    x: Array, ws: Array, bs: Array, w1: Array, b1: Array, w3: Array, b3: Array
) -> Array:
    s = relu(pointwise(x, ws, bs))
    return relu(np.concatenate([pointwise(s, w1, b1), conv3x3(s, w3, b3)], axis=1))


@fire_module_nchw.twin
def _(
    g: Graph, x: Value, ws: Array, bs: Array, w1: Array, b1: Array, w3: Array, b3: Array
) -> Value:
    s = g.Relu(blocks.conv1x1(g, x, ws, bs))
    narrow, wide = blocks.conv1x1(g, s, w1, b1), blocks.conv3x3(g, s, w3, b3)
    return g.Concat(g.Relu(narrow), g.Relu(wide), axis=1)


@pattern("fpn_lateral_upsample_add_nchw")
def fpn_lateral_upsample_add_nchw(x: Array, w: Array, b: Array, z: Array) -> Array:
    return pointwise(x, w, b) + z.repeat(2, axis=2).repeat(2, axis=3)


@fpn_lateral_upsample_add_nchw.twin
def _(g: Graph, x: Value, w: Array, b: Array, z: Value) -> Value:
    return g.Add(blocks.conv1x1(g, x, w, b), blocks.nearest(g, z, 2))


def conv_transpose2x2(x: Array, w: Array, b: Array) -> Array:
    """x[1,C,H,W] by w[C,K,2,2] at stride 2: each pixel becomes a 2x2 tile."""
    _, _, H, W = x.shape
    tiles = np.einsum("ncij,ckrs->nkirjs", x, w, optimize=True)
    return tiles.reshape(1, -1, 2 * H, 2 * W) + b[:, None, None]


@pattern("unet_up_concat_conv_nchw", draw={"wt": weights("Cz")})
def unet_up_concat_conv_nchw(
    z: Array, wt: Array, bt: Array, skip: Array, w: Array, b: Array
) -> Array:
    u = conv_transpose2x2(z, wt, bt)
    return relu(conv3x3(np.concatenate([skip, u], axis=1), w, b))


@unet_up_concat_conv_nchw.twin
def _(g: Graph, z: Value, wt: Array, bt: Array, skip: Value, w: Array, b: Array) -> Value:
    u = g.ConvTranspose(z, wt, bt, strides=[2, 2])
    return g.Relu(blocks.conv3x3(g, g.Concat(skip, u, axis=1), w, b))
