# ruff: noqa: E501 (kernel texts and tables)
"""Recurrences over two axes, the waves that they may run as, and the nearest ones they may not."""

from __future__ import annotations

from dataclasses import dataclass

SHAPES = ((1, 1), (1, 13), (11, 1), (2, 2), (7, 23), (19, 16), (33, 5))
_NEARLY_SQUARE = ((1, 1), (2, 2), (7, 9), (19, 16))
"""For layouts by diagonals, which are small enough only there."""

_PLAIN = ("i, j", "i, vectorize j", "j, vectorize i", "parallel i, j")
_TILES = (
    "i by 4, j by 4, i, j", "parallel i by 4, j by 4, i, j", "parallel j by 3, i by 5, i, j",
    "i by 8, j by 8, i, vectorize j", "parallel i by 6, j by 6, j, vectorize i",
    "parallel i by 4, j by 9, i, vectorize j", "parallel i by 2, j by 16, j, vectorize i",
)  # fmt: skip
_LANELESS = ("i, j", "parallel i, j", *_TILES[:3])
_SKEWED = ("i, j", "j, vectorize i", "parallel i, j")


@dataclass(frozen=True)
class Case:
    """A program over sizes M and N.

    Attributes:
        stage: by which the loops are named.
        waves: that are legal.
        more: further schedule lines.
        memory: lines of a memory layer.
    """

    head: str
    body: str
    stage: str = "D"
    waves: tuple[str, ...] = (*_PLAIN, *_TILES)
    more: str = ""
    memory: str = ""
    shapes: tuple[tuple[int, int], ...] = SHAPES

    def text(self, wave: str, m: int, n: int) -> str:
        line = f"wave {self.stage} ({wave})" if wave else ""
        memory = f"  memory for cpu {{ {self.memory} }}\n" if self.memory else ""
        return (
            f"kernel k[M={m}, N={n}]{self.head} {{\n  compute {{ {self.body} }}\n"
            f"  schedule for cpu {{ {line}  {self.more} }}\n{memory}}}\n"
        )


_BEST = "min(pad(D[i-1, j], inf), pad(D[i, j-1], inf), pad(D[i-1, j-1], inf))"
_STEP = "(0 if i == 0 and j == 0 else %s)"

CASES = {
    "warping": Case("(a: f32[M], b: f32[N]) -> (y: f32)", (
        f"seq i: M {{ seq j: N {{ best = {_BEST}  D[i, j] = abs(a[i] - b[j]) + {_STEP % 'best'} }} }}  y = D[M-1, N-1]"
    )),
    "whole_matrix": Case("(a: f32[M], b: f32[N]) -> (D: f32[M, N])", (
        f"seq i: M {{ seq j: N {{ D[i, j] = abs(a[i] - b[j]) + {_STEP % _BEST} }} }}"
    )),
    "edit_distance": Case("(a: s32[M], b: s32[N]) -> (y: s32, e: s32[N])", (
        "seq i: M { seq j: N {"
        "  D[i, j] = min(pad(D[i-1, j], j + 1) + 1, pad(D[i, j-1], i + 1) + 1,"
        "      (D[i-1, j-1] if i > 0 and j > 0 else i + j) + (0 if a[i] == b[j] else 1)) } }"
        "  y = D[M-1, N-1]  e[j] = D[M-1, j]"
    )),
    "filter": Case("(x: f32[M, N], c: const f32[4]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { y[i, j] = x[i, j] + c[0] * pad(y[i-1, j], 0) * 0.25 + c[1] * pad(y[i, j-1], 0) * 0.25"
        "  + c[2] * pad(y[i-2, j-1], 1) * 0.125 + 0.125 * pad(y[i-1, j-3], 0) } }"
    ), "y"),
    "half": Case("(x: f16[M, N]) -> (y: f16[M, N], z: f16[N])", (
        "seq i: M { seq j: N { y[i, j] = f16(x[i, j]) + f16(pad(y[i-1, j], 0.5)) * 0.5 - f16(pad(y[i, j-1], 0)) * 0.25 } }"
        "  z[j] = y[M-1, j]"
    ), "y"),
    "bytes": Case("(x: u8[M, N]) -> (y: u8[M, N])", (
        "seq i: M { seq j: N { y[i, j] = u8((x[i, j] + pad(y[i-1, j], 9) + pad(y[i, j-1], 7)) // 3) } }"
    ), "y"),
    "chamfer": Case("(x: u8[M, N]) -> (d: s32[M, N])", (
        "seq i: M { seq j: N { f[i, j] = min(0 if x[i, j] > 9 else 1000, pad(f[i-1, j], 1000) + 3,"
        "  pad(f[i, j-1], 1000) + 3, pad(f[i-1, j-1], 1000) + 4, pad(f[i-1, j+1], 1000) + 4) } }"
        "  seq i: M reversed { seq j: N reversed { d[i, j] = min(f[i, j], pad(d[i+1, j], 1000) + 3,"
        "  pad(d[i, j+1], 1000) + 3, pad(d[i+1, j+1], 1000) + 4, pad(d[i+1, j-1], 1000) + 4) } }"
    ), "d", _SKEWED, "wave f (j, vectorize i)"),
    "knight": Case("(x: f32[M, N]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { y[i, j] = x[i, j] + 0.5 * pad(y[i-1, j+2], 0) - 0.25 * pad(y[i, j-1], 1) } }"
    ), "y", _SKEWED),
    "one_direction_reversed": Case("(x: f32[M, N]) -> (y: f32[M, N])", (
        "seq i: M reversed { seq j: N { y[i, j] = x[i, j] + 0.5 * pad(y[i+1, j], 0) - 0.25 * pad(y[i, j-1], 1) } }"
    ), "y"),
    "not_from_zero": Case("(x: f32[M+3, N+2]) -> (y: f32)", (
        "seq i: 3..M+3 { seq j: 2..N+2 reversed { D[i, j] = x[i, j] + 0.5 * pad(D[i-1, j], 0) - 0.25 * pad(D[i, j+1], 1) } }"
        "  y = D[M+2, 2]"
    )),
    "running_sums": Case("(x: s32[M, N]) -> (y: s32[M, N])", (
        "seq i: M { seq j: N { r[j] = x[i, j] + pad(r[j-1], 0)  y[i, j] = r[j] + pad(y[i-1, j], 0) } }"
    ), "y"),
    "several_histories": Case("(x: f32[M, N]) -> (y: f32[M, N], z: f32)", (
        "seq i: M { seq j: N {"
        "  p[i, j] = max(pad(D[i-1, j], -9) - 1, pad(p[i-1, j], -9) - 0.5)"
        "  q[i, j] = max(pad(D[i, j-1], -9) - 1, pad(q[i, j-1], -9) - 0.5)"
        "  s = pad(D[i-1, j-1], 0) + x[i, j]"
        "  D[i, j] = max(0, s, p[i, j], q[i, j])  y[i, j] = D[i, j] * 2 + q[i, j] } }  z = p[M-1, N-1]"
    )),
    "channels": Case("(x: f32[M, N, 5], w: const f32[5]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { h[i, j, c: 5] = x[i, j, c] + w[c] * 0.25 * (pad(h[i-1, j, c], 0) + pad(h[i, j-1, c], 0))"
        "  y[i, j] = sum[c: 5](h[i, j, c] * w[c]) } }"
    ), "h", _LANELESS, "loops h (vectorize c)", "cache w in y.c"),
    "many_channels": Case("(x: f32[M, N]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { g[c: 20] = x[i, j] * c + pad(h[i-1, j, c], 1) * 0.5"
        "  h[i, j, c: 20] = tanh(g[c] + pad(h[i, j-1, 19 - c], 0) * 0.25)  y[i, j] = sum[c: 20](h[i, j, c]) } }"
    ), "h", _LANELESS, "loops h (vectorize c)  loops g (c)"),
    "sweeps": Case("(x: f32[M, N]) -> (y: f32[M, N])", (
        "seq t: 3 { seq i: M { seq j: N { u[t, i, j] = 0.25 * (pad(u[t, i-1, j], 0) + pad(u[t, i, j-1], 0)"
        "  + pad(u[t-1, i+1, j], 0) + pad(u[t-1, i, j+1], 0)) + x[i, j] } } }  y[i, j] = u[2, i, j]"
    ), "u"),
    "batches": Case("(a: f32[3, M], b: f32[N]) -> (y: f32[3])", (
        "c[q: 3, i: M, j: N] = abs(a[q, i] - b[j])"
        f"  each q: 3 {{ seq i: M {{ seq j: N {{ best = {_BEST}  D[i, j] = c[q, i, j] + {_STEP % 'best'} }} }}  y[q] = D[M-1, N-1] }}"
    ), memory="layout c [q, i, j] -> [q, i + j, j]", shapes=_NEARLY_SQUARE),
    "a_stated_layout": Case("(x: f32[M, N]) -> (y: f32)", (
        "seq i: M { seq j: N { D[i, j] = x[i, j] + 0.5 * pad(D[i-1, j], 0) - 0.25 * pad(D[i, j-1], 1) } }  y = D[M-1, 0]"
    ), memory="layout D [i, j] -> [i, j // 4, j % 4]  layout x [i, j] -> [i + j, j]", shapes=_NEARLY_SQUARE),
    "read_by_rows": Case("(x: f32[M, N]) -> (y: f32[N], z: f32[M])", (
        "seq i: M { seq j: N { D[i, j] = x[i, j] + 0.5 * pad(D[i-1, j], 0) - 0.25 * pad(D[i, j-1], 1) } }"
        "  y[j] = D[M-1, j] * 2  z[i] = sum[j: N](D[i, j])"
    )),
    "by_data": Case("(x: f32[M, N], g: s32[N]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { y[i, j] = x[i, j] + 0.5 * pad(y[i-1, j - clamp(g[j], 0, 3)], 0) - 0.25 * pad(y[i, j - 1 - abs(clamp(g[j], -2, 2))], 1) } }"
    ), "y"),
    "prefix_of_the_row": Case("(x: f32[M, N]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { s = sum[k: 0..j](D[i, k])  t = max[k: 0..j](pad(D[i-1, k], 0))"
        "  D[i, j] = x[i, j] - s * 0.125 + t * 0.25  y[i, j] = D[i, j] } }"
    ), "D", ("i, j", "parallel i by 4, j by 4, i, j")),
    "constants_only": Case("(w: const f32[M, N], x: f32[N]) -> (y: f32[N])", (
        "seq i: M { seq j: N { D[i, j] = w[i, j] + 0.5 * pad(D[i-1, j], 0) - 0.25 * pad(D[i, j-1], 1) } }"
        "  y[j] = x[j] * D[M-1, j]"
    )),
    "loops_inside": Case("(x: f32[M, N, 4]) -> (y: f32[M, N])", (
        "seq i: M { seq j: N { seq k: 4 { h[i, j, k] = x[i, j, k] + 0.5 * pad(h[i, j, k-1], 0) - 0.25 * pad(h[i-1, j, k], 0) }"
        "  y[i, j] = h[i, j, 3] + pad(y[i, j-1], 0) * 0.5 } }"
    ), "y", _LANELESS),
}  # fmt: skip
