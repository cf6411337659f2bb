"""Programs that repeat one construct often: for time and memory up to the end of verification."""

from __future__ import annotations

import random
from collections.abc import Callable

_HEAD = (
    "kernel k[N=16](x: f32[N], z: f32[N, N], idx: s32[N], b: u8[N]) -> (y: f32[N]) {{\n"
    "  compute {{\n{body}\n  }}\n}}\n"
)
_INTEGERS = ("i", "idx[i]", "b[i]", "i + 1", "2*i - 3", "idx[i] - i", "b[i] * 3")


def heavy(seed: int) -> str:
    """One construct, repeated from a few to some hundred times."""
    rng = random.Random(f"heavy {seed}")
    return rng.choice(_FAMILIES)(rng, rng.choice((3, 8, 20, 60, 200)))


def _program(*lines: str, before: str = "") -> str:
    return before + _HEAD.format(body="\n".join(f"    {line}" for line in lines))


def _comparison(rng: random.Random) -> str:
    a, b = rng.choice(_INTEGERS), rng.choice((*_INTEGERS, "0", "7", "N - 1"))
    return f"{a} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {b}"


def _conditions(rng: random.Random, n: int) -> str:
    words = [_comparison(rng) for _ in range(n)]
    joined = words[0]
    for word in words[1:]:
        joined = f"({joined}) {rng.choice(('and', 'or'))} {rng.choice(('', 'not '))}({word})"
        if joined.count("(") > 60:  # nesting has a bound of its own
            joined = word
    return _program(f"y[i] = x[idx[i]] if {joined} else 0")


def _flat_conditions(rng: random.Random, n: int) -> str:
    word = rng.choice((" and ", " or "))
    joined = word.join(_comparison(rng) for _ in range(n))
    return _program(f"y[i] = x[idx[i]] if {joined} else 0")


def _branches(rng: random.Random, n: int) -> str:
    text = "x[clamp(idx[i], 0, N - 1)]"
    for _ in range(min(n, 40)):
        text = f"(x[idx[i]] if {_comparison(rng)} else {text})"
    return _program(f"y[i] = {text}")


def _lets(rng: random.Random, n: int) -> str:
    lines = ["let v0 = idx[i]"]
    for k in range(1, n):
        a, b = (f"v{rng.randrange(max(0, k - 3), k)}" for _ in range(2))
        lines.append(
            f"let v{k} = {rng.choice(('min', 'max'))}({a} % 9 + {b} % 5, {rng.choice('7i')})"
        )
    return _program(f"y[i] = {{ {' '.join(lines)} return x[clamp(v{n - 1}, 0, N - 1)] }}")


def _macros(rng: random.Random, n: int) -> str:
    lines = ["def f0(a) = a * 0.5"]
    for k in range(1, n):
        lines.append(f"def f{k}(a) = f{k - 1}(a) + f{k - 1}(a + 1)")
    return _program(f"y[i] = f{n - 1}(x[i])", before="\n".join(lines) + "\n")


def _templates(rng: random.Random, n: int) -> str:
    parts = ["template t0(u) -> (o) { o[a: dim(u, 0)] = u[a] * 0.5 }"]
    for k in range(1, n):
        calls = "p = t{0}(u)  q = t{0}(p)".format(k - 1)
        parts.append(f"template t{k}(u) -> (o) {{ {calls}  o[a: dim(u, 0)] = p[a] + q[a] }}")
    return _program(f"w = t{n - 1}(x)", "y[i] = w[i]", before="\n".join(parts) + "\n")


def _stages(rng: random.Random, n: int) -> str:
    lines = ["s0[i: N] = x[i]", "s1[i: N] = x[i] + s0[i]"]
    for k in range(2, n):
        lines.append(f"s{k}[i: N] = s{k - 1}[i] + pad(s{k - 2}[i - {rng.randrange(3)}], 0)")
    return _program(*lines, f"y[i] = s{max(n - 1, 1)}[i]")


def _histories(rng: random.Random, n: int) -> str:
    lines = [
        f"h{k}[t, i: N] = pad(h{rng.randrange(n)}[t - {rng.choice((1, 1, 2))}, i], 0) * 0.5 + x[i]"
        for k in range(n)
    ]
    return _program("seq t: N {", *lines, "}", "y[i] = h0[N - 1, i]")


def _nested(rng: random.Random, n: int) -> str:
    n = min(n, 14)
    heads = [f"{rng.choice(('seq', 'each'))} t{k}: {rng.choice((1, 2))} {{" for k in range(n)]
    index = [f"t{k}" for k in range(n)]
    back = [f"{name} - 1" if rng.random() < 0.3 else name for name in index]
    line = f"h[{', '.join(index)}] = pad(h[{', '.join(back)}], 0) + 1"
    return _program(*heads, line, *("}" * n), "y[i] = x[i]")


def _arithmetic(rng: random.Random, n: int) -> str:
    text = "idx[i]"
    for _ in range(min(n, 60)):
        sign = rng.choice(("+", "-", "*", "//", "%"))
        other = str(rng.randrange(1, 9)) if sign in ("//", "%") else rng.choice(("i", "b[i]", "3"))
        text = f"({text} {sign} {other})"
    return _program(f"y[i] = {rng.choice(('pad(x[{0}], 0)', 'x[({0}) % N]')).format(text)}")


def _clamps(rng: random.Random, n: int) -> str:
    text = "idx[i]"
    for _ in range(min(n, 60)):
        word = rng.choice(("min", "max"))
        text = f"{word}({text}, {rng.choice(('i', 'b[i]', '0', '15', 'N - 1 - i'))})"
    return _program(f"y[i] = x[clamp({text}, 0, N - 1)] + x[{text}]")


def _axes(rng: random.Random, n: int) -> str:
    n = min(n, 10)
    parts, body = ["k0: 0..i + 1"], ["k0"]
    for k in range(1, n):
        parts.append(f"k{k}: {rng.choice((f'0..k{k - 1} + 1', '2', f'k{k - 1}..N'))}")
        body.append(f"k{k}")
    spot = " + ".join(body)
    return _program(f"y[i] = sum[{', '.join(parts)}](pad(x[{spot}], 0) + z[k0, k{n - 1} % N])")


_FAMILIES: tuple[Callable[[random.Random, int], str], ...] = (
    _conditions, _flat_conditions, _branches, _lets, _macros, _templates, _stages, _histories,
    _nested, _arithmetic, _clamps, _axes,
)  # fmt: skip
