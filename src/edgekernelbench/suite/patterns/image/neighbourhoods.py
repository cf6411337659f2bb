"""Filters and codes that order or compare the pixels of a neighbourhood."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.model import TensorSpec
from edgekernelbench.suite.patterns.image.stencils import sobel, sobel_planes, unfold
from edgekernelbench.suite.patterns.image.textures import grey_levels, sparse_levels
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value


def mostly_dark(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """u8 levels of which few are high, so that maxima over windows differ."""
    return np.floor(256 * draw.rng(spec.name).random(spec.shape) ** 8).astype(int)


@pattern("morph_dilate_u8", draw={"x": mostly_dark})
def morph_dilate_u8(x: Array, Rr: int) -> Array:
    half = Rr // 2
    padded = pad_hw(x, half, half, half, half)  # 0 is below every pixel
    return np.max([xrs for _, _, xrs in taps(padded, Rr, Rr)], axis=0)


@morph_dilate_u8.twin
def _(g: Graph, x: Value, Rr: int) -> Value:
    pool = g.MaxPool(g.Unsqueeze(x, [0, 1]), kernel_shape=[Rr, Rr], pads=[Rr // 2] * 4)
    return g.Squeeze(pool, [0, 1])


@pattern("median_3x3_u8")
def median_3x3_u8(x: Array) -> Array:
    neighbours = [xrs for _, _, xrs in taps(np.pad(x, 1, mode="edge"), 3, 3)]
    return np.sort(neighbours, axis=0)[4]


@median_3x3_u8.twin
def _(g: Graph, x: Value) -> Value:
    around = unfold(g, g.Cast(x, to=1), 1)
    largest, _ = g.op("TopK", around, np.array([5]), outputs=2, axis=1)
    return g.Squeeze(g.cast(g.Slice(largest, [4], [5], [1]), DType.U8), [0, 1])


@pattern("census_transform", draw={"x": grey_levels(120, 30, radius=1)})
def census_transform(x: Array) -> Array:
    code = np.zeros(x.shape, np.int64)
    for r, s, neighbour in taps(np.pad(x, 2, mode="edge"), 5, 5):
        if (r, s) != (2, 2):
            code = code * 2 + (neighbour < x)
    return code


@census_transform.twin
def _(g: Graph, x: Value) -> Value:
    level = g.Cast(x, to=1)
    below = g.Cast(g.Less(unfold(g, level, 2), level), to=1)
    bits = 2.0 ** np.arange(23, -1, -1)
    bits = np.concatenate([bits[:12], [0], bits[12:]]).reshape(1, 25, 1, 1)  # the centre has none
    code = g.Conv(below, bits.astype(np.float32))  # below 2**24, so exact
    return g.Squeeze(g.cast(code, DType.U32), [0, 1])


def edges(draw: Draw, spec: TensorSpec) -> np.ndarray:
    """Levels 0..255 of a softened pattern: gradients on both sides of the thresholds."""
    return np.clip(grey_levels(128, 38, radius=1)(draw, spec), 0, 255)


@pattern("canny_nms", draw={"x": edges})
def canny_nms(x: Array, th_lo: int, th_hi: int) -> Array:
    gx, gy = sobel(x)
    m = np.abs(gx) + np.abs(gy)
    around = {(r - 1, s - 1): mrs for r, s, mrs in taps(np.pad(m, 1), 3, 3)}
    flat = np.abs(gy) * 32768 <= 13573 * np.abs(gx)
    steep = np.abs(gy) * 32768 >= 79109 * np.abs(gx)
    direction = [flat, steep, gx * gy > 0]  # the first that holds, else the falling diagonal
    before = np.select(direction, [around[0, -1], around[-1, 0], around[-1, -1]], around[-1, 1])
    after = np.select(direction, [around[0, 1], around[1, 0], around[1, 1]], around[1, -1])
    kept = np.where((m > before) & (m >= after), m, 0)
    return np.where(kept > th_hi, 255, np.where(kept > th_lo, 128, 0))


@canny_nms.twin
def _(g: Graph, x: Value, th_lo: int, th_hi: int) -> Value:
    gradients = sobel_planes(g, g.Cast(x, to=1))
    size = g.Abs(gradients)
    m = g.ReduceSum(size, [1], keepdims=1)

    ax, ay = g.op("Split", g.cast(size, DType.S32), outputs=2, axis=1, num_outputs=2)
    ay = g.Mul(ay, np.int32(32768))
    flat = g.LessOrEqual(ay, g.Mul(ax, np.int32(13573)))
    steep = g.GreaterOrEqual(ay, g.Mul(ax, np.int32(79109)))
    rising = g.Greater(g.ReduceProd(gradients, [1], keepdims=1), np.float32(0))
    # Places of the neighbour before among the nine; the one after lies opposite.
    place = g.Where(rising, np.int64(0), np.int64(2))
    place = g.Where(flat, np.int64(3), g.Where(steep, np.int64(1), place))
    around = unfold(g, g.Squeeze(m, [0, 1]), 1, mode="constant")
    before = g.GatherElements(around, place, axis=1)
    after = g.GatherElements(around, g.Sub(np.int64(8), place), axis=1)

    peak = g.And(g.Greater(m, before), g.GreaterOrEqual(m, after))
    kept = g.Where(peak, m, np.float32(0))
    weak = g.Where(g.Greater(kept, np.float32(th_lo)), np.uint8(128), np.uint8(0))
    y = g.Where(g.Greater(kept, np.float32(th_hi)), np.uint8(255), weak)
    return g.Squeeze(y, [0, 1])


@pattern(
    "chamfer_distance_transform",
    draw={"x": sparse_levels(0.01)},
    no_twin="each pixel needs the one before it: ONNX would loop over pixels",
)
def chamfer_distance_transform(x: Array) -> Array:
    d = np.where(x != 0, 0, 1_000_000)
    for _ in range(2):  # the second pass is the first one from the opposite corner
        d = raster_pass(d)[::-1, ::-1]
    return d


def raster_pass(d: Array) -> Array:
    """d = min(d, d[N]+3, d[W]+3, d[NW]+4, d[NE]+4), row by row from the left to the right."""
    H, W = d.shape
    across = 3 * np.arange(W)
    above = np.full(W + 2, np.iinfo(np.int64).max // 2)  # the row above, with a border
    rows = []
    for i in range(H):
        row = np.minimum.reduce([d[i], above[1:-1] + 3, above[:-2] + 4, above[2:] + 4])
        row = np.minimum.accumulate(row - across) + across  # + 3 for each step to the right
        above[1:-1] = row
        rows.append(row)
    return np.array(rows)
