"""Verification: accepted programs are safe, unsafe ones are refused at the right place."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.diagnostics import locate
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.verify import verify
from tests.ir import well_formed
from tests.ir.checked_run import Machine, Unsafe

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = sorted([*DATA.glob("examples/*.ekir"), *DATA.glob("examples-layered/*.ekir")])


def random_inputs(program: core.Program, seed: int) -> dict[str, dict]:
    """Data of every kind, extremes included."""
    draw = random.Random(seed)
    out: dict[str, dict] = {}
    for tensor in program.inputs:
        values = {}
        for at in core_box(tensor.shape):
            if tensor.dtype.is_float:
                values[at] = draw.choice((0.0, 1.5, -2.25, 1e30, -1e30, float("inf"), float("nan")))
            else:
                low, high = tensor.dtype.int_range
                pool = [v for v in (0, 1, 2, 3, -1, low, high) if low <= v <= high]
                values[at] = draw.choice(pool)
        out[tensor.name] = values
    return out


def core_box(shape: tuple[int, ...]):
    return itertools.product(*map(range, shape))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_clean(path: Path) -> None:
    kernel = parse(path.read_text()).kernel
    assert kernel is not None
    result = elaborate(kernel)
    assert result.program is not None, result.diagnostics
    well_formed.check(result.program)
    assert verify(result.program) == ()


SMALL = [p for p in EXAMPLES if p.stat().st_size < 2500 and "layered" not in str(p)]
TOO_BIG = {"espcn_super_resolution", "conv2d_winograd", "ds_cnn_kws"}


@pytest.mark.parametrize("path", [p for p in SMALL if p.stem not in TOO_BIG], ids=lambda p: p.stem)
def test_examples_run_safely_on_hostile_data(path: Path) -> None:
    kernel = parse(path.read_text()).kernel
    assert kernel is not None
    program = elaborate(kernel).program
    assert program is not None
    machine = Machine()
    machine.run(program, random_inputs(program, 1))
    assert machine.reads > 0


# ---------------------------------------------------------------- refusals
HEADER = (
    "kernel k[M=4, N=6](x: f32[M, N], idx: s32[M], b: u8[M], u: u32[M], f: f32[M])"
    " -> (y: f32[M, N]) {{ compute {{\n{body}\n}} }}\n"
)


def check(body: str):
    text = HEADER.format(body=body)
    return text, check_text(text)


def found(body: str) -> list[tuple[str, int, int, str]]:
    text, checked = check(body)
    out = []
    for item in checked.diagnostics:
        if item.severity == "error":
            line, column, _ = locate(text, item.span.start) if item.span else (0, 0, "")
            text = " | ".join((item.message, *item.help, *item.notes))
            out.append((item.rule.code, line, column, text))
    return out


REFUSED: list[tuple[str, str, int, int, str]] = [
    # bounds
    ("y[i, j] = x[i, j - 1]", "E300", 2, 11, "it is -1 for j = 0"),
    ("y[i, j] = x[i, j + 1]", "E300", 2, 11, "it is 6 for j = 5"),
    ("y[i, j] = x[i + j, j]", "E300", 2, 11, "0..3, the range of `x` (dimension 0)"),
    ("y[i, j] = x[j, j]", "E300", 2, 11, "`edge(x[j, j])`"),
    ("y[i, j] = x[i, 2*j - 5]", "E300", 2, 11, "x[i, 2 * j - 5]"),
    ("y[i, j] = x[i, j - 1] * (j > 0)", "E300", 2, 11, "the factor `(j > 0)` is no guard"),
    ("y[i, j] = x[idx[i], j]", "E300", 2, 11, "`edge(x[idx[i], j])`"),
    ("y[i, j] = x[max(idx[i], 0), j]", "E300", 2, 11, "max(idx[i], 0)"),
    ("y[i, j] = x[b[i], j]", "E300", 2, 11, "it is 255 for b[i] = 255"),
    ("y[i, j] = x[s32(f[i]), j]", "E300", 2, 11, "s32(f[i])"),
    ("y[i, j] = x[u[i], j]", "E300", 2, 11, "u[i]"),
    ("y[i, j] = x[u[i] - 1, j] if u[i] < 5 else 0", "E300", 2, 11, "4294967295 for u[i] = 0"),
    ("y[i, j] = x[i - 1, j] if i >= 0 else 0", "E300", 2, 11, "-1 for i = 0"),
    ("y[i, j] = x[i, j] if i < 2 else x[i + 1, j]", "E300", 2, 33, "it is 4 for i = 3"),
    ("y[i, j] = x[i - 1, j] if i > 0 or j > 0 else 0", "E300", 2, 11, "-1 for i = 0"),
    ("y[i, j] = x[i - 1, j] if not (i == 3) else 0", "E300", 2, 11, "-1 for i = 0"),
    ("y[i, j] = x[i - 1, j] if f[i] > 0 else 0", "E300", 2, 11, "-1"),
    ("y[i, j] = sum[p: 0..j](x[i, p - 1])", "E300", 2, 24, "p - 1"),
    ("y[i, j] = sum[p: 0..j+1](x[i, p + 1])", "E300", 2, 26, "p + 1"),
    ("y[i, j] = sum[p: N where p != 3](x[i, p - 1])", "E300", 2, 34, "p - 1"),
    ("y[i, j] = sum[p: 1..M](sum[q: N](x[p - 1, q]))", "E302", 2, 34, "only where"),
    ("y[i, j] = x[(i + 1) % 5, j]", "E300", 2, 11, "(i + 1) % 5"),
    ("y[i, j] = x[i ^ 4, j]", "E300", 2, 11, "i ^ 4"),
    ("y[i, j] = x[i | 4, j]", "E300", 2, 11, "i | 4"),
    ("y[i, j] = { let p = i - 1  return x[p, j] }", "E300", 2, 35, "p"),
    ("y[i, j] = { let v = x[i - 1, j]  return v if i > 0 else 0 }", "E300", 2, 21, "-1"),
    ("table T: s32[2] = [0, 4]\ny[i, j] = x[T[i % 2], j]", "E300", 3, 11, "it is 4"),
    ("a = argmax[p: M, q: N](x[p, q])\ny[i, j] = x[i, a]", "E300", 3, 11, "last axis is `p % 6`"),
    (
        "a[i: M] = argmax[p: N where x[i, p] > 0](x[i, p])\ny[i, j] = x[i, a[i]]",
        "E300", 3, 11, "yields -1 where its `where`",
    ),
    ("seq t: M { h[t] = pad(h[t+1], 0) + f[t] }\ny[i, j] = h[i]", "E321", 2, 23, "reversed {`"),
    # overflow
    ("y[i, j] = x[min(abs(idx[i]), 3), j]", "E301", 2, 11, "`abs(idx[i])` may overflow s32"),
    ("y[i, j] = x[clamp(idx[i] * idx[i], 0, 3), j]", "E301", 2, 11, "may overflow s32"),
    ("y[i, j] = x[clamp(idx[0] + idx[1], 0, 3), j]", "E301", 2, 11, "idx[0] + idx[1]"),
    ("y[i, j] = x[(idx[i] * 5) % M, j]", "E301", 2, 11, "idx[i] * 5"),
    ("y[i, j] = x[(idx[i] << 3) & 3, j]", "E301", 2, 11, "idx[i] << 3"),
    ("y[i, j] = x[(-idx[i]) & 3, j]", "E301", 2, 11, "-idx[i]"),
    ("y[i, j] = x[2*idx[i], j] if 0 <= 2*idx[i] < M else 0", "E301", 2, 11, "2 * idx[i]"),
    ("y[i, j] = x[i, j] if idx[i] > j else x[s32(idx[i] > j) + i, j]", "E300", 2, 38, "+ i"),
    # reductions inside conditions
    ("y[i, j] = sum[p: N](x[i - 1, p]) if i > 0 else 0", "E302", 2, 21, "only where `i > 0` holds"),
    ("y[i, j] = 0 if i == 0 else sum[p: N](x[i - 1, p])", "E302", 2, 38, "pad(x[i - 1, p], 0)"),
    (
        "y[i, j] = { let v = x[i - 1, j]  return sum[p: N](v * x[i, p]) } if i > 0 else 0",
        "E302", 2, 21, "only where",
    ),
    # divisors
    ("y[i, j] = j // i", "E310", 2, 11, "it is 0 for i = 0"),
    ("y[i, j] = j % idx[i]", "E310", 2, 11, "`idx[i]` is not provably positive"),
    ("y[i, j] = j // 0", "E310", 2, 11, "`//` by 0"),
    ("y[i, j] = j % -3", "E310", 2, 11, "`%` by -3"),
    ("y[i, j] = j // (i - 1) if i > 0 else 0", "E310", 2, 11, "max(i - 1, 1)"),
    ("y[i, j] = (i + j) % j", "E310", 2, 11, "`(i + j) % max(j, 1)`"),
    # loops
    ("seq t: M { h[t] = h[t-1] + f[t] }\ny[i, j] = h[i]", "E300", 2, 19, "pad(h[t - 1], initial)"),
    ("seq t: M { h[t] = pad(h[t+1], 0.0) }\ny[i, j] = h[i]", "E321", 2, 23, "runs upwards"),
    ("seq t: M reversed { h[t] = pad(h[t-1], 0.0) }\ny[i, j] = h[i]", "E321", 2, 32, "downwards"),
    ("seq t: M { h[t] = pad(h[t], 0.0) }\ny[i, j] = h[i]", "E321", 2, 23, "reads itself"),
    ("seq t: M { h[t] = pad(h[idx[t]], 0.0) }\ny[i, j] = h[i]", "E321", 2, 23, "reads itself"),
    ("each t: M { h[t] = pad(h[t-1], 0.0) }\ny[i, j] = h[i]", "E321", 2, 24, "use `seq`"),
    ("seq t: M { a[t] = b2[t]  b2[t] = f[t] }\ny[i, j] = a[i]", "E321", 2, 19, "later in the text"),
    ("seq t: M { z[j: N] = x[t, j] }\ny[i, j] = z[j]", "E320", 3, 11, "`z[t, j] = ...`"),
    (
        "seq t: M { seq s: N { a = f[t] }  h[t] = a }\ny[i, j] = h[i]",
        "E320", 2, 42, "one iteration of `seq s`",
    ),
    ("seq t: M { seq s: N { h[t] = f[t] } }\ny[i, j] = h[i]", "E322", 2, 23, "not by `s`"),
    ("seq t: 1..M { h[t] = f[t] }\ny[i, j] = h[i]", "E300", 3, 11, "1..3, the range of `h`"),
    (
        "seq t: M { seq s: N { h[t, s] = pad(h[t, s+1], 0.0) } }\ny[i, j] = h[i, j]",
        "E321", 2, 37, "reads itself",
    ),
    (
        "each t: M { seq s: N { h[t, s] = pad(h[t-1, s-1], 0.0) } }\ny[i, j] = h[i, j]",
        "E321", 2, 38, "reads itself",
    ),
    (
        "seq t: M { seq s: N { h[t, s] = pad(h[t, s-1], 0.0) }  g[t] = h[t+1, 0] }\ny[i, j] = g[i]",
        "E321", 2, 63, "this or an earlier iteration",
    ),
    # outputs
    ("seq t: M { y[i, j] = x[t, j] }", "E330", 2, 12, "not indexed by `t`"),
    ("seq t: 1..M { y[t, j] = x[t, j] }", "E330", 2, 15, "not written for `t` below 1"),
]  # fmt: skip


@pytest.mark.parametrize("body, code, line, column, part", REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(body: str, code: str, line: int, column: int, part: str) -> None:
    items = found(body)
    assert [i[:3] for i in items if i[0] == code] == [(code, line, column)], items
    assert len(items) == 1
    assert part in items[0][3]


ACCEPTED = [
    "y[i, j] = pad(x[i - 1, j + 1], 0)",
    "y[i, j] = edge(x[idx[i], j])",
    "y[i, j] = edge(x[idx[i] + 1, j - idx[i]])",
    "y[i, j] = pad(x[3*idx[i] - i, j], 0)",
    "y[i, j] = pad(x[idx[i] - idx[0], j], 0)",
    "y[i, j] = edge(x[idx[i] * idx[i], j])",
    "y[i, j] = x[clamp(idx[i] - 1, 0, M-1), j]",
    "y[i, j] = x[min(max(i - idx[i], 0), M-1), j]",
    "y[i, j] = { let p = s32(floor(f[i]))  let q = clamp(p + 1, 0, M-1)  return x[q, j] }",
    "y[i, j] = x[idx[i], j] if 0 <= idx[i] < M else 0",
    "y[i, j] = x[idx[i] - 1, j] if 0 <= idx[i] - 1 < M else 0",
    "y[i, j] = x[idx[i] - 1, j] if 0 < idx[i] <= M else 0",
    "y[i, j] = x[idx[i], j] if idx[i] >= 0 and idx[i] < M else 0",
    "y[i, j] = 0 if idx[i] < 0 or idx[i] >= M else x[idx[i], j]",
    "y[i, j] = 0 if not (0 <= idx[i] < M) else x[idx[i], j]",
    "y[i, j] = x[i - 1, j] if i != 0 else 0",
    "y[i, j] = 0 if i == 0 else x[i - 1, j]",
    "y[i, j] = x[i - 1, j] if (i == 1 or i == 3) else 0",
    "y[i, j] = x[i + j, 0] if i + j < M else x[i, j]",
    "y[i, j] = x[i, j - i] if j >= i else x[i, i - j]",
    "y[i, j] = x[(i*N + j) // N, (i*N + j) % N]",
    "y[i, j] = x[(4*j + i) // N, (4*j + i) % N]",
    "y[i, j] = x[abs(i - 3), abs(j - 5)]",
    "y[i, j] = x[M - 1 - i, N - 1 - j]",
    "y[i, j] = x[i if i < 2 else i - 2, j]",
    "y[i, j] = x[i & 3, j % 6]",
    "y[i, j] = x[reflect(i - 2, M), reflect(j + 3, N)]",
    "y[i, j] = x[reflect(idx[i], M), j]",
    "y[i, j] = x[b[i] % M, j]",
    "y[i, j] = x[b[i] >> 6, j]",
    "y[i, j] = x[u[i] & 3, j]",
    "y[i, j] = x[s32(u[i] % 4), j]",
    "y[i, j] = x[s32(u[i] * 2654435761 >> 30), j]",
    "y[i, j] = x[s64(idx[i]) * s64(idx[i]) % 4, j]",
    "y[i, j] = x[idx[i] % M, j]",
    "y[i, j] = j // max(i, 1) + j % (i + 1)",
    "y[i, j] = j // idx[i] if idx[i] > 0 else 0",
    "y[i, j] = sum[p: 0..j](x[i, p + 1])",
    "y[i, j] = sum[p: j..N](x[i, p - j])",
    "y[i, j] = sum[p: N where p >= j](x[i, p - j])",
    "y[i, j] = sum[p: 1..N](x[i, p - 1])",
    "y[i, j] = sum[p: -1..2](pad(x[i + p, j], 0))",
    "y[i, j] = sum[p: M where idx[p] == i](x[clamp(idx[p], 0, 3), j])",
    "y[i, j] = sum[p: M where idx[p] == i](x[idx[p], j])",
    "y[i, j] = sum[p: N](pad(x[i - 1, p], 0)) if i > 0 else 0",
    "y[i, j] = pad(relu(x[i - 1, j]), 0)",
    "y[i, j] = i > 0 and x[i - 1, j] > 0",
    "y[i, j] = i == 0 or x[i - 1, j] > 0",
    "seq t: M { h[t] = pad(h[t-1], 0.0) + f[t] }\ny[i, j] = h[i]",
    "seq t: M reversed { h[t] = pad(h[t+1], 0.0) + f[t] }\ny[i, j] = h[i]",
    "seq t: M { h[t] = h[t-1] if t > 0 else f[0] }\ny[i, j] = h[i]",
    "seq t: M { h[t] = f[t] + sum[s: 0..t](h[s]) }\ny[i, j] = h[i]",
    "seq t: 1..M { h[t] = pad(h[t-1], 0.0) + f[t] }\ny[i, j] = pad(h[i], 1)",
    "seq t: M { h[t] = f[t] + pad(h[t-2], 0) + pad(h[t//2-1], 0) }\ny[i, j] = h[i]",
    "seq t: M { h[t] = f[t] + (h[clamp(idx[t], 0, t-1)] if t > 0 else 0) }\ny[i, j] = h[i]",
    "seq t: M { seq s: N { h[t, s] = pad(h[t-1, s+1], 0.0) + pad(h[t, s-1], 0) } }\n"
    "y[i, j] = h[i, j]",
    "seq t: M { a = f[t]  seq s: N { h[t, s] = a }  g[t] = h[t, N-1] }\ny[i, j] = g[i]",
    "each t: M { seq s: N { h[s] = pad(h[s-1], f[t]) }  g[t] = h[N-1] }\ny[i, j] = g[i]",
    "r[p: M] = max[i: 1..N where i*(i-1)//2 <= p](i)\ny[i, j] = x[clamp(r[i], 0, 3), j]",
    "r[p: M] = argmax[q: M](f[q])\ny[i, j] = x[r[i], j]",
    "r[p: M] = min(b[p], 3)\ny[i, j] = x[r[i], j]",
    "table T: s32[2] = [0, 3]\ny[i, j] = x[T[i % 2], j]",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_accepted_and_safe(body: str) -> None:
    _, checked = check(body)
    assert checked.program is not None, checked.diagnostics
    for seed in range(6):
        Machine().run(checked.program, random_inputs(checked.program, seed))


def test_the_checking_machine_notices() -> None:
    """The executor above must fail on what verification refuses."""
    for body in ("y[i, j] = x[i, j - 1]", "y[i, j] = x[idx[i], j]", "y[i, j] = j // i"):
        kernel = parse(HEADER.format(body=body)).kernel
        assert kernel is not None
        program = elaborate(kernel).program
        assert program is not None
        with pytest.raises(Unsafe):
            for seed in range(20):
                Machine().run(program, random_inputs(program, seed))


def test_missing_output_in_a_program_made_by_hand() -> None:
    tensor = core.Tensor("y", DType.F32, (2,), "output")
    (item,) = verify(core.Program("p", (), (), (tensor,), (), (), 0))
    assert item.rule.code == "E330" and "`y`" in item.message


def test_unused_input_is_a_warning() -> None:
    text = "kernel k[N=2](x: f32[N], z: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }"
    checked = check_text(text)
    assert checked.ok
    assert [(d.rule.code, d.severity) for d in checked.diagnostics] == [("E390", "warning")]


def test_all_findings_at_once() -> None:
    _, checked = check("a[i: M] = x[i, -1]\nc[i: M] = x[i, N]\ny[i, j] = c[idx[i]] + j // i")
    assert [d.rule.code for d in checked.diagnostics if d.severity == "error"] == [
        "E300", "E300", "E300", "E310",
    ]  # fmt: skip
