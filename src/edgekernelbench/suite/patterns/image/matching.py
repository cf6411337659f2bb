"""Finding the same point in two images."""

from __future__ import annotations

import numpy as np

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.draw import Draw
from edgekernelbench.suite.patterns.image.textures import smooth
from edgekernelbench.suite.patterns.registry import Array, pattern
from edgekernelbench.suite.patterns.windows import taps
from edgekernelbench.suite.twin import Graph, Value


def descriptors(draw: Draw) -> dict[str, np.ndarray]:
    """Random bits; most of a are rows of b with bits flipped, and some rows of b occur twice."""
    M, N = draw.size("M"), draw.size("N")
    rng = draw.rng("b")
    b = rng.integers(0, 2**32, (N, 8))
    repeated = max(1, N // 8)
    b[-repeated:] = b[:repeated]
    rng = draw.rng("a")
    flips = np.bitwise_and.reduce(rng.integers(0, 2**32, (3, M, 8)))  # an eighth of the bits
    a = b[rng.integers(0, N, M)] ^ flips
    strangers = rng.random(M) < 0.2
    a[strangers] = rng.integers(0, 2**32, (int(strangers.sum()), 8))
    return {"a": a, "b": b}


@pattern("hamming_match_argmin")
def hamming_match_argmin(a: Array, b: Array) -> tuple[Array, Array]:
    dist = np.bitwise_count(a[:, None] ^ b).sum(axis=2)
    return dist.argmin(axis=1), dist.min(axis=1)


hamming_match_argmin.inputs(descriptors)


@hamming_match_argmin.twin
def _(g: Graph, a: Value, b: Value) -> tuple[Value, Value]:
    def signs(words: Value) -> Value:
        """[n,8] of u32 to [n,256]: 1 for a set bit, -1 for another."""
        shifted = g.BitShift(
            g.Unsqueeze(words, [2]), np.arange(32, dtype=np.uint32), direction="RIGHT"
        )
        bits = g.Cast(g.BitwiseAnd(shifted, np.uint32(1)), to=1)
        spread = g.Sub(g.Mul(bits, np.float32(2)), np.float32(1))
        return g.Reshape(spread, [0, 256])

    likeness = g.MatMul(signs(a), g.Transpose(signs(b), perm=[1, 0]))
    dist = g.Mul(g.Sub(np.float32(256), likeness), np.float32(0.5))
    best = g.cast(g.ArgMin(dist, axis=1, keepdims=0), DType.S32)
    return best, g.cast(g.ReduceMin(dist, [1], keepdims=0), DType.S32)


def stereo_pair(draw: Draw) -> dict[str, np.ndarray]:
    """A texture seen twice: upright stripes of it moved by as many disparities, and noise."""
    H, W = draw.shape("Li")
    Dm = draw.size("Dm")
    rng = draw.rng("Ri")
    right = 128 + 50 * smooth(rng, H, W, 1)
    rng = draw.rng("Li")
    stripe = max(4, W // 8)
    disparity = rng.integers(0, Dm, -(-W // stripe)).repeat(stripe)[:W]
    left = right[:, np.clip(np.arange(W) - disparity, 0, W - 1)]
    left = left + 4 * rng.standard_normal((H, W))
    return {
        name: np.clip(np.rint(image), 0, 255).astype(int)
        for name, image in (("Li", left), ("Ri", right))
    }


@pattern("stereo_sad_block_matching")
def stereo_sad_block_matching(Li: Array, Ri: Array, H: int, W: int, Dm: int, Hw: int) -> Array:
    side = 2 * Hw + 1
    left = np.pad(Li, Hw, mode="edge")
    right = np.pad(Ri, [(Hw, Hw), (Hw + Dm, Hw)], mode="edge")
    cost = np.zeros((Dm, H, W), np.int64)
    for d in range(Dm):
        moved = right[:, Dm - d : Dm - d + W + 2 * Hw]
        difference = np.abs(left - moved)
        rows = np.sum([xrs for _, _, xrs in taps(difference, side, 1)], axis=0)
        cost[d] = np.sum([xrs for _, _, xrs in taps(rows, 1, side)], axis=0)
    return cost.argmin(axis=0)


stereo_sad_block_matching.inputs(stereo_pair)


@stereo_sad_block_matching.twin
def _(g: Graph, Li: Value, Ri: Value, Dm: int, Hw: int) -> Value:
    def bordered(image: Value, left: int) -> Value:
        border = [0, 0, Hw, left, 0, 0, Hw, Hw]
        return g.Pad(g.Unsqueeze(g.Cast(image, to=1), [0, 1]), border, mode="edge")

    side = 2 * Hw + 1
    moves = np.eye(Dm, dtype=np.float32)[::-1].reshape(Dm, 1, 1, Dm)
    moved = g.Conv(bordered(Ri, Hw + Dm - 1), moves)
    difference = g.Abs(g.Sub(bordered(Li, Hw), moved))
    cost = g.Conv(difference, np.ones((Dm, 1, side, side), np.float32), group=Dm)
    return g.Squeeze(g.cast(g.ArgMin(cost, axis=1, keepdims=0), DType.U8), [0])


def tracked_frames(draw: Draw) -> dict[str, np.ndarray]:
    """Two frames a little apart with a flat square in both, and features, some of them on it.

    Positions and motions are multiples of 1/64, so that sums of them are exact in float32.
    """
    H, W = draw.shape("I")
    NP, Wn = draw.size("NP"), draw.size("Wn")
    first = smooth(draw.rng("I"), H, W)
    rng = draw.rng("J")
    across, down = rng.uniform(-0.8, 0.8, 2)
    second = first + across * np.gradient(first, axis=1) + down * np.gradient(first, axis=0)
    second += 0.1 * smooth(rng, H, W)
    centre = 3 * Wn // 2 + 1
    flat = slice(centre - Wn, centre + Wn)
    first[flat, flat] = 0

    rng = draw.rng("p")
    p = rng.uniform(Wn, np.array([W, H]) - 1 - Wn, (NP, 2))
    p[:: max(8, NP // 8)] = centre + rng.uniform(-1, 1, 2)
    v = draw.rng("v").uniform(-1, 1, (NP, 2))
    return {"I": first, "J": second, "p": np.rint(p * 64) / 64, "v": np.rint(v * 64) / 64}


def bilinear(image: Array, x: Array, y: Array) -> Array:
    """Samples of image[row, column] at real positions."""
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = x - column, y - row
    upper = (1 - fx) * image[row, column] + fx * image[row, column + 1]
    lower = (1 - fx) * image[row + 1, column] + fx * image[row + 1, column + 1]
    return (1 - fy) * upper + fy * lower


@pattern("lucas_kanade_step")
def lucas_kanade_step(I: Array, J: Array, p: Array, v: Array, Wn: int) -> Array:  # noqa: E741
    offset = np.arange(Wn) - Wn // 2
    x = p[:, 0, None, None] + offset  # [feature, row, column] of the window
    y = p[:, 1, None, None] + offset[:, None]
    ix = (bilinear(I, x + 1, y) - bilinear(I, x - 1, y)) / 2
    iy = (bilinear(I, x, y + 1) - bilinear(I, x, y - 1)) / 2
    moved = bilinear(J, x + v[:, 0, None, None], y + v[:, 1, None, None])
    difference = bilinear(I, x, y) - moved

    def window_sum(values: Array) -> Array:
        return values.sum(axis=(1, 2))

    gxx, gxy, gyy = window_sum(ix * ix), window_sum(ix * iy), window_sum(iy * iy)
    bx, by = window_sum(ix * difference), window_sum(iy * difference)
    det = np.maximum(gxx * gyy - gxy * gxy, 1e-6)
    step = np.stack([gyy * bx - gxy * by, gxx * by - gxy * bx], axis=1)
    return v + step / det[:, None]


lucas_kanade_step.inputs(tracked_frames)


@lucas_kanade_step.twin
def _(
    g: Graph, I: Value, J: Value, p: Value, v: Value, H: int, W: int, NP: int,  # noqa: E741
    Wn: int
) -> Value:  # fmt: skip
    def sample(frame: Value, at: Value, half: int) -> Value:
        """Windows [NP,side,side] around points [NP,2]."""
        side = 2 * half + 1
        rows, columns = np.mgrid[-half : half + 1, -half : half + 1]
        offsets = np.stack([columns, rows], axis=2).reshape(1, -1, 2)
        points = g.Add(g.Unsqueeze(at, [1]), offsets.astype(np.float64))
        grid = g.Sub(g.Div(points, np.array([W - 1, H - 1]) / 2), 1.0)
        values = g.GridSample(g.Unsqueeze(frame, [0, 1]), g.Unsqueeze(grid, [0]), align_corners=1)
        return g.Reshape(values, [NP, side, side])

    def cut(window: Value, row: int, column: int) -> Value:
        """The inner Wn x Wn part of a window that is larger by one on each side, moved."""
        row, column = row + 1, column + 1
        return g.Slice(window, [row, column], [row + Wn, column + Wn], [1, 2])

    def window_sum(a: Value, b: Value) -> Value:
        return g.ReduceSum(g.Mul(a, b), [1, 2], keepdims=0)

    around = sample(I, p, Wn // 2 + 1)
    ix = g.Mul(g.Sub(cut(around, 0, 1), cut(around, 0, -1)), 0.5)
    iy = g.Mul(g.Sub(cut(around, 1, 0), cut(around, -1, 0)), 0.5)
    difference = g.Sub(cut(around, 0, 0), sample(J, g.Add(p, v), Wn // 2))
    gxx, gxy, gyy = window_sum(ix, ix), window_sum(ix, iy), window_sum(iy, iy)
    bx, by = window_sum(ix, difference), window_sum(iy, difference)
    det = g.Max(g.Sub(g.Mul(gxx, gyy), g.Mul(gxy, gxy)), 1e-6)
    dx = g.Div(g.Sub(g.Mul(gyy, bx), g.Mul(gxy, by)), det)
    dy = g.Div(g.Sub(g.Mul(gxx, by), g.Mul(gxy, bx)), det)
    return g.Add(v, g.Concat(g.Unsqueeze(dx, [1]), g.Unsqueeze(dy, [1]), axis=1))
