# ruff: noqa: E501 (kernel texts and tables)
"""Every kind of illegal line: its code, the text it points at, and the way out that it names."""

from __future__ import annotations

import pytest

from edgekernelbench.ir.diagnostics import Diagnostic, Rule
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.lower import lower

from .support import TARGET, check, load_text

MATMUL = """kernel k[M=100, K=30, N=64, eps=0.5](X: f32[M, K], W: const f32[K, N], b: f32[N]) -> (Y: f32[M, N]) {
  compute {
    acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])
    t[i: M, j: N] = acc[i, j] + b[j]
    Y[i, j] = relu(t[i, j])
  }
  schedule for cpu { %s }
  memory for cpu { %s }
}"""

ROWS = """kernel k[R=8, C=40](X: f32[R, C], n: s32[R]) -> (Y: f32[R, C], Z: f32[R]) {
  compute {
    mu[r: R] = sum[c: C](X[r, c]) / C
    v[r: R] = max[c: 0..clamp(n[r], 0, C)](X[r, c])
    e[r: R, c: C] = X[r, c] - mu[r]
    Y[r, c] = e[r, c] * v[r]
    Z[r] = sum[c: C](Y[r, c])
  }
  schedule for cpu { %s }
}"""

PAIRS = """kernel k[A=1000, B=8](X: f32[A, B]) -> (p: f32, q: f32, r: f32[A]) {
  compute {
    p = sum[a: A, b: B](X[a, b])
    q = p / A
    r[a] = max[b: B](X[a, b])
  }
  schedule for cpu { %s }
}"""

BYTES = """kernel k[M=12, K=64, N=32](x: s8[M, K], w: const s8[N, K]) -> (y: s32[M, N]) {
  compute { y[i, n] = sum[k: K](x[i, k] * w[n, k]) }
  schedule for cpu { %s }
}"""

ONE_ROW = """kernel k[M=1, N=64, K=32](X: f32[M, K], W: f32[K, N]) -> (p: f32[M, N]) {
  compute { p[i, j] = sum[k: K](X[i, k] * W[k, j]) }
  schedule for cpu { %s }
}"""

SEQ = """kernel k[T=4, D=8](x: f32[T, D]) -> (h: f32[T, D], z: f32[D]) {
  compute {
    g[t: T, d: D] = x[t, d] * 2
    seq t: T {
      u[d: D] = pad(h[t-1, d], 0) + g[t, d]
      h[t, d: D] = u[d] * 0.5
      w[t, d: D] = u[d] + 1
    }
    z[d] = w[T-1, d] * 2
  }
  schedule for cpu { %s }
}"""

BOUNDS = """kernel k[B=4, L=9](n: s32[B], x: f32[B, L]) -> (y: f32[B]) {
  compute {
    len[b: B] = n[b] + 1
    y[b] = sum[r: 3, l: 0..clamp(len[b], 0, L)](x[b, l] * r)
  }
  schedule for cpu { %s }
}"""


def diagnose(
    template: str, schedule: str, memory: str | None = None
) -> tuple[list[Diagnostic], str]:
    text = template % (schedule if memory is None else (schedule, memory))
    kernel, program = load_text(text)
    result = lower(kernel, program, TARGET)
    assert result.module is None
    return list(result.diagnostics), text


# (template, schedule line, code, text of the span, a part of the message, a part of the help)
SCHEDULE = [
    (MATMUL, "loops ac (i, j, k)", "E401", "ac", "no stage `ac`", "did you mean `acc`?"),
    (MATMUL, "loops X (i, j)", "E401", "X", "`X` is an input", ""),
    (MATMUL, "place acc in Q.i", "E401", "Q", "no stage `Q`", "known: `acc`"),
    (MATMUL, "loops acc (i, j, k) loops acc (j, i, k)", "E402", "loops acc (j, i, k)", "two `loops` lines", "keep one"),
    (MATMUL, "loops acc (i, j, k) place t in acc.i place t in acc.j", "E402", "t", "placed or inlined twice", "keep one"),
    (MATMUL, "inline t loops t (i, j)", "E402", "loops t (i, j)", "`t` is inlined", "drop one"),
    (MATMUL, "loops acc (i by 0, i, j, k)", "E403", "0", "the step is 0", "use 1 or more"),
    (MATMUL, "loops acc (i by MM, i, j, k)", "E403", "MM", "no size `MM`", "sizes of this kernel"),
    (MATMUL, "loops acc (i by eps, i, j, k)", "E403", "eps", "no whole number", ""),
    (MATMUL, "loops acc (i by M // 0, i, j, k)", "E403", "M // 0", "division by 0", ""),
    (MATMUL, "loops acc (i, j)", "E410", "loops acc (i, j)", "axes i (100), j (64), k (30); missing: k", "add k"),
    (MATMUL, "loops acc (i, j, kk)", "E410", "kk", "no axis `kk`", "its axes are i (100), j (64), k (30)"),
    (ROWS, "loops mu (r, c)", "E410", "c", "no axis `c`", "`mu.sum`"),
    (MATMUL, "loops acc (i by 4, j, k)", "E411", "i by 4", "the last piece of `i` has a step", "without `by`"),
    (MATMUL, "loops acc (i, j, k, i)", "E411", "i", "another piece further inside", "write `i by 8` here"),
    (MATMUL, "loops acc (i, j, k by 31, k)", "E412", "k by 31", "step 31 of `k` is larger than 30", "divisors of 30 are 1, 2, 3, 5, 6, 10, 15, 30"),
    (MATMUL, "loops acc (i by 8, i by 16, i, j, k)", "E412", "i by 16", "larger than 8", "1, 2, 4, 8"),
    (MATMUL, "loops acc (i, j, k, vectorize j)", "E411", "j", "another piece further inside", "write `j by 32` here"),
    (BYTES, "loops y (i, n by 16, k, vectorize n, dot4 k)", "E411", "k", "another piece further inside", "write `k by 4` here: `dot4` takes four values"),
    (MATMUL, "loops acc (a = i, a = j, k)", "E413", "a = j", "two loops are called `a`", ""),
    (MATMUL, "loops acc (i, parallel j, k)", "E414", "parallel j", "inside a loop that is not parallel", "front"),
    (MATMUL, "loops acc (i by 8, i, parallel j, k)", "E414", "parallel j", "inside a loop that is not parallel", "or mark the loops outside of it parallel, too: `i0`, `i1`"),
    (ONE_ROW, "loops p (k by 8, i, parallel j, k)", "E414", "parallel j", "inside a loop that is not parallel", "front"),
    (PAIRS, "loops p (parallel a by 32, parallel b, a)", "E414", "parallel b", "`a0` is split already", "drop `parallel` from `b`"),
    (PAIRS, "loops p (parallel a by 2, a, b)", "E414", "parallel a by 2", "500 chunks", "`parallel a by N` with N from 4 on"),
    (PAIRS, "loops p (parallel a by 8, a, b) place q in p.a0", "E424", "q", "complete only behind its nest", "leave `q` unplaced"),
    (ROWS, "loops mu.sum (parallel c, r) loops mu (r) place mu.sum in mu.r", "E414", "parallel c", "placed in another", "outermost loop"),
    (MATMUL, "loops acc (i, j, k) loops t (parallel i, j) place t in acc.i", "E414", "parallel i", "placed in another", "outermost loop"),
    (MATMUL, "loops acc (i, j, vectorize k by 4, k)", "E415", "vectorize k by 4", "further pieces", "innermost"),
    (MATMUL, "loops acc (vectorize j, i, k)", "E415", "vectorize j", "`k` is inside the vectorised loop", "to the end"),
    (MATMUL, "loops acc (unroll i, j, k by 3, unroll k)", "E416", "unroll k", "300 copies", "at most 256"),
    (ROWS, "loops v (r, unroll c)", "E416", "unroll c", "not constant", "drop `unroll`"),
    (MATMUL, "loops acc (i, k by 5, j, vectorize k)", "E417", "vectorize k", "j runs inside the reduction", "outside"),
    (MATMUL, "place t in acc.q", "E420", "t", "no loop `q`", "its loops are"),
    (MATMUL, "loops acc (i by 4, j, k, i) place t in acc.i", "E420", "t", "no loop `i`", "did you mean `acc.i0`?"),
    (MATMUL, "loops acc (i, k, vectorize j) place t in acc.j", "E420", "t", "is vectorised", "`acc.k`"),
    (MATMUL, "loops acc (parallel i, parallel j, k) place t in acc.i", "E420", "t", "run as one", "`acc.j`"),
    (MATMUL, "place t in t.i", "E420", "t", "in itself", ""),
    (SEQ, "place g in u.d", "E420", "g", "different loop bodies", "same `seq` or `each`"),
    (MATMUL, "inline t place acc in t.j", "E420", "acc", "`t` is inlined", "drop one"),
    (MATMUL, "loops acc (i, j, k) loops t (i, j) place t in acc.j place acc in t.j", "E421", "t", "circle", "leave `acc` unplaced"),
    (BOUNDS, "loops y (b, r, l) place len in y.l", "E421", "len", "`y` reads `len` in front of its loop `l`", "place `len` in `y.r`"),
    (BOUNDS, "loops y (b, l, r) place len in y.r", "E421", "len", "in front of its loop `l`", "place `len` in `y.b`"),
    (MATMUL, "loops acc (i, j, k) loops t (i, j) place Y in acc.j", "E422", "Y", "neither feeds nor reads", ""),
    (ROWS, "loops Y (r, c) loops e (r, c) place mu in Y.r", "E422", "mu", "neither feeds nor reads", "place it in `e`"),
    (SEQ, "loops h (d) loops w (d) place u in h.d", "E423", "u", "`w` reads `u` outside the loop `h.d`", "place `w` there too"),
    (MATMUL, "loops acc (i, j, k) place t in acc.k", "E424", "t", "reduction is not complete", "outside the reduction: `acc.j`"),
    (ROWS, "loops v (r by 2, r, c) loops Z (r, c) loops Y (r, c by 4, c) place Z in Y.c0", "E425", "Z", "element by element along dimension 1", "`Z` reads"),
    (ROWS, "loops Z (parallel r, c by 4, c) place Y in Z.c0", "E426", "Y", "", "unplaced"),
    (MATMUL, "inline acc", "E427", "acc", "`acc` is a reduction", "`place acc in ...`"),
    (MATMUL, "inline Y", "E427", "Y", "`Y` is an output", ""),
    (SEQ, "inline h", "E427", "h", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("template", "line", "code", "span", "message", "help"), SCHEDULE)
def test_schedule_line(template, line, code, span, message, help):
    memory = "" if template is MATMUL else None
    if code == "E426":
        template, memory = COVER, None
    found, text = diagnose(template, line, memory)
    assert [d.rule.code for d in found] == [code]
    (diagnostic,) = found
    assert diagnostic.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == span
    assert message in diagnostic.message
    assert help in " / ".join(diagnostic.help)


COVER = """kernel k[R=8, C=40](X: f32[C]) -> (Y: f32[C], Z: f32[R]) {
  compute {
    Y[c] = X[c] + 1
    Z[r] = sum[c: C](Y[c])
  }
  schedule for cpu { %s }
}"""

MEMORY = [
    ("layout Q [k, j] -> [j, k]", "E510", "Q", "no tensor `Q`", "known"),
    ("layout W [k, j] -> [j, k] layout W [k, j] -> [k, j]", "E511", "layout W [k, j] -> [k, j]", "two layouts", ""),
    ("layout Y [i, j] -> [j, i]", "E512", "layout Y [i, j] -> [j, i]", "is an output", "copy it into `Y`"),
    ("layout W [k] -> [k]", "E513", "layout W [k] -> [k]", "2 dimensions", "[30, 64]"),
    ("layout W [k, k] -> [k, k]", "E513", "layout W [k, k] -> [k, k]", "two dimensions", ""),
    ("layout W [k, j] -> [j // k, j]", "E514", "j // k", "no index of a layout", "divide by a number"),
    ("layout W [k, j] -> [j - 3, k]", "E514", "j - 3", "runs from -3", "start at 0"),
    ("layout W [k, j] -> [j // 32, k]", "E515", "layout W [k, j] -> [j // 32, k]", "get the same place", "mention every axis"),
    ("layout W [k, j] -> [j * 8, k]", "E516", "layout W [k, j] -> [j * 8, k]", "elements for", "tiles"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "span", "message", "help"), MEMORY)
def test_memory_line(line, code, span, message, help):
    (diagnostic,), text = diagnose(MATMUL, "", line)
    assert diagnostic.rule.code == code
    assert diagnostic.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == span
    assert message in diagnostic.message
    assert help in " / ".join(diagnostic.help)


def test_a_cache_in_a_stage_that_is_inlined():
    (diagnostic,), _ = diagnose(MATMUL, "inline t", "cache acc in t.i")
    assert diagnostic.rule.code == "E420"
    assert "`t` is inlined: it has no loop to place `acc.cache` in" in diagnostic.message


@pytest.mark.parametrize("outer", ["i", "parallel i"])
def test_a_loop_of_one_iteration_outside_of_a_parallel_one_is_as_good_as_parallel(outer):
    text = ONE_ROW % f"loops p ({outer}, parallel j by 16, k, vectorize j)"
    kernel, program = load_text(text)
    module = lower(kernel, program, TARGET).module
    assert module is not None and module.nest.startswith("parallel i_j0 in 4:")


@pytest.mark.parametrize(
    ("schedule", "memory"),
    [
        ("", "layout X.cache [i, k] -> [k, i]"),
        ("loops X.cache (i, k)", ""),
        ("", "cache X.cache in acc.i layout X.cache.cache [i, k] -> [k, i]"),
    ],
)
def test_lines_about_a_refused_copy_are_no_error_of_their_own(schedule, memory):
    found, _ = diagnose(MATMUL, f"loops acc (i, j, k) {schedule}", f"cache X in t.i {memory}")
    assert [d.rule.code for d in found] == ["E520"]


def test_lines_about_a_copy_that_no_line_asks_for_are_errors():
    found, _ = diagnose(MATMUL, "loops W.cache (k, j)", "cache X in t.i layout b.cache [j] -> [j]")
    assert [d.rule.code for d in found] == ["E401", "E520", "E510"]


def test_all_errors_of_both_layers_at_once_and_in_text_order():
    schedule = "loops acc (i, j) inline acc place Y in t.zz loops q (i)"
    found, _ = diagnose(MATMUL, schedule, "layout Y [i, j] -> [j, i] layout W [k] -> [k]")
    assert [d.rule.code for d in found] == ["E410", "E427", "E420", "E401", "E512", "E513"]
    assert [d.span for d in found] == sorted(d.span for d in found if d.span)


def test_an_order_that_does_not_exist():
    text = ROWS % "loops Z (r, c) place mu.sum in Z.r"
    kernel, program = load_text(text)
    codes = [d.rule.code for d in lower(kernel, program, TARGET).diagnostics]
    assert codes == ["E422"]


def test_stages_between_producer_and_consumer_must_come_along():
    # `s` reads `a`, `Y` reads both: placed in `a`, `Y` would need `s` before `a` is complete.
    text = """kernel k[R=8, C=40](X: f32[R, C]) -> (Y: f32[R, C]) {
      compute {
        a[r: R, c: C] = exp(X[r, c])
        s[c: C] = sum[r: R](a[r, c])
        Y[r, c] = a[r, c] / s[c]
      }
      schedule for cpu { loops a (r, c) loops Y (r, c) place Y in a.r }
    }"""
    kernel, program = load_text(text)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert diagnostic.rule.code == "E421"
    assert "`a`" in diagnostic.message and "`s`" in diagnostic.message


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        ("place e in s.r", "E421", "`e`, which runs before it"),
        ("loops s (c, r) place e in s.r", "E421", "`e`, which runs before it"),
        ("loops s (parallel c by 8, r, c) place e in s.c0", "E421", "`e`, which runs before it"),
    ],
)
def test_what_reads_an_outer_target_is_not_placed_in_its_producer(lines, code, message):
    text = f"""kernel k[R=8, C=40](X: f32[R, C]) -> (Y: f32[R, C]) {{
      compute {{
        e[r: R, c: C] = exp(X[r, c])
        s[r: R] = sum[c: C](e[r, c])
        Y[r, c] = e[r, c] / s[r]
      }}
      schedule for cpu {{ loops e (r, c) loops Y (r, c) {lines} place Y in e.r }}
    }}"""
    kernel, program = load_text(text)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert diagnostic.rule.code == code and message in diagnostic.message


@pytest.mark.parametrize(
    ("places", "wrong"),
    [
        ("place t, s, Y in e.r", None),
        ("place Y in t.c0 place t, s in e.r", "`Y` reads `s`, which is computed after it"),
        ("place t, Y in e.c0 place s in e.r", "`Y` reads `s`, which is computed after it"),
    ],
)
def test_what_is_placed_runs_after_what_it_reads(places, wrong):
    text = f"""kernel k[R=8, C=40](X: f32[R, C]) -> (Y: f32[R, C]) {{
      compute {{
        e[r: R, c: C] = exp(X[r, c])
        t[r: R, c: C] = e[r, c] * 2
        s[r: R] = sum[c: C](e[r, c])
        Y[r, c] = t[r, c] / s[r]
      }}
      schedule for cpu {{ loops e (r, c by 8, c) loops t (r, c by 8, c) {places} }}
    }}"""
    kernel, program = load_text(text)
    diagnostics = lower(kernel, program, TARGET).diagnostics
    assert [d.rule.code for d in diagnostics] == ([] if wrong is None else ["E421"])
    assert all(wrong in d.message for d in diagnostics)


def test_steps_that_make_too_many_copies():
    steps = ", ".join(f"i by {s}, j by {s}" for s in (613, 401, 251, 151, 97, 61, 37, 23, 13, 7, 5))
    text = f"""kernel k[M=997, N=1009](x: f32[M, N]) -> (y: f32[M, N]) {{
      compute {{ y[i, j] = x[i, j] * 2 }}
      schedule for cpu {{ loops y ({steps}, i, j) }}
    }}"""
    kernel, program = load_text(text)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert diagnostic.rule.code == "E419"


def test_a_nest_with_too_many_loops():
    steps = ", ".join(f"i by {s}" for s in range(90, 55, -1))
    (diagnostic,), _ = diagnose(MATMUL, f"loops acc ({steps}, i, j, k)", "")
    assert diagnostic.rule.code == "E418"


def test_inlining_that_grows_without_end():
    stages = "".join(
        f"a{n}[i: N] = a{n - 1}[i] * a{n - 1}[i] + a{n - 1}[i]\n" for n in range(1, 30)
    )
    names = ", ".join(f"a{n}" for n in range(1, 29))
    text = f"""kernel k[N=4](a0: f32[N]) -> (y: f32[N]) {{
      compute {{ {stages} y[i] = a29[i] }}
      schedule for cpu {{ inline {names} }}
    }}"""
    kernel, program = load_text(text)
    (diagnostic,) = lower(kernel, program, TARGET).diagnostics
    assert diagnostic.rule.code == "E428"


def test_layers_for_other_targets_are_not_read():
    text = MATMUL % ("loops acc (parallel i, j, k)", "")
    text = text.rstrip()[:-1] + " schedule for gpu { loops nothing (i) } }"
    kernel, program = load_text(text)
    assert lower(kernel, program, TARGET).module is not None


def test_a_backend_section_replaces_the_class_section():
    text = MATMUL % ("loops nothing (i)", "")
    text = text.rstrip()[:-1] + " schedule for llvm { loops acc (parallel i, j, k) } }"
    kernel, program = load_text(text)
    result = lower(kernel, program, TARGET)
    assert result.module is not None
    assert "parallel i in 100" in result.module.nest


def test_placements_that_nest_too_deep():
    stages = "".join(f"a{n}[i: N] = exp(a{n - 1}[i])\n" for n in range(1, 22))
    lines = "".join(f"loops a{n} (i)\nplace a{n} in {f'a{n + 1}.i'}\n" for n in range(1, 21))
    text = f"""kernel k[N=4](a0: f32[N]) -> (y: f32[N]) {{
      compute {{ {stages} y[i] = a21[i] }}
      schedule for cpu {{ {lines} loops a21 (i) }}
    }}"""
    kernel, program = load_text(text)
    codes = {d.rule.code for d in lower(kernel, program, TARGET).diagnostics}
    assert codes == {"E430"}


def test_inlining_a_long_chain_is_refused_or_done_without_a_crash():
    stages = "".join(f"a{n}[i: N] = -a{n - 1}[i]\n" for n in range(1, 1500))
    names = ", ".join(f"a{n}" for n in range(1, 1500))
    text = """kernel k[N=4](a0: f32[N]) -> (y: f32[N]) {
      compute { %s y[i] = a1499[i] }
      schedule for cpu { inline %s }
    }"""
    kernel, program = load_text(text % (stages, names))
    assert [d.rule.code for d in lower(kernel, program, TARGET).diagnostics] == ["E428"]
    half = ", ".join(f"a{n}" for n in range(1, 900))
    kernel, program = load_text(text % (stages, half))
    assert lower(kernel, program, TARGET).module is not None


def test_a_long_program_without_layers_lowers():
    stages = "".join(f"a{n}[i: N] = a{n - 1}[i] * 0.5 + 1\n" for n in range(1, 400))
    text = f"kernel k[N=4](a0: f32[N]) -> (y: f32[N]) {{ compute {{ {stages} y[i] = a399[i] }} }}"
    kernel, program = load_text(text)
    assert lower(kernel, program, TARGET).module is not None


def test_each_rule_has_a_code_of_its_own() -> None:
    found = [rule for rule in vars(rules).values() if isinstance(rule, Rule)]
    codes = [rule.code for rule in found]
    assert len(codes) == len(set(codes)) > 40


@pytest.mark.parametrize(
    "line",
    [
        "loops y (b, r, l) place len in y.r",
        "loops y (b, l, r) place len in y.b",
        "loops y (b, r, vectorize l) place len in y.r",
        "loops y (parallel l by 3, b, r, l) place len in y.l1",  # split: the range is a condition
    ],
)
def test_a_range_may_be_computed_in_a_loop_around_it(line: str) -> None:
    check(*load_text(BOUNDS % line))
