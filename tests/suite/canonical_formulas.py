"""The definitions of the 46 agent patterns as literal NumPy formulas, in float64.

Written from the definition column of the suite table, apart from the package's references, to
check the canonical programs. Each function takes the sizes and the inputs (float64 or integers)
and returns the outputs by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace as Sizes

import numpy as np

Tensors = dict[str, np.ndarray]
Formula = Callable[[Sizes, Tensors], Tensors]

FORMULAS: dict[str, Formula] = {}


def formula(function: Formula) -> Formula:
    FORMULAS[function.__name__] = function
    return function


# ---------------------------------------------------------------- shared pieces
def _sig(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -x))


def _silu(x: np.ndarray) -> np.ndarray:
    return x * _sig(x)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _hsig(x: np.ndarray) -> np.ndarray:
    return np.clip(x + 3, 0, 6) / 6


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _rms(x: np.ndarray, g: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * g


def _windows(
    x: np.ndarray, taps: tuple[int, int], out: tuple[int, int], step: int, before: tuple[int, int],
    fill: float = 0,
) -> np.ndarray:  # fmt: skip
    """x[..., H, W] -> [R, S, ..., OH, OW], ``fill`` outside the image."""
    (height, width), (rows, cols) = x.shape[-2:], out
    result = np.full((*taps, *x.shape[:-2], *out), fill, x.dtype)
    for r in range(taps[0]):
        for s in range(taps[1]):
            for i in range(rows):
                for j in range(cols):
                    p, q = i * step + r - before[0], j * step + s - before[1]
                    if 0 <= p < height and 0 <= q < width:
                        result[r, s, ..., i, j] = x[..., p, q]
    return result


def _hwc(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, -1, -3)


def _c3(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    win = _windows(x, (3, 3), x.shape[-2:], 1, (1, 1))
    return np.einsum("rscij,kcrs->kij", win, w) + b[:, None, None]


def _pw(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("kc,cij->kij", w, x) + b[:, None, None]


# ---------------------------------------------------------------- level 1
@formula
def add(s: Sizes, t: Tensors) -> Tensors:
    return {"y": t["a"] + t["b"]}


@formula
def argmax_channel_nchw(s: Sizes, t: Tensors) -> Tensors:
    return {"y": np.argmax(t["x"], axis=0)}


@formula
def batch_matmul_nt(s: Sizes, t: Tensors) -> Tensors:
    return {"C": np.einsum("bmk,bnk->bmn", t["A"], t["B_"])}


@formula
def cholesky_batched(s: Sizes, t: Tensors) -> Tensors:
    return {"L_": np.linalg.cholesky(t["A"])}


@formula
def conv1d_causal_dilated_ncw(s: Sizes, t: Tensors) -> Tensors:
    y = np.zeros((s.N, s.K, s.L)) + t["b"][None, :, None]
    for at in range(s.L):
        for r in range(s.R):
            source = at - (s.R - 1 - r) * s.dil
            if source >= 0:
                y[:, :, at] += np.einsum("nc,kc->nk", t["x"][:, :, source], t["w"][:, :, r])
    return {"y": y}


@formula
def conv2d_nchw(s: Sizes, t: Tensors) -> Tensors:
    win = _windows(t["x"], (s.R, s.S), (s.OH, s.OW), s.stride, (s.pad_h, s.pad_w))
    return {"y": np.einsum("rsncij,kcrs->nkij", win, t["w"])}


@formula
def conv2d_nhwc(s: Sizes, t: Tensors) -> Tensors:
    win = _windows(_hwc(t["x"]), (s.R, s.S), (s.OH, s.OW), s.stride, (s.pt, s.pl))
    return {"y": np.einsum("rsncij,rsck->nijk", win, t["w"])}


@formula
def conv2d_pointwise_nchw(s: Sizes, t: Tensors) -> Tensors:
    return {"y": np.einsum("kc,ncij->nkij", t["w"], t["x"])}


@formula
def conv2d_transpose_nchw(s: Sizes, t: Tensors) -> Tensors:
    """Scatter form: each input element is spread over its window."""
    y = np.zeros((s.N, s.K, s.OH, s.OW))
    for i in range(s.H):
        for j in range(s.W):
            for r in range(s.R):
                for q in range(s.S):
                    o, p = i * s.stride + r - s.pad, j * s.stride + q - s.pad
                    if 0 <= o < s.OH and 0 <= p < s.OW:
                        y[:, :, o, p] += t["x"][:, :, i, j] @ t["w"][:, :, r, q]
    return {"y": y}


@formula
def correlation_cost_volume(s: Sizes, t: Tensors) -> Tensors:
    y = np.zeros((s.N, s.D, s.H, s.W))
    for d in range(s.D):
        for j in range(d, s.W):
            y[:, d, :, j] = (t["a"][:, :, :, j] * t["b"][:, :, :, j - d]).sum(1) / s.C
    return {"y": y}


@formula
def depth_to_space_nchw(s: Sizes, t: Tensors) -> Tensors:
    split = t["x"].reshape(s.N, s.C, s.r, s.r, s.H, s.W)
    return {"y": split.transpose(0, 1, 4, 2, 5, 3).reshape(s.N, s.C, s.H * s.r, s.W * s.r)}


@formula
def depthwise_conv2d_nchw(s: Sizes, t: Tensors) -> Tensors:
    win = _windows(t["x"], (s.R, s.S), (s.OH, s.OW), s.stride, (s.pad, s.pad))
    return {"y": np.einsum("rsncij,crs->ncij", win, t["w"])}


@formula
def embedding_bag_sum(s: Sizes, t: Tensors) -> Tensors:
    return {"y": t["table"][t["idx"]].sum(1)}


@formula
def fir_q15(s: Sizes, t: Tensors) -> Tensors:
    y = []
    for n in range(s.L):
        acc = sum(int(t["h"][k]) * int(t["x"][n - k]) for k in range(s.NT) if n >= k)
        y.append(max(-32768, min(32767, acc >> 15)))
    return {"y": np.array(y)}


@formula
def gelu_erf(s: Sizes, t: Tensors) -> Tensors:
    return {"y": 0.5 * t["x"] * (1 + _erf(t["x"] / math.sqrt(2)))}


@formula
def gemv_q4_0_block32(s: Sizes, t: Tensors) -> Tensors:
    q = t["q"].astype(np.int64)
    nibbles = np.concatenate([q & 15, q >> 4], axis=2) - 8
    return {"y": np.einsum("nb,nbj,bj->n", t["d"], nibbles, t["x"].reshape(s.KB, 32))}


@formula
def gemv_row_major(s: Sizes, t: Tensors) -> Tensors:
    return {"y": t["W"] @ t["x"]}


@formula
def layer_norm_last(s: Sizes, t: Tensors) -> Tensors:
    x = t["x"]
    centred = x - x.mean(1, keepdims=True)
    v = (centred**2).mean(1, keepdims=True)
    return {"y": centred / np.sqrt(v + s.eps) * t["gamma"] + t["beta"]}


@formula
def mamba_selective_scan(s: Sizes, t: Tensors) -> Tensors:
    h = np.zeros((s.Di, s.Ns))
    y = np.zeros((s.L, s.Di))
    for at in range(s.L):
        dt, x = t["dt"][at][:, None], t["x"][at][:, None]
        h = np.exp(dt * t["A"]) * h + dt * t["B"][at] * x
        y[at] = h @ t["C"][at] + t["D"] * t["x"][at]
    return {"y": y}


@formula
def matmul_nt(s: Sizes, t: Tensors) -> Tensors:
    return {"C": t["A"] @ t["B"].T}


@formula
def max_pool2d_nchw(s: Sizes, t: Tensors) -> Tensors:
    taps, out = (s.R, s.S), (s.OH, s.OW)
    return {"y": _windows(t["x"], taps, out, s.stride, (s.pad, s.pad), -np.inf).max((0, 1))}


@formula
def qconv2d_s8s32_nhwc(s: Sizes, t: Tensors) -> Tensors:
    x = _hwc(t["x"].astype(np.int64) - t["zx"][0])
    win = _windows(x, (s.R, s.S), (s.OH, s.OW), s.stride, (s.pt, s.pl))
    return {"y": t["bias"] + np.einsum("rscij,krsc->ijk", win, t["w"].astype(np.int64))}


@formula
def reduce_max_axis0(s: Sizes, t: Tensors) -> Tensors:
    return {"y": t["x"].max(0)}


@formula
def resize_bilinear_u8_hwc(s: Sizes, t: Tensors) -> Tensors:
    """In exact integers: coordinates are multiples of 1/(2 OH) and 1/(2 OW)."""
    x = t["x"].astype(np.int64)
    y = np.zeros((s.OH, s.OW, s.C), np.int64)
    unit_y, unit_x = 2 * s.OH, 2 * s.OW
    for i in range(s.OH):
        for j in range(s.OW):
            y0, fy = divmod(max((2 * i + 1) * s.H - s.OH, 0), unit_y)
            x0, fx = divmod(max((2 * j + 1) * s.W - s.OW, 0), unit_x)
            y1, x1 = min(y0 + 1, s.H - 1), min(x0 + 1, s.W - 1)
            v = (unit_y - fy) * (unit_x - fx) * x[y0, x0] + (unit_y - fy) * fx * x[y0, x1]
            v = v + fy * (unit_x - fx) * x[y1, x0] + fy * fx * x[y1, x1]
            y[i, j] = (2 * v + unit_y * unit_x) // (2 * unit_y * unit_x)
    return {"y": y}


@formula
def rope_half_split(s: Sizes, t: Tensors) -> Tensors:
    return {"y": _rope(t["x"], t["cos"], t["sin"])}


def _rope(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """x [L, heads, D], cos and sin [L, D/2]."""
    low, high = np.split(x, 2, axis=2)
    cos, sin = cos[:, None], sin[:, None]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=2)


@formula
def softmax_last(s: Sizes, t: Tensors) -> Tensors:
    return {"y": _softmax(t["x"])}


@formula
def spmm_csr(s: Sizes, t: Tensors) -> Tensors:
    y = np.zeros((s.L, s.D))
    for i in range(s.L):
        for e in range(t["ptr"][i], t["ptr"][i + 1]):
            y[i] += t["val"][e] * t["x"][t["col"][e]]
    return {"y": y}


# ---------------------------------------------------------------- level 2
@formula
def admm_mpc_iteration(s: Sizes, t: Tensors) -> Tensors:
    state, u = t["x0"], []
    for k in range(s.Nh - 1):
        u.append(-t["Kinf"] @ state - t["d"][k])
        state = t["A"] @ state + t["Bm"] @ u[-1]
    u = np.array(u)
    z = np.clip(u + t["y"], s.umin, s.umax)
    y = t["y"] + u - z
    r = -s.rho * (z - y)
    p, d = t["p"].copy(), np.zeros_like(u)
    for k in reversed(range(s.Nh - 1)):
        d[k] = t["Qi"] @ (t["Bm"].T @ p[k + 1] + r[k])
        p[k] = t["q"][k] + t["Am"].T @ p[k + 1] - t["Kinf"].T @ r[k]
    return {"u": u, "d_out": d, "p_out": p, "y_out": y}


@formula
def depthwise_separable_nhwc(s: Sizes, t: Tensors) -> Tensors:
    win = _windows(_hwc(t["x"]), (3, 3), (s.OH, s.OW), s.stride, (s.pt, s.pl))
    mid = _relu(np.einsum("rscij,rsc->ijc", win, t["wd"]) + t["bd"])
    return {"y": _relu(mid @ t["wp"] + t["bp"])}


@formula
def gqa_decode_attention(s: Sizes, t: Tensors) -> Tensors:
    o = np.zeros((s.Hkv * s.G, s.D))
    for h in range(s.Hkv * s.G):
        k, v = t["k"][h // s.G], t["v"][h // s.G]
        o[h] = _softmax(s.scale * (k @ t["q"][h])) @ v
    return {"o": o}


@formula
def heatmap_peak_nms(s: Sizes, t: Tensors) -> Tensors:
    score = _sig(t["x"])
    highest = _windows(score, (3, 3), (s.H, s.W), 1, (1, 1), -np.inf).max((0, 1))
    return {"y": np.where(score == highest, score, 0)}


@formula
def image_normalize_to_nchw(s: Sizes, t: Tensors) -> Tensors:
    return {"y": np.moveaxis((t["x"] / 255.0 - t["mean"]) / t["std"], 2, 0)}


@formula
def inverted_residual_se_hswish_nchw(s: Sizes, t: Tensors) -> Tensors:
    x = t["x"][0]
    z = _pw(x, t["w1"], t["b1"])
    z = z * _hsig(z)
    win = _windows(z, (s.R, s.R), (s.OH, s.OW), s.stride, (s.R // 2, s.R // 2))
    z = np.einsum("rseij,ers->eij", win, t["w2"]) + t["b2"][:, None, None]
    z = z * _hsig(z)
    gate = _hsig(t["w4"] @ _relu(t["w3"] @ z.mean((1, 2)) + t["b3"]) + t["b4"])
    y = _pw(z * gate[:, None, None], t["w5"], t["b5"])
    return {"y": (y + x if s.res else y)[None]}


@formula
def log_mel_filterbank(s: Sizes, t: Tensors) -> Tensors:
    power = (t["X"] ** 2).sum(2)
    return {"y": np.log(np.maximum(power @ t["fb"], 1e-10))}


@formula
def lstm_sequence(s: Sizes, t: Tensors) -> Tensors:
    h, c, out = np.zeros(s.Hd), np.zeros(s.Hd), []
    for x in t["x"]:
        i, f, g, o = np.split(t["Wx"] @ x + t["Wh"] @ h + t["b"], 4)
        c = _sig(f) * c + _sig(i) * np.tanh(g)
        h = _sig(o) * np.tanh(c)
        out.append(h)
    return {"h": np.array(out)}


@formula
def qdepthwise_bias_requant_s8_nhwc(s: Sizes, t: Tensors) -> Tensors:
    x = _hwc(t["x"].astype(np.int64) - t["zx"][0])
    win = _windows(x, (s.R, s.S), (s.OH, s.OW), s.stride, (s.pt, s.pl))
    acc = t["bias"] + np.einsum("rscij,rsc->ijc", win, t["w"].astype(np.int64))
    return {"y": np.clip(np.rint(acc * t["sc"]) + t["zy"][0], -128, 127)}


@formula
def relu_linear_attention(s: Sizes, t: Tensors) -> Tensors:
    q, k = _relu(t["q"]), _relu(t["k"])
    v1 = np.concatenate([t["v"], np.ones((s.H, s.L, 1))], axis=2)
    both = q @ (k.transpose(0, 2, 1) @ v1)
    return {"o": both[:, :, :-1] / (both[:, :, -1:] + 1e-15)}


@formula
def residual_add_rms_norm(s: Sizes, t: Tensors) -> Tensors:
    h = t["x"] + t["r"]
    return {"h": h, "y": _rms(h, t["g"], s.eps)}


@formula
def sppf_nchw(s: Sizes, t: Tensors) -> Tensors:
    parts = [_silu(_pw(t["x"][0], t["w1"], t["b1"]))]
    for _ in range(3):
        win = _windows(parts[-1], (5, 5), (s.H, s.W), 1, (2, 2), -np.inf)
        parts.append(win.max((0, 1)))
    return {"y": _silu(_pw(np.concatenate(parts), t["w2"], t["b2"]))[None]}


@formula
def swiglu_mlp(s: Sizes, t: Tensors) -> Tensors:
    x = t["x"]
    return {"y": (_silu(x @ t["Wg"].T) * (x @ t["Wu"].T)) @ t["Wd"].T}


# ---------------------------------------------------------------- level 3
@formula
def ds_cnn_kws(s: Sizes, t: Tensors) -> Tensors:
    def same(n: int, taps: int, step: int) -> int:
        return max((-(-n // step) - 1) * step + taps - n, 0) // 2

    before = same(s.H, 10, 2), same(s.W, 4, 2)
    win = _windows(_hwc(t["x"]), (10, 4), (s.OH, s.OW), 2, before)
    z = _relu(np.einsum("rscij,rsck->ijk", win, t["w0"]) + t["b0"])
    for i in range(s.NBk):
        win = _windows(_hwc(z), (3, 3), (s.OH, s.OW), 1, (1, 1))
        z = _relu(np.einsum("rscij,rsc->ijc", win, t["wd"][i]) + t["bd"][i])
        z = _relu(z @ t["wp"][i] + t["bp"][i])
    return {"y": _softmax(z.mean((0, 1)) @ t["Wf"] + t["bf"])}


@formula
def fc_autoencoder(s: Sizes, t: Tensors) -> Tensors:
    h = _relu(t["x"] @ t["W1"].T + t["b1"])
    for i in range(3):
        h = _relu(h @ t["We"][i].T + t["be"][i])
    z = _relu(h @ t["Wz"].T + t["bz"])
    h = _relu(z @ t["Wd"].T + t["bd"])
    for i in range(3):
        h = _relu(h @ t["Wm"][i].T + t["bm"][i])
    return {"y": h @ t["Wo"].T + t["bo"]}


@formula
def llama_layer_prefill(s: Sizes, t: Tensors) -> Tensors:
    a = _rms(t["x"], t["g1"], 1e-5)
    q = _rope((a @ t["Wq"].T).reshape(s.L, s.Hq, s.D), t["cos"], t["sin"])
    k = _rope((a @ t["Wk"].T).reshape(s.L, s.Hkv, s.D), t["cos"], t["sin"])
    v = (a @ t["Wv"].T).reshape(s.L, s.Hkv, s.D)
    o = np.zeros((s.L, s.Hq, s.D))
    for h in range(s.Hq):
        group = h // (s.Hq // s.Hkv)
        for i in range(s.L):
            p = _softmax(k[: i + 1, group] @ q[i, h] / math.sqrt(s.D))
            o[i, h] = p @ v[: i + 1, group]
    h = t["x"] + o.reshape(s.L, -1) @ t["Wo"].T
    b = _rms(h, t["g2"], 1e-5)
    y = h + (_silu(b @ t["Wg"].T) * (b @ t["Wu"].T)) @ t["Wd"].T
    return {"y": y, "k": k.transpose(1, 0, 2), "v": v.transpose(1, 0, 2)}


@formula
def mobilebert_layer(s: Sizes, t: Tensors) -> Tensors:
    def nn(z: np.ndarray, i: int) -> np.ndarray:
        return z * t["g"][i] + t["c"][i]

    x = t["x"]
    lin = nn(x @ t["Wbi"] + t["bbi"], 0)
    shared = nn(x @ t["Wbs"] + t["bbs"], 1)
    q, k = shared @ t["Wq"] + t["bq"], shared @ t["Wk"] + t["bk"]
    v = x @ t["Wv"] + t["bv"]
    width = s.Cb // s.Hn
    heads = [slice(h * width, (h + 1) * width) for h in range(s.Hn)]
    parts = [_softmax(q[:, h] @ k[:, h].T / math.sqrt(width)) @ v[:, h] for h in heads]
    z = nn(np.concatenate(parts, axis=1) @ t["Wao"] + t["bao"] + lin, 2)
    for i in range(4):
        up = _relu(z @ t["W1"][i] + t["b1"][i])
        z = nn(up @ t["W2"][i] + t["b2"][i] + z, 3 + i)
    return {"y": (z @ t["Wbo"] + t["bbo"] + x) * t["gy"] + t["cy"]}


@formula
def rnnoise_network(s: Sizes, t: Tensors) -> Tensors:
    def conv(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        frames = range(len(x) - 2)
        return np.tanh([b + np.einsum("rc,kcr->k", x[i : i + 3], w) for i in frames])

    def gru(xs: np.ndarray, i: int) -> np.ndarray:
        h, out = np.zeros(s.Hd), []
        for x in xs:
            ar, az, an = np.split(t["Wx"][i] @ x + t["bx"][i], 3)
            ur, uz, un = np.split(t["Uh"][i] @ h + t["bh"][i], 3)
            r, z = _sig(ar + ur), _sig(az + uz)
            h = (1 - z) * np.tanh(an + r * un) + z * h
            out.append(h)
        return np.array(out)

    c2 = conv(conv(t["x"], t["w1"], t["b1"]), t["w2"], t["b2"])
    g1 = gru(c2, 0)
    g2 = gru(g1, 1)
    z = np.concatenate([c2, g1, g2, gru(g2, 2)], axis=1)
    return {"gain": _sig(z @ t["Wg"].T + t["bg"]), "vad": _sig(z @ t["Wv"].T + t["bv"])}


@formula
def yolov8_c2f(s: Sizes, t: Tensors) -> Tensors:
    z = _silu(_pw(t["x"], t["w1"], t["b1"]))
    parts = [z[: s.Q], z[s.Q :]]
    for i in range(s.Nl):
        u = _silu(_c3(parts[-1], t["wa"][i], t["ba"][i]))
        parts.append(parts[-1] + _silu(_c3(u, t["wb"][i], t["bb"][i])))
    return {"y": _silu(_pw(np.concatenate(parts), t["w2"], t["b2"]))}
