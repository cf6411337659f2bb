"""Kernels of the suite's tasks that leave out work which weak inputs would not miss."""

from __future__ import annotations

from edgekernelbench.suite import load_suite
from tests.adversarial.exploits import Exploit


def _canonical(id: str, *changes: tuple[str, str]) -> str:
    text = load_suite().workloads[id].canonical()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


_BAND = """
kernel dtw_distance[M=49, N=49, Dd=10, Q=16](a: f32[M, Dd], b: f32[Q, N, Dd]) -> (y: f32[Q]) {
  compute {
    let R = 12
    c[q: Q, i: M, k: 2*R + 1] = sum[d: Dd](abs(a[i, d] - edge(b[q, i - R + k, d])))
    each q: Q {
      seq i: M {
        seq k: 2*R + 1 {
          best = min(pad(D[i-1, k+1], inf), pad(D[i, k-1], inf), pad(D[i-1, k], inf))
          D[i, k] = (c[q, i, k] + (0 if i == 0 and k == R else best))
            if 0 <= i - R + k and i - R + k < N else inf
        }
      }
      y[q] = D[M-1, R]
    }
  }
}
"""

HONEST_RESAMPLE = """
kernel systematic_resample[L=2000](w: f32[L], u0: f32[1]) -> (idx: s32[L]) {
  compute {
    seq i: L { c[i] = pad(c[i-1], 0) + w[i] }
    first[i: L] = s32(ceil(c[i] * (L / c[L-1]) - u0[0]))
    hist[m: L] = sum[i: L where first[i] == m](1)
    seq m: L { n[m] = pad(n[m-1], 0) + hist[m] }
    idx[m] = min(n[m], L - 1)
  }
}
"""
"""In O(L): for each weight the first place that it is below, and how many there are up to each."""

SHORTCUTS: dict[str, tuple[str, Exploit]] = {
    "fewer iterations": ("riccati_recursion__01", Exploit(
        "an iteration that has converged long before it ends",
        _canonical("riccati_recursion__01", ("seq it: It", "seq it: 32"),
                   ("Ks[It-1", "Ks[31"), ("Pn[It-1", "Pn[31")), "wrong_result")),
    "near the diagonal": ("dtw_distance__01", Exploit(
        "paths that never leave the diagonal by far", _BAND, "wrong_result")),
    "weights in f16": ("lm_head_argmax__01", Exploit(
        "half of the bytes, for weights on a grid that f16 has, too",
        _canonical("lm_head_argmax__01", ("compute {", "compute {\n H: f16[v: V, c: C] = W[v, c]"),
                   ("sum[c: C](W[v, c]", "sum[c: C](H[v, c]")), "wrong_result")),
}  # fmt: skip
