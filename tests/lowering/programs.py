# ruff: noqa: E501 (kernel texts and tables)
"""Small programs that between them use every form the lowering has to handle."""

PROGRAMS = {
    "matmul": """kernel k[M=11, K=7, N=18](X: f32[M, K], W: const f32[K, N], b: f32[N]) -> (Y: f32[M, N]) {
  compute {
    acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])
    Y[i, j] = relu(acc[i, j] + b[j])
  }
}""",
    "softmax": """kernel k[R=5, C=35](X: f32[R, C]) -> (Y: f32[R, C]) {
  compute {
    m[r: R] = max[c: C](X[r, c])
    e[r: R, c: C] = exp(X[r, c] - m[r])
    s[r: R] = sum[c: C](e[r, c])
    Y[r, c] = e[r, c] * (1 / s[r])
  }
}""",
    "conv": """kernel k[C=2, H=6, Wd=7, F=5](X: f32[C, H, Wd], W: const f32[F, C, 3, 3]) -> (Y: f32[F, H, Wd]) {
  compute {
    xp[c: C, h: H + 2, w: Wd + 2] = pad(X[c, h - 1, w - 1], 0)
    acc[f: F, h: H, w: Wd] = sum[c: C, r: 3, s: 3](xp[c, h + r, w + s] * W[f, c, r, s])
    Y[f, h, w] = relu(acc[f, h, w])
  }
}""",
    "conv_pool": """kernel k[C=2, H=8, F=4](X: f32[C, H, H], W: const f32[F, C, 3, 3], V: f32[3, F]) -> (Y: f32[3, H // 2, H // 2]) {
  compute {
    a[f: F, h: H, w: H] = sum[c: C, r: 3, s: 3](pad(X[c, h + r - 1, w + s - 1], 0) * W[f, c, r, s])
    p[f: F, h: H // 2, w: H // 2] = max[r: 2, s: 2](a[f, 2*h + r, 2*w + s])
    q[f: F, h: H // 2, w: H // 2] = relu(p[f, h, w])
    Y[g, h, w] = sum[f: F](V[g, f] * q[f, h, w])
  }
}""",
    "attention": """kernel k[L=9, D=6](Q: f32[L, D], K: f32[L, D], V: f32[L, D]) -> (O: f32[L, D]) {
  compute {
    kt[d: D, j: L] = K[j, d]
    sc[i: L, j: L] = sum[d: D](Q[i, d] * kt[d, j])
    m[i: L] = max[j: L](sc[i, j])
    p[i: L, j: L] = exp(sc[i, j] - m[i])
    s[i: L] = sum[j: L](p[i, j])
    O[i, d] = sum[j: L](p[i, j] * V[j, d]) / s[i]
  }
}""",
    "arg": """kernel k[M=6, C=21](X: f32[M, C], n: s32[M]) -> (I: s32[M], J: s32[M], T: f32[M]) {
  compute {
    I[m] = argmax[c: C](X[m, c])
    J[m] = argmin[c: C where c >= clamp(n[m], 0, 3)](X[m, c] * X[m, c])
    T[m] = edge(X[m, I[m]]) + edge(X[m, J[m]])
  }
}""",
    "ragged": """kernel k[M=9, E=12](ptr: s32[M+1], col: s32[E], v: f32[E], x: f32[M]) -> (y: f32[M], z: f32[M]) {
  compute {
    y[i] = sum[e: clamp(ptr[i], 0, E) .. clamp(ptr[i+1], 0, E)](v[e] * edge(x[col[e]]))
    z[i] = sum[k: 0..i+1 where k % 2 == 0](x[k] * x[i - k])
  }
}""",
    "scatter": """kernel k[L=14, V=6, D=9](idx: s32[L], x: f32[L, D], c: f32[V, D]) -> (h: s32[V], a: f32[V, D], u: f32[V, D]) {
  compute {
    h[v] = sum[p: L where idx[p] == v](1)
    a[v, d] = sum[p: L where idx[p] == v and p % 3 != 0](x[p, d])
    src[v: V] = max[p: L where idx[p] == v](p)
    u[v, d] = pad(x[src[v], d], c[v, d])
  }
}""",
    "lstm": """kernel k[L=4, I=3, H=5](x: f32[L, I], Wx: const f32[4*H, I], Wh: const f32[4*H, H]) -> (h: f32[L, H]) {
  compute {
    zx[t: L, g: 4*H] = sum[k: I](Wx[g, k] * x[t, k])
    seq t: L {
      z[g: 4*H] = zx[t, g] + sum[k: H](Wh[g, k] * pad(h[t-1, k], 0))
      c[t, j: H] = sigmoid(z[H + j]) * pad(c[t-1, j], 0) + sigmoid(z[j]) * tanh(z[2*H + j])
      h[t, j: H] = sigmoid(z[3*H + j]) * tanh(c[t, j])
    }
  }
}""",
    "scan": """kernel k[B=3, L=6, N=5](x: f32[B, L, N], g: f32[B, L]) -> (y: f32[B, L], last: f32[B, N]) {
  compute {
    each b: B { seq t: L reversed {
      u[n: N] = x[b, t, n] * g[b, t]
      h[b, t, n: N] = u[n] + 0.5 * pad(h[b, t+1, n], 1.0) - 0.1 * pad(h[b, t+2, N - 1 - n], 0)
      y[b, t] = sum[n: N](h[b, t, n] * u[n])
    } }
    last[b, n] = h[b, 0, n]
  }
}""",
    "integers": """kernel k[M=7, K=9, N=10](X: s8[M, K], W: const s8[K, N], z: s32[1], sc: const f32[N]) -> (Y: s8[M, N], S: u32[M]) {
  compute {
    xi[m: M, k: K] = X[m, k] - z[0]
    acc[m: M, n: N] = sum[k: K](xi[m, k] * W[k, n])
    Y[m, n] = s8(clip(rne(acc[m, n] * sc[n]) + z[0], -128, 127))
    S[m] = sum[k: K](u32(X[m, k]) * 2654435761)
  }
}""",
    "bytes": """kernel k[M=7, K=18, N=21](X: s8[M, K], W: const s8[K, N]) -> (Y: s32[M, N]) {
  compute {
    q: s8[m: M, k: K] = s8(X[m, k] * 3)
    Y[m, n] = sum[k: K](q[m, k] * W[k, n])
  }
}""",
    "byte_kinds": """kernel k[M=7, K=18, N=21](U: u8[M, K], W: s8[K, N], V: const u8[N, K]) -> (Y: s32[M, N], Z: s32[M, N]) {
  compute {
    Y[m, n] = sum[k: K](U[m, k] * V[n, k])
    Z[m, n] = sum[k: K](W[k, n] * U[m, k])
  }
}""",
    "byte_loop": """kernel k[T=5, C=8, N=12](x: s8[T + 2, C], w: s8[3, C, N]) -> (y: s32[T, N]) {
  compute {
    seq t: T {
      h: s8[c: C] = s8(x[t, c] + pad(y[t-1, 0], 0) % 5)
      a[n: N] = sum[r: 3, c: C](pad(x[t + r, c], 0) * w[r, c, n])
      y[t, n] = a[n] + sum[c: C](h[c] * w[t % 3, c, n])
    }
  }
}""",
    "half": """kernel k[M=6, K=20, N=9](X: f16[M, K], W: const f16[K, N]) -> (Y: f16[M, N], Z: f16[M]) {
  compute {
    a[m: M, n: N] = sum[k: K](X[m, k] * W[k, n])
    b: f16[m: M, n: N] = a[m, n] * 0.5
    Y[m, n] = b[m, n] + 1
    Z[m] = max[n: N](b[m, n])
  }
}""",
    "half_combiner": """combiner ends((lo, hi, n), (lo2, hi2, m)) init (inf, -inf, 0) = (min(lo, lo2), max(hi, hi2), n + m)
kernel k[M=5, K=21](X: f16[M, K]) -> (A: f16[M], B: f32[M], C: s32[M]) {
  compute {
    a[m: M], b[m: M], C[m] = ends[k: K](f16(X[m, k]) * 0.75, f16(X[m, k]) / 3, 1)
    A[m] = f16(a[m]) + 1
    B[m] = b[m]
  }
}""",
    "half_arithmetic": """kernel k[M=6, K=20, N=9](X: f16[M, K], W: const f16[K, N], v: f32[N], idx: s32[K]) -> (Y: f16[M, N], P: f16[M], Z: f32[M], A: s32[M], S: f16[N]) {
  compute {
    w[k: K, n: N] = f16(W[k, n]) * 0.5
    a[m: M, n: N] = sum[k: K](f16(X[m, k]) * f16(w[k, n]))
    b[m: M, n: N] = f16(a[m, n]) + f16(v[n])
    Y[m, n] = b[m, n] * 2 + 1
    P[m] = prod[n: N](f16(0.1) + f16(W[m, n]) * 0.75)
    Z[m] = max[k: K](f16(X[m, k]) / 3)
    A[m] = argmax[k: K](f16(X[m, k]) * f16(X[m, k]))
    S[n] = sum[k: K where clamp(idx[k], 0, N-1) == n](f16(X[0, k]))
  }
}""",
    "rounding": """kernel k[M=5, K=19](X: f32[M, K], w: f32[K], u: const f32[K]) -> (Y: f32[M, K], s: f32[M], e: f32[M, K]) {
  compute {
    p[m: M, k: K] = X[m, k] * w[k]
    Y[m, k] = nofma(p[m, k] + u[k]) + fma(X[m, k], w[k], fast_exp(u[k]))
    s[m] = sum[k: K](nofma(p[m, k]))
    e[m, k] = fast_tanh(X[m, k]) * fast_sigmoid(w[k]) + fast_erf(nofma({ let t = p[m, k] * 2  return t + 1 }))
  }
}""",
    "shapes": """kernel k[H=5, W=6, R=2](t: f32[R*R, H, W], b: f32[R*R]) -> (y: f32[H*R, W*R], n: f32[H, W], m: bool[H]) {
  compute {
    s[c: R*R, i: H, j: W] = t[c, i, j] * 2 + b[c]
    y[i, j] = s[(i % R)*R + j % R, i // R, j // R]
    n[i, j] = edge(t[0, i - 1, j + 1]) + (t[1, i, j] if j < 3 else pad(t[2, i + 2, j - 3], 7))
    m[i] = any[j: W](t[0, i, j] > 1.2) and all[j: W](t[1, i, j] > -9)
  }
}""",
    "layers": """template fc(x, w) -> (o) { o[n: dim(w, 0)] = tanh(sum[k: dim(w, 1)](w[n, k] * x[k])) }
kernel k[N=6, L=3](x: f32[N], w: const f32[L, N, N], v: const f32[N, N]) -> (y: f32[N]) {
  compute {
    vw[a: N, b: N] = sum[c: N](v[a, c] * v[c, b])
    seq l: L {
      u[i: N] = pad(z[l-1, i], x[i])
      f = fc(u, w[l])
      z[l, i: N] = u[i] + f[i]
    }
    y[i] = sum[k: N](vw[i, k] * z[L-1, k])
  }
}""",
    "online": """combiner lse((m, s), (n, t)) init (-1e30, 0) = {
  let h = max(m, n)
  return (h, s * exp(m - h) + t * exp(n - h))
}
kernel k[R=5, C=22](x: f32[R, C], t: f32[R]) -> (y: f32[R, C], z: f32[R]) {
  compute {
    e[r: R, c: C] = tanh(x[r, c]) * t[r]
    m[r: R], s[r: R] = lse[c: C](e[r, c], 1)
    z[r] = m[r] + log(s[r])
    y[r, c] = exp(e[r, c] - m[r]) / s[r]
  }
}""",
    "decode": """combiner flash((m, s, o), (n, t, p)) init (-1e30, 0, 0) = {
  let h = max(m, n)
  let (a, b) = (exp(m - h), exp(n - h))
  return (h, s * a + t * b, o * a + p * b)
}
combiner best((v, i), (w, j)) init (-inf, 2147483647) = (
  max(v, w), i if v > w or (v == w and i < j) else j)
kernel k[L=22, D=5](q: f32[D], K: f32[L, D], v: f32[L, D], n: s32[1]) -> (o: f32[D], b: f32, at: s32) {
  compute {
    sc[l: L] = sum[d: D](q[d] * K[l, d])
    m[d: D], s[d: D], a[d: D] = flash[l: L where l < n[0] + 9](sc[l], 1, v[l, d])
    o[d] = a[d] / s[d]
    b, at = best[l: L, d: D](sc[l] * v[l, d], l * D + d)
  }
}""",
    "tuple_history": """combiner both((a, b), (c, d)) init (0, -inf) = (a + c, max(b, d))
kernel k[L=4, C=10](x: f32[L, C]) -> (h: f32[L, C], g: f32[L]) {
  compute {
    seq t: L {
      e[c: C] = x[t, c] + 0.5 * pad(h[t-1, c], 0)
      u[t], g[t] = both[c: C](e[c], abs(e[c]))
      h[t, c] = e[c] / (1 + abs(u[t])) + pad(g[t-1], 0.5)
    }
  }
}""",
    "grid": """kernel k[M=7, N=21](a: f32[M], b: f32[N], x: f32[M, N]) -> (y: f32, D: f32[M, N], s: s32[M, N]) {
  compute {
    seq i: M { seq j: N {
      best = min(pad(D[i-1, j], 9), pad(D[i, j-1], 9), pad(D[i-1, j-1], 0))
      D[i, j] = abs(a[i] - b[j]) + best * 0.5
    } }
    seq u: M reversed { seq v: N {
      r[v] = (x[u, v] > 0) + pad(r[v-1], 0)
      s[u, v] = r[v] + pad(s[u+1, v], 0) - pad(s[u+2, v+1], 1) // 2
    } }
    y = D[M-1, N-1] + s[0, N-1]
  }
}""",
    "grid_of_vectors": """kernel k[B=2, M=6, N=5, C=9](x: f32[B, M, N, C], w: const f32[C]) -> (y: f32[B, M, N]) {
  compute {
    each b: B { seq t: 2 { seq i: M { seq j: N {
      g[c: C] = x[b, i, j, c] + 0.25 * pad(h[t-1, i, j, c], 1)
      h[t, i, j, c: C] = g[c] + w[c] * (pad(h[t, i-1, j, c], 0) + pad(h[t, i, j-1, C - 1 - c], 0)) * 0.25
      e[t, i, j] = sum[c: C](h[t, i, j, c] * w[c])
    } } }
      y[b, i: M, j: N] = e[1, i, j]
    }
  }
}""",
}
