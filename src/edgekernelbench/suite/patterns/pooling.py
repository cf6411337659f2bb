"""Pooling."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw, activations, on_grid
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.sampling import bilinear
from edgekernelbench.suite.patterns.windows import max_pool, pad_hw, taps
from edgekernelbench.suite.twin import Graph, Value


@pattern("max_pool2d_nchw")
def max_pool2d_nchw(x: Array, R: int, S: int, stride: int, pad: int) -> Array:
    return max_pool(pad_hw(x, pad, pad, pad, pad, -np.inf), R, S, stride)


@max_pool2d_nchw.twin
def _(g: Graph, x: Value, R: int, S: int, stride: int, pad: int) -> Value:
    return g.MaxPool(x, kernel_shape=[R, S], strides=[stride, stride], pads=[pad, pad, pad, pad])


@pattern("max_pool2d_nhwc")
def max_pool2d_nhwc(x: Array, R: int, S: int, stride: int) -> Array:
    return max_pool(x.transpose(0, 3, 1, 2), R, S, stride).transpose(0, 2, 3, 1)


@max_pool2d_nhwc.twin
def _(g: Graph, x: Value, R: int, S: int, stride: int) -> Value:
    planes = g.Transpose(x, perm=[0, 3, 1, 2])
    y = g.MaxPool(planes, kernel_shape=[R, S], strides=[stride, stride])
    return g.Transpose(y, perm=[0, 2, 3, 1])


@pattern("avg_pool2d_nchw")
def avg_pool2d_nchw(x: Array, R: int, S: int, stride: int, pad: int) -> Array:
    border = (pad, pad, pad, pad)
    padded, inside = pad_hw(x, *border), pad_hw(np.ones(x.shape), *border)
    total = np.sum([xrs for _, _, xrs in taps(padded, R, S, stride)], axis=0)
    return total / np.sum([one for _, _, one in taps(inside, R, S, stride)], axis=0)


@avg_pool2d_nchw.twin
def _(g: Graph, x: Value, R: int, S: int, stride: int, pad: int) -> Value:
    return g.AveragePool(
        x,
        kernel_shape=[R, S],
        strides=[stride, stride],
        pads=[pad, pad, pad, pad],
        count_include_pad=0,
    )


@pattern("global_avg_pool_nchw")
def global_avg_pool_nchw(x: Array) -> Array:
    return x.mean(axis=(2, 3))


@global_avg_pool_nchw.twin
def _(g: Graph, x: Value) -> Value:
    return g.Flatten(g.GlobalAveragePool(x), axis=1)


@pattern("global_avg_pool_nhwc")
def global_avg_pool_nhwc(x: Array) -> Array:
    return x.mean(axis=(1, 2))


@global_avg_pool_nhwc.twin
def _(g: Graph, x: Value) -> Value:
    return g.ReduceMean(x, [1, 2], keepdims=0)


def _bin_shares(extent: int, bins: int) -> Array:
    """[bins, extent]: what each element counts in the mean of each bin; bins may overlap."""
    shares = np.zeros((bins, extent))
    for i in range(bins):
        start, stop = i * extent // bins, ((i + 1) * extent + bins - 1) // bins
        shares[i, start:stop] = 1 / (stop - start)
    return shares


@pattern("adaptive_avg_pool2d_nchw")
def adaptive_avg_pool2d_nchw(x: Array, H: int, W: int, OH: int, OW: int) -> Array:
    return _bin_shares(H, OH) @ x @ _bin_shares(W, OW).T


@adaptive_avg_pool2d_nchw.twin
def _(g: Graph, x: Value, H: int, W: int, OH: int, OW: int) -> Value:
    return g.MatMul(g.MatMul(_bin_shares(H, OH), x), _bin_shares(W, OW).T)


@pattern("max_pool1d_ncw")
def max_pool1d_ncw(x: Array, R: int, stride: int) -> Array:
    return max_pool(x[:, :, None], 1, R, stride)[:, :, 0]


@max_pool1d_ncw.twin
def _(g: Graph, x: Value, R: int, stride: int) -> Value:
    return g.MaxPool(x, kernel_shape=[R], strides=[stride])


# On the grid, so that windows have more than one maximum.
@pattern("max_pool2d_with_indices", draw={"x": on_grid(activations(), 0.25)})
def max_pool2d_with_indices(x: Array, N: int, C: int, H: int, W: int) -> tuple[Array, Array]:
    OH, OW = H // 2, W // 2
    corners = np.stack([xrs for _, _, xrs in taps(x, 2, 2, stride=2)])  # [4, N, C, OH, OW]
    first = corners.argmax(axis=0)
    rows = 2 * np.arange(OH)[:, None] + first // 2
    columns = 2 * np.arange(OW) + first % 2
    return corners.max(axis=0), rows * W + columns


@max_pool2d_with_indices.twin
def _(g: Graph, x: Value, H: int, W: int) -> tuple[Value, Value]:
    y, index = g.op("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    # ONNX counts from the start of the tensor, not of the plane.
    return y, g.cast(g.Mod(index, np.int64(H * W)), DType.S32)


@pattern("roi_align_nchw")
def roi_align_nchw(x: Array, rois: Array, OH: int, OW: int, SR: int) -> Array:
    _, H, W = x.shape
    y0, x0, y1, x1 = (corner[:, None] for corner in rois.T)
    # Sample a of bin i stands at (i + (a + 0.5) / SR) bins from the corner.
    v = y0 + (np.arange(OH * SR) + 0.5) / SR * (y1 - y0) / OH - 0.5
    u = x0 + (np.arange(OW * SR) + 0.5) / SR * (x1 - x0) / OW - 0.5
    v, u = np.clip(v, 0, H - 1), np.clip(u, 0, W - 1)
    samples = bilinear(x, v[:, :, None], u[:, None, :])  # [C, NR, OH*SR, OW*SR]
    bins = samples.reshape(*samples.shape[:2], OH, SR, OW, SR)
    return bins.mean(axis=(3, 5)).transpose(1, 0, 2, 3)


@roi_align_nchw.twin
def _(g: Graph, x: Value, rois: Value, NR: int, OH: int, OW: int, SR: int) -> Value:
    corners = g.Gather(rois, [1, 0, 3, 2], axis=1)  # x before y
    return g.RoiAlign(
        g.Unsqueeze(x, [0]),
        corners,
        np.zeros(NR, np.int64),
        coordinate_transformation_mode="half_pixel",
        mode="avg",
        output_height=OH,
        output_width=OW,
        sampling_ratio=SR,
        spatial_scale=1.0,
    )


@roi_align_nchw.inputs
def _(draw: Draw) -> dict[str, np.ndarray]:
    """Corners and bins in 64ths of a pixel, so that samples stand at exact float32 numbers."""
    rng = draw.rng("rois")
    first, last = [], []
    for extent, bins in (("64*H", "OH"), ("64*W", "OW")):
        pixels, count = draw.size(extent), draw.size(bins)
        length = count * rng.integers(1, pixels // count + 1, draw.size("NR"))
        first.append(rng.integers(0, pixels - length + 1))
        last.append(first[-1] + length)
    return {"rois": np.stack(first + last, axis=1) / 64}
