"""Combiners that tests of several parts share, with what they compute as NumPy says it."""

from __future__ import annotations

import numpy as np

LSE = """combiner lse((m, s), (n, t)) init (-1e30, 0) = {
  let h = max(m, n)
  return (h, s * exp(m - h) + t * exp(n - h))
}
"""
WELFORD = """combiner welford((m, q, n), (u, r, k)) init (0, 0, 0) = {
  let d = u - m
  let w = k / max(n + k, 1)
  return (m + d * w, q + r + d * d * n * w, n + k)
}
"""
BEST = """combiner best((v, i), (w, j)) init (-inf, 2147483647) = (
  max(v, w), i if v > w or (v == w and i < j) else j)
"""
FLASH = """combiner flash((m, s, o), (n, t, p)) init (-1e30, 0, 0) = {
  let h = max(m, n)
  let (a, b) = (exp(m - h), exp(n - h))
  return (h, s * a + t * b, o * a + p * b)
}
"""

Arrays = dict[str, np.ndarray]


def _softmax(a: Arrays) -> Arrays:
    x = a["x"].astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    return {"y": e / e.sum(1, keepdims=True)}


def _moments(a: Arrays) -> Arrays:
    x = a["x"].astype(np.float64)
    return {"mu": x.mean(1), "var": x.var(1)}


def _best(a: Arrays) -> Arrays:
    return {"v": a["x"].max(1), "i": a["x"].argmax(1).astype(np.int32)}


def _decode(a: Arrays) -> Arrays:
    q, k, v = (a[n].astype(np.float64) for n in "qkv")
    s = k @ q
    p = np.exp(s - s.max())
    return {"o": p @ v / p.sum()}


def _masked(a: Arrays) -> Arrays:
    x, keep = a["x"].astype(np.float64), a["g"] > 0
    y = np.where(keep, x, -np.inf)
    top = np.maximum(y.max(1), -1e30)
    return {"m": top, "s": np.where(keep, np.exp(x - top[:, None]), 0).sum(1)}


def _history(a: Arrays) -> Arrays:
    x = a["x"].astype(np.float64)
    h = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        shifted = x[t] + 0.5 * (h[t - 1] if t else 0)
        h[t] = np.log(np.exp(shifted).sum())
    return {"h": h}


CASES = {
    "softmax": (
        LSE
        + """kernel k[R=13, C=75](x: f32[R, C]) -> (y: f32[R, C]) {
  compute {
    m[r: R], s[r: R] = lse[c: C](x[r, c], 1)
    y[r, c] = exp(x[r, c] - m[r]) / s[r]
  }
}
""",
        _softmax,
    ),
    "softmax_inside": (
        LSE
        + """kernel k[R=6, C=40](x: f32[R, C]) -> (y: f32[R, C]) {
  compute {
    y[r, c] = { let (m, s) = lse[e: C](x[r, e], 1)  return exp(x[r, c] - m) / s }
  }
}
""",
        _softmax,
    ),
    "welford": (
        WELFORD
        + """kernel k[R=9, C=130](x: f32[R, C]) -> (mu: f32[R], var: f32[R]) {
  compute {
    mu[r], q[r: R], n[r: R] = welford[c: C](x[r, c], 0, 1)
    var[r] = q[r] / n[r]
  }
}
""",
        _moments,
    ),
    "argmax_with_value": (
        BEST
        + """kernel k[R=7, C=50](x: f32[R, C]) -> (v: f32[R], i: s32[R]) {
  compute { v[r], i[r] = best[c: C](x[r, c], c) }
}
""",
        _best,
    ),
    "argmax_of_bytes": (
        BEST
        + """kernel k[R=7, C=50](x: s8[R, C]) -> (v: s32[R], i: s32[R]) {
  compute {
    w[r: R], i[r] = best[c: C](x[r, c], c)
    v[r] = s32(w[r])
  }
}
""",
        _best,
    ),
    "split_decoding": (
        FLASH
        + """kernel k[L=96, D=24, P=4](q: f32[D], k: f32[L, D], v: f32[L, D]) -> (o: f32[D]) {
  compute {
    sc[l: L] = sum[d: D](q[d] * k[l, d])
    let B = L // P
    m[p: P, d: D], s[p: P, d: D], a[p: P, d: D] = flash[l: p*B..(p + 1)*B](sc[l], 1, v[l, d])
    o[d] = { let (m1, s1, a1) = flash[p: P](m[p, d], s[p, d], a[p, d])  return a1 / s1 }
  }
}
""",
        _decode,
    ),
    "masked": (
        LSE
        + """kernel k[R=6, C=70](x: f32[R, C], g: s32[R, C]) -> (m: f32[R], s: f32[R]) {
  compute { m[r], s[r] = lse[c: C where g[r, c] > 0](x[r, c], 1) }
}
""",
        _masked,
    ),
    "in_a_history": (
        LSE
        + """kernel k[L=8, C=40](x: f32[L, C]) -> (h: f32[L]) {
  compute {
    seq t: L {
      m, s = lse[c: C](x[t, c] + 0.5 * pad(h[t-1], 0), 1)
      h[t] = m + log(s)
    }
  }
}
""",
        _history,
    ),
    "single_values": (
        """combiner farthest(a, b) init 0 = max(a, b)
kernel k[R=5, C=33](x: f32[R, C]) -> (y: f32[R]) {
  compute { y[r] = farthest[c: C](abs(x[r, c])) }
}
""",
        lambda a: {"y": np.abs(a["x"]).max(1)},
    ),
    "bits": (
        """combiner parity(a, b) init 0 = a ^ b
kernel k[R=5, C=33](x: s32[R, C]) -> (y: s32[R]) {
  compute { y[r] = parity[c: C](x[r, c]) }
}
""",
        lambda a: {"y": np.bitwise_xor.reduce(a["x"], 1)},
    ),
    "two_axes": (
        """combiner both((a, b), (c, d)) init (0, 0) = (a + c, b + d)
kernel k[M=9, N=21](x: f32[M, N]) -> (y: f32[2]) {
  compute {
    s, t = both[i: M, j: N](x[i, j], sq(x[i, j]))
    y[u] = s if u == 0 else t
  }
}
""",
        lambda a: {
            "y": np.array([a["x"].sum(dtype=np.float64), (a["x"].astype(np.float64) ** 2).sum()])
        },
    ),
}


def inputs(tensors, seed: int = 0) -> Arrays:
    """Data with ties, for every input of a program."""
    rng = np.random.default_rng(seed)
    out = {}
    for t in tensors:
        if t.dtype.is_float:
            out[t.name] = (np.rint(rng.normal(size=t.shape) * 8) / 8).astype(t.dtype.numpy)
        else:
            out[t.name] = rng.integers(-5, 6, t.shape).astype(t.dtype.numpy)
    return out


def agree(got: Arrays, want: Arrays) -> None:
    for name, expected in want.items():
        if expected.dtype.kind == "i":
            np.testing.assert_array_equal(got[name], expected, err_msg=name)
        else:
            np.testing.assert_allclose(got[name], expected, rtol=2e-5, atol=2e-6, err_msg=name)
