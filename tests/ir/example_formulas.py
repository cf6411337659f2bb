"""Literal NumPy and SciPy formulas of the example kernels, and inputs that suit them.

A formula takes the inputs by name and the sizes of the header; it returns the outputs by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, ndimage, signal, sparse

Arrays = dict[str, np.ndarray]
Formula = Callable[[Arrays, dict[str, Any]], Arrays]
Draw = Callable[[np.random.Generator, Arrays, dict[str, Any]], Arrays]

FORMULAS: dict[str, Formula] = {}
DRAWS: dict[str, Draw] = {}


def formula(name: str) -> Callable[[Formula], Formula]:
    def add(fn: Formula) -> Formula:
        FORMULAS[name] = fn
        return fn

    return add


def draws(name: str) -> Callable[[Draw], Draw]:
    def add(fn: Draw) -> Draw:
        DRAWS[name] = fn
        return fn

    return add


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def windows(x: np.ndarray, r: int, s: int, stride: int, pad: int, value: float) -> np.ndarray:
    """NCHW -> [N, C, OH, OW, R, S]."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=value)
    view = np.lib.stride_tricks.sliding_window_view(padded, (r, s), axis=(2, 3))
    return view[:, :, ::stride, ::stride]


# ---------------------------------------------------------------- pooling and convolution
@formula("adaptive_avg_pool2d_nchw")
def _(a, s):
    H, W, OH, OW = s["H"], s["W"], s["OH"], s["OW"]
    y = np.empty((*a["x"].shape[:2], OH, OW))
    for i in range(OH):
        for j in range(OW):
            rows = slice(i * H // OH, -(-(i + 1) * H // OH))
            cols = slice(j * W // OW, -(-(j + 1) * W // OW))
            y[:, :, i, j] = a["x"][:, :, rows, cols].mean((2, 3))
    return {"y": y}


@formula("avg_pool2d_nchw")
def _(a, s):
    args = s["R"], s["S"], s["stride"], s["pad"]
    total = windows(a["x"], *args, 0).sum((-1, -2))
    return {"y": total / windows(np.ones_like(a["x"]), *args, 0).sum((-1, -2))}


@formula("max_pool2d_nchw")
def _(a, s):
    return {"y": windows(a["x"], s["R"], s["S"], s["stride"], s["pad"], -np.inf).max((-1, -2))}


@formula("max_pool2d_with_indices")
def _(a, s):
    N, C, H, W = a["x"].shape
    blocks = a["x"].reshape(N, C, H // 2, 2, W // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    flat = blocks.reshape(N, C, H // 2, W // 2, 4)
    best = flat.argmax(-1)
    i, j = np.arange(H // 2)[:, None], np.arange(W // 2)
    return {"y": flat.max(-1), "idx": (2 * i + best // 2) * W + 2 * j + best % 2}


@formula("conv2d_nchw")
def _(a, s):
    view = windows(a["x"], s["R"], s["S"], s["stride"], s["pad_h"], 0)
    return {"y": np.einsum("ncijrs,kcrs->nkij", view, a["w"])}


@formula("conv2d_transpose_nchw")
def _(a, s):
    N, _, H, W = a["x"].shape
    stride, pad, R, S, K = s["stride"], s["pad"], s["R"], s["S"], s["K"]
    wide = np.zeros((N, K, (H - 1) * stride + R + s["opad"], (W - 1) * stride + S + s["opad"]))
    for i in range(H):
        for j in range(W):
            part = np.einsum("nc,ckrs->nkrs", a["x"][:, :, i, j], a["w"])
            wide[:, :, i * stride : i * stride + R, j * stride : j * stride + S] += part
    return {"y": wide[:, :, pad : wide.shape[2] - pad, pad : wide.shape[3] - pad]}


@formula("conv2d_winograd")
def _(a, s):
    y = [sum(signal.correlate2d(a["x"][c], w[c], "same") for c in range(s["C"])) for w in a["w"]]
    return {"y": np.array(y)}


@formula("qconv2d_s8s32_nhwc")
def _(a, s):
    x = a["x"].astype(np.int64) - int(a["zx"][0])
    x = np.pad(x, ((s["pt"], s["pb"]), (s["pl"], s["pr"]), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(x, (s["R"], s["S"]), axis=(0, 1))
    view = view[:: s["stride"], :: s["stride"]]
    return {"y": np.einsum("ijcrs,krsc->ijk", view, a["w"].astype(np.int64)) + a["bias"]}


# ---------------------------------------------------------------- products
@formula("matmul_nn")
@formula("matmul_nn_f16")
def _(a, s):
    return {"C": a["A"] @ a["B"]}


@formula("grouped_linear")
def _(a, s):
    x = a["x"].reshape(s["M"], s["G"], s["Ki"])
    return {"y": np.einsum("mgk,gok->mgo", x, a["W"]).reshape(s["M"], -1) + a["b"]}


@formula("dot_interaction_tril")
def _(a, s):
    products = np.einsum("bid,bjd->bij", a["x"], a["x"])
    i, j = np.tril_indices(s["Fn"], -1)
    return {"y": products[:, i, j]}


@formula("gemv_q4_0_block32")
def _(a, s):
    low, high = a["q"] & 15, a["q"] >> 4
    weights = (np.concatenate([low, high], -1).astype(float) - 8) * a["d"][..., None]
    return {"y": weights.reshape(s["N"], -1) @ a["x"]}


@formula("gemv_ternary_packed")
def _(a, s):
    digits = (a["w"][:, :, None] >> (2 * np.arange(4, dtype=np.uint8))) & 3
    w = digits.reshape(s["N"], s["K"]).astype(int) - 1
    return {"y": a["ws"][0] * a["xs"][0] * (w @ a["x"].astype(int))}


@formula("xnor_popcount_matmul")
def _(a, s):
    bits = lambda x: np.unpackbits(np.ascontiguousarray(x).view(np.uint8), axis=-1)  # noqa: E731
    one, two = 2 * bits(a["A"]).astype(int) - 1, 2 * bits(a["B"]).astype(int) - 1
    return {"C": one @ two.T}


@formula("spmm_csr")
def _(a, s):
    ptr = a["ptr"].astype(int)
    matrix = sparse.csr_matrix((a["val"], a["col"], ptr - ptr[0]), (s["L"], s["V"]))
    return {"y": matrix @ a["x"]}


@draws("spmm_csr")
def _(rng, a, s):
    counts = rng.multinomial(s["E"], np.ones(s["L"]) / s["L"])
    return {"ptr": np.concatenate([[0], counts.cumsum()]).astype(np.int32)}


# ---------------------------------------------------------------- norms and softmax
@formula("group_norm_nchw")
def _(a, s):
    x = a["x"].reshape(s["N"], s["G"], -1)
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + s["eps"])
    return {"y": z.reshape(a["x"].shape) * a["gamma"][:, None] + a["beta"][:, None]}


@formula("layer_norm_welford")
def _(a, s):
    x = a["x"]
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + s["eps"])
    return {"y": z * a["gamma"] + a["beta"]}


@formula("cumulative_layer_norm")
def _(a, s):
    y = np.empty_like(a["x"])
    for t in range(s["L"]):
        past = a["x"][:, : t + 1]
        y[:, t] = (a["x"][:, t] - past.mean()) / np.sqrt(past.var() + s["eps"])
    return {"y": y * a["gamma"][:, None] + a["beta"][:, None]}


@formula("softmax_last")
@formula("softmax_online")
def _(a, s):
    e = np.exp(a["x"])
    return {"y": e / e.sum(-1, keepdims=True)}


# ---------------------------------------------------------------- recurrences
@formula("biquad_cascade_df2t")
def _(a, s):
    sos = np.insert(a["sos"], 3, 1.0, axis=1)
    return {"y": signal.sosfilt(sos, a["x"], axis=-1)}


@formula("cic_decimator_s32")
def _(a, s):
    v = a["x"].astype(np.uint64)
    for _ in range(3):
        v = v.cumsum(-1)
    v = v[:, s["Rr"] - 1 :: s["Rr"]]
    for _ in range(3):
        v = np.diff(v, axis=-1, prepend=np.uint64(0))
    return {"y": v.astype(np.uint32).view(np.int32).reshape(v.shape)}


@formula("gated_linear_recurrence")
def _(a, s):
    h, y = a["h0"], []
    for f, x in zip(a["fg"], a["x"], strict=True):
        h = f * h + (1 - f) * x
        y.append(h)
    return {"y": np.array(y)}


@formula("lstm_sequence")
def _(a, s):
    h = c = np.zeros(s["Hd"])
    out = []
    for x in a["x"]:
        i, f, g, o = np.split(a["Wx"] @ x + a["Wh"] @ h + a["b"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return {"h": np.array(out)}


@formula("mamba_selective_scan")
def _(a, s):
    h = np.zeros((s["Di"], s["Ns"]))
    y = []
    for t in range(s["L"]):
        h = np.exp(a["dt"][t][:, None] * a["A"]) * h
        h = h + np.outer(a["dt"][t] * a["x"][t], a["B"][t])
        y.append(h @ a["C"][t] + a["D"] * a["x"][t])
    return {"y": np.array(y)}


@formula("rwkv4_wkv")
def _(a, s):
    y = np.empty_like(a["k"])
    for t in range(s["L"]):
        decay = np.exp(a["k"][:t] + (t - 1 - np.arange(t))[:, None] * a["w"])
        now = np.exp(a["u"] + a["k"][t])
        y[t] = ((decay * a["v"][:t]).sum(0) + now * a["v"][t]) / (decay.sum(0) + now)
    return {"y": y}


@formula("nlms_adaptive_filter")
def _(a, s):
    e = np.empty_like(a["d"])
    for b in range(s["B"]):
        w, line = np.zeros(s["NT"]), np.zeros(s["NT"])
        for n in range(s["L"]):
            line = np.r_[a["x"][b, n], line[:-1]]
            e[b, n] = a["d"][b, n] - w @ line
            w = w + s["mu"] * e[b, n] * line / (s["eps"] + line @ line)
    return {"e": e}


@formula("dtw_distance")
def _(a, s):
    y = []
    for query in a["b"]:
        cost = np.abs(a["a"][:, None] - query[None]).sum(-1)
        total = np.full((s["M"] + 1, s["N"] + 1), np.inf)
        total[0, 0] = 0
        for i in range(s["M"]):
            for j in range(s["N"]):
                best = min(total[i, j], total[i, j + 1], total[i + 1, j])
                total[i + 1, j + 1] = cost[i, j] + best
        y.append(total[-1, -1])
    return {"y": np.array(y)}


@formula("viterbi_forward")
def _(a, s):
    v, bp = [a["pi0"] + a["e"][0]], [np.zeros(s["Sv"], int)]
    for emission in a["e"][1:]:
        scores = v[-1][:, None] + a["A"]
        bp.append(scores.argmax(0))
        v.append(emission + scores.max(0))
    return {"v": np.array(v), "bp": np.array(bp)}


@formula("integral_image")
def _(a, s):
    return {"y": a["x"].astype(int).cumsum(0).cumsum(1)}


# ---------------------------------------------------------------- linear algebra
@formula("cholesky_batched")
def _(a, s):
    return {"Lo": np.linalg.cholesky(a["A"])}


@draws("cholesky_batched")
def _(rng, a, s):
    root = rng.normal(size=a["A"].shape)
    return {"A": (root @ root.transpose(0, 2, 1) + 2 * np.eye(s["M"])).astype(np.float32)}


@formula("lu_nopivot_batched")
def _(a, s):
    out = a["A"].copy()
    for m in out:
        for k in range(s["M"]):
            m[k + 1 :, k] /= m[k, k]
            m[k + 1 :, k + 1 :] -= np.outer(m[k + 1 :, k], m[k, k + 1 :])
    return {"LU": out}


@draws("lu_nopivot_batched")
def _(rng, a, s):
    return {"A": (a["A"] + 20 * np.eye(s["M"])).astype(np.float32)}


@formula("triangular_solve_lower")
def _(a, s):
    return {"X": linalg.solve_triangular(a["L_"], a["B"], lower=True)}


@draws("triangular_solve_lower")
def _(rng, a, s):
    return {"L_": (a["L_"] + 9 * np.eye(s["M"])).astype(np.float32)}


@formula("tridiagonal_solve_batched")
def _(a, s):
    x = []
    for lower, main, upper, right in zip(a["a"], a["b"], a["c"], a["d"], strict=True):
        matrix = np.diag(main) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
        x.append(np.linalg.solve(matrix, right))
    return {"x": np.array(x)}


@draws("tridiagonal_solve_batched")
def _(rng, a, s):
    return {"b": (np.abs(a["b"]) + 30).astype(np.float32)}


@formula("levinson_durbin")
def _(a, s):
    rest = [linalg.solve_toeplitz(r[:-1], -r[1:]) for r in a["r"]]
    return {"a": np.concatenate([np.ones((s["B"], 1)), np.array(rest)], 1)}


@draws("levinson_durbin")
def _(rng, a, s):
    noise = rng.normal(size=(s["B"], 64))
    r = [np.correlate(x, x, "full")[63 : 64 + s["Or"]] for x in noise]
    return {"r": np.array(r, np.float32)}


@formula("jacobi_eigen3x3_batched")
def _(a, s):
    return {"w": np.linalg.eigvalsh(a["A"])}


@draws("jacobi_eigen3x3_batched")
def _(rng, a, s):
    return {"A": a["A"] + a["A"].transpose(0, 2, 1)}


@formula("fft_radix2_stockham")
def _(a, s):
    z = np.fft.fft(a["x"][..., 0] + 1j * a["x"][..., 1])
    return {"X": np.stack([z.real, z.imag], -1)}


@draws("fft_radix2_stockham")
def _(rng, a, s):
    return {"tw": twiddles(s["NF"]).astype(np.float32)}


def twiddles(n: int) -> np.ndarray:
    turn = np.exp(-2j * np.pi * np.arange(n) / n)
    return np.stack([turn.real, turn.imag], -1)


# ---------------------------------------------------------------- images
@formula("median_3x3_u8")
def _(a, s):
    return {"y": ndimage.median_filter(a["x"], 3, mode="nearest")}


@formula("census_transform")
def _(a, s):
    wide = np.pad(a["x"], 2, mode="edge")
    y = np.zeros(a["x"].shape, np.uint64)
    for q in range(25):
        if q != 12:
            i, j = divmod(q, 5)
            here = wide[i : i + s["H"], j : j + s["W"]]
            y = (y << np.uint64(1)) | (here < a["x"])
    return {"y": y}


@formula("histogram_u8")
def _(a, s):
    return {"y": np.bincount(a["x"], minlength=256)}


@formula("resize_bilinear_half_pixel_nchw")
def _(a, s):
    return {"y": _resize(a["x"], (1, 2), s)}


@formula("resize_bilinear_u8_hwc")
def _(a, s):
    return {"y": np.floor(_resize(a["x"].astype(float), (0, 1), s) + 0.5)}


@draws("resize_bilinear_u8_hwc")
def _(rng, a, s):
    # Weights are multiples of 1/252, so multiples of 4 never land half way between integers.
    return {"x": (4 * rng.integers(0, 64, a["x"].shape)).astype(np.uint8)}


def _resize(x: np.ndarray, axes: tuple[int, int], s: dict[str, Any]) -> np.ndarray:
    for axis, n, on in zip(axes, (s["H"], s["W"]), (s["OH"], s["OW"]), strict=True):
        at = np.maximum((np.arange(on) + 0.5) * n / on - 0.5, 0)
        x = np.apply_along_axis(lambda row, at=at, n=n: np.interp(at, np.arange(n), row), axis, x)
    return x


@formula("temporal_shift")
def _(a, s):
    y, Cs = a["x"].copy(), s["Cs"]
    y[:, : 2 * Cs] = 0
    y[:-1, :Cs] = a["x"][1:, :Cs]
    y[1:, Cs : 2 * Cs] = a["x"][:-1, Cs : 2 * Cs]
    return {"y": y}


# ---------------------------------------------------------------- integers and indices
@formula("fir_q15")
def _(a, s):
    full = np.convolve(a["x"].astype(np.int64), a["h"].astype(np.int64))[: s["L"]]
    return {"y": np.clip(full >> 15, -32768, 32767)}


@draws("fir_q15")
def _(rng, a, s):
    return {
        name: rng.integers(-32768, 32767, a[name].shape, endpoint=True).astype(np.int16)
        for name in ("x", "h")
    }


@formula("quantize_s8_per_tensor")
def _(a, s):
    return {"q": np.clip(np.rint(a["x"] / a["scale"]) + a["zp"], -128, 127)}


@draws("quantize_s8_per_tensor")
def _(rng, a, s):
    return {"scale": np.array([0.03125], np.float32)}


@formula("requantize_s32_s8_fixedpoint")
def _(a, s):
    high = [
        [(int(v) * int(m) + (1 << 30)) >> 31 for v, m in zip(row, a["mult"], strict=True)]
        for row in a["acc"]
    ]
    shift = a["shift"].astype(int)
    rounded = (np.array(high) + (1 << (shift - 1))) >> shift
    return {"q": np.clip(rounded + int(a["zp"][0]), -128, 127)}


@draws("requantize_s32_s8_fixedpoint")
def _(rng, a, s):
    return {
        "acc": rng.integers(-(2**20), 2**20, a["acc"].shape).astype(np.int32),
        "mult": rng.integers(2**30, 2**31, a["mult"].shape).astype(np.int32),
        "shift": rng.integers(10, 15, a["shift"].shape).astype(np.int32),
    }


@formula("qglobal_avg_pool_s8_nhwc")
def _(a, s):
    total = a["x"].astype(int).sum((0, 1))
    count = s["H"] * s["W"]
    half_away = np.sign(total) * ((2 * np.abs(total) + count) // (2 * count))
    return {"y": np.clip(half_away, -128, 127)}


@formula("scatter_add_rows")
def _(a, s):
    y = np.zeros((s["V"], s["D"]))
    np.add.at(y, a["idx"], a["x"])
    return {"y": y}


@formula("scatter_rows")
def _(a, s):
    y = a["cache"].copy()
    y[:, a["pos"]] = a["x"]
    return {"y": y}


@draws("scatter_rows")
def _(rng, a, s):
    return {"pos": rng.permutation(s["MaxL"])[: s["L"]].astype(np.int32)}


@formula("topk_last")
def _(a, s):
    idx = np.argsort(-a["x"], axis=-1, kind="stable")[:, : s["K"]]
    return {"v": np.take_along_axis(a["x"], idx, -1), "idx": idx}


@formula("systematic_resample")
def _(a, s):
    total = a["w"].cumsum()
    points = (np.arange(s["L"]) + a["u0"][0]) / s["L"] * total[-1]
    return {"idx": np.minimum(np.searchsorted(total, points, "right"), s["L"] - 1)}


@draws("systematic_resample")
def _(rng, a, s):
    return {"w": rng.random(s["L"]).astype(np.float32), "u0": np.array([0.37], np.float32)}


@formula("ball_query")
def _(a, s):
    near = ((a["p"][None] - a["c"][:, None]) ** 2).sum(-1) < s["rad"] ** 2
    out = np.zeros((s["S"], s["KN"]), int)
    for row, hits in zip(out, near, strict=True):
        found = np.flatnonzero(hits)[: s["KN"]]
        row[:] = found[0] if len(found) else 0
        row[: len(found)] = found
    return {"idx": out}


@formula("farthest_point_sampling")
def _(a, s):
    chosen, distance = [0], np.full(s["L"], np.inf)
    while len(chosen) < s["S"]:
        distance = np.minimum(distance, ((a["p"] - a["p"][chosen[-1]]) ** 2).sum(-1))
        chosen.append(int(distance.argmax()))
    return {"idx": np.array(chosen)}


@formula("nms_static")
def _(a, s):
    box, kept = a["box"], []
    keep = np.zeros(s["L"], int)
    for i, (x0, y0, x1, y1) in enumerate(box):
        clear = True
        for j in kept:
            w = max(min(x1, box[j, 2]) - max(x0, box[j, 0]), 0)
            h = max(min(y1, box[j, 3]) - max(y0, box[j, 1]), 0)
            area = (box[j, 2] - box[j, 0]) * (box[j, 3] - box[j, 1])
            clear &= w * h / ((x1 - x0) * (y1 - y0) + area - w * h) <= s["thr"]
        if clear:
            keep[i] = 1
            kept.append(i)
    return {"keep": keep}


@draws("nms_static")
def _(rng, a, s):
    corner = rng.random((s["L"], 2))
    return {"box": np.concatenate([corner, corner + 0.3], 1).astype(np.float32)}


@formula("overlap_add")
def _(a, s):
    y = np.zeros((s["NF"] - 1) * s["hop"] + s["NW"])
    for g, frame in enumerate(a["x"]):
        y[g * s["hop"] : g * s["hop"] + s["NW"]] += frame
    return {"y": y}


@formula("rope_half_split")
def _(a, s):
    one, two = np.split(a["x"], 2, axis=-1)
    cos, sin = a["cos"][:, None], a["sin"][:, None]
    return {"y": np.concatenate([one * cos - two * sin, two * cos + one * sin], -1)}
