# ruff: noqa: E501 (kernel texts and tables)
"""Recurrences over two axes that run by diagonals: the results, the storage, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.lower import lower

from .run_nest import run_module
from .support import TARGET, check, draw_inputs, load_text, must_lower
from .wave_cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_wave_gives_the_results_of_the_order_of_the_program(name: str) -> None:
    """Bit by bit: the arithmetic is the same, only its order in time is not."""
    case = CASES[name]
    for m, n in case.shapes:
        _, program = load_text(case.text("", m, n))
        tables = draw_inputs(program, 3)
        outputs = {tensor.name for tensor in program.outputs}
        plain = must_lower(*load_text(case.text("", m, n))).module
        assert plain is not None
        want = run_module(plain, tables, outputs)
        for wave in case.waves:
            steps = [int(word) for word in wave.replace(",", "").split() if word.isdigit()]
            if steps and (max(steps) > min(m, n)):
                continue  # a step is at most its range
            text = case.text(wave, m, n)
            for threads in (1, 2):
                target = TARGET.model_copy(update={"threads": threads})
                result = check(*load_text(text), target, seed=3)
                assert result.module is not None, wave
                got = run_module(result.module, tables, outputs)
                for output in outputs:
                    np.testing.assert_array_equal(
                        got[output], want[output], err_msg=f"{wave} {m} {n}"
                    )


@pytest.mark.parametrize("name", CASES)
def test_waves_are_texts_of_the_language(name: str) -> None:
    case = CASES[name]
    for wave in case.waves:
        kernel = parse(case.text(wave, 16, 16)).kernel
        assert kernel is not None and parse(print_kernel(kernel)).kernel == kernel
        result = lower(*load_text(case.text(wave, 16, 16)), TARGET)
        assert result.module is not None and "diagonal" in result.module.nest + str(
            result.module.prepack
        )


# ---------------------------------------------------------------- storage
WARPING = CASES["warping"]


@pytest.mark.parametrize(
    ("wave", "shape"),
    [
        ("", "f32[2, 64]"),
        ("i, j", "f32[3, 64]"),
        ("i, vectorize j", "f32[3, 64]"),
        ("j, vectorize i", "f32[3, 48]"),
        ("parallel i by 8, j by 8, i, vectorize j", "f32[17, 64]"),
        ("parallel i by 8, j by 16, i, vectorize j", "f32[111, 64]"),
        ("parallel i by 8, j by 8, i, j", "f32[48, 64]"),
    ],
)
def test_diagonals_that_are_read_no_more_take_no_memory(wave: str, shape: str) -> None:
    module = must_lower(*load_text(WARPING.text(wave, 48, 64))).module
    assert module is not None and f" D: {shape}" in module.nest


def test_an_output_is_kept_by_diagonals_too_where_lanes_read_it() -> None:
    text = CASES["filter"].text("i, vectorize j", 32, 32)
    module = must_lower(*load_text(text)).module
    assert module is not None and "y.wave: f32[5, 32]" in module.nest
    assert "y.wave" not in must_lower(*load_text(CASES["filter"].text("i, j", 32, 32))).module.nest  # type: ignore[union-attr]


def test_most_vectors_need_no_border_test() -> None:
    module = must_lower(*load_text(WARPING.text("i, vectorize j", 64, 64))).module
    assert module is not None
    lines = module.nest.splitlines()
    at = next(k for k, line in enumerate(lines) if "lanes lane in 16" in line)
    assert " if " not in lines[at + 1] + lines[at + 2] and "D[(diagonal + 2) % 3" in lines[at + 1]


def test_steeper_diagonals_where_the_reads_want_them() -> None:
    module = must_lower(*load_text(CASES["chamfer"].text("j, vectorize i", 8, 30))).module
    assert module is not None and "for diagonal in 44:" in module.nest  # 2 * 7 + 29 + 1


def test_a_parallel_wave_keeps_the_loops_around_it_serial() -> None:
    body = CASES["batches"]
    for wave, threads in (
        ("i, j", "parallel q in 3"),
        ("parallel i by 64, j by 64, i, j", "parallel k in"),
    ):
        text = body.text(wave, 300, 300)
        module = must_lower(*load_text(text)).module
        assert module is not None
        nest = module.nest[module.nest.index("q in 3") - 9 :]
        assert threads in nest and nest.count("parallel") == 1


def test_a_step_may_be_a_hole_or_a_size() -> None:
    text = WARPING.text("parallel i by ?{4, 8}, j by max(N // 4, 2), i, j", 16, 16)
    module = must_lower(*load_text(text)).module
    assert module is not None and "for diagonal in 7:" in module.nest


# ---------------------------------------------------------------- what is refused
BODY = "seq i: M { seq j: N { b = x[i, j] * 2  D[i, j] = b + %s } }  y = D[M-1, N-1]"
PLAIN = BODY % "pad(D[i-1, j], 0)"
KNIGHT = BODY % "pad(D[i-1, j+1], 0)"
REFUSED = [
    (PLAIN, "wave E (i, j)", "E401", "E", "no stage `E`", ""),
    (PLAIN, "wave D (i, k)", "E470", "k", "no loop `k` around `D`", "`seq i`, `seq j`"),
    (PLAIN, "wave D (i, i)", "E470", "wave D (i, i)", "1 of the loops", "`seq i`, `seq j`"),
    ("each i: M { seq j: N { D[i, j] = x[i, j] + pad(D[i, j-1], 0) } }  y = D[0, 0]", "wave D (i, j)", "E470", "wave D (i, j)", "`i` is an `each` loop", "two `seq` loops"),
    ("seq i: M { b = x[i, 0]  seq j: N { D[i, j] = b + pad(D[i, j-1], 0) } }  y = D[0, 0]", "wave D (i, j)", "E470", "wave D (i, j)", "`b` runs between `i` and `j`", "move it into `seq j`"),
    ("seq i: M { D[i, j: N] = x[i, j] + pad(D[i-1, j], 0) }  y = D[0, 0]", "wave D (i, j)", "E470", "j", "`j` is an axis of `D`", "`loops D (...)`"),
    ("D[i: M, j: N] = x[i, j]  y = D[0, 0]", "wave D (i, j)", "E470", "i", "`i` is an axis of `D`", "no loop is around it"),
    (PLAIN, "wave D (i, j, i)", "E471", "wave D (i, j, i)", "3 loops", "vectorize j"),
    (PLAIN, "wave D (i by 4, j)", "E471", "i by 4", "a step without a loop for its rest", "write `i`"),
    (PLAIN, "wave D (i by 4, j, i, j)", "E471", "j", "a tile needs steps", "write `j by N`"),
    (PLAIN, "wave D (i by 4, j by 4, j, i)", "E471", "j", "`j` outside `i` in a tile", "`i, j`"),
    (PLAIN, "wave D (i by 4, j by 4, i, i)", "E471", "i", "`i` twice", ""),
    (PLAIN, "wave D (parallel i, vectorize j)", "E471", "wave D (parallel i, vectorize j)", "need tiles", "parallel i by 32"),
    (PLAIN, "wave D (i, parallel j)", "E471", "parallel j", "in loop 2 of 2", "mark the first loop"),
    (PLAIN, "wave D (vectorize i, j)", "E471", "vectorize i", "in loop 1 of 2", "mark the last loop"),
    (PLAIN, "wave D (unroll i, j)", "E471", "unroll i", "", "drop `unroll`"),
    (PLAIN, "wave D (a = i, j)", "E471", "a = i", "no labels", "write `i`"),
    (PLAIN, "wave D (i by 40, j by 4, i, j)", "E412", "i by 40", "larger than 9", "at most 9"),
    (PLAIN, "wave D (i by 0, j by 4, i, j)", "E403", "0", "the step is 0", ""),
    (PLAIN, "wave D (i, j)  wave b (j, vectorize i)", "E402", "wave b (j, vectorize i)", "have a `wave` already", "keep one"),
    (BODY % "max[k: N](pad(D[i-1, k], 0))", "wave D (i, j)", "E472", "D[i-1, k]", "`D.max` reads `D[i - 1, k]`, which is not provably on an earlier diagonal", "drop `wave`"),
    (BODY % "pad(D[i-1, N-1-j], 0)", "wave D (i, j)", "E472", "D[i-1, N-1-j]", "on an earlier diagonal", "`D[i-1, j-1]`"),
    (KNIGHT, "wave D (i, vectorize j)", "E471", "D[i-1, j+1]", "makes the diagonals 2*i + j", "`(j, vectorize i)`"),
    (KNIGHT, "wave D (i by 4, j by 4, i, j)", "E472", "D[i-1, j+1]", "below or right of it", "without tiles it works: `(j, vectorize i)`"),
    (BODY % "sum[k: 3](x[i, k]) + pad(D[i-1, j], 0)", "wave D (i, vectorize j)", "E473", "wave D (i, vectorize j)", "`D.sum` has `k`", "drop `vectorize`"),
    ("seq i: M { seq j: N { h[i, j, c: 4] = x[i, j] + pad(h[i-1, j, c], 0) } }  y = h[0, 0, 0]", "wave h (i, vectorize j)", "E473", "wave h (i, vectorize j)", "`h` has `c`: it is no single value", "`loops h (...)`"),
    ("seq i: M { seq j: N { h[i, j, c: 4] = x[i, j] + pad(h[i-1, j, c], 0) } }  y = h[0, 0, 0]", "wave h (parallel i, j)  loops h (parallel c)", "E414", "wave h (parallel i, j)", "parallel loops inside a parallel wave", "drop `parallel`"),
]  # fmt: skip


def test_a_layout_has_no_place_for_the_rows_that_run_at_once() -> None:
    text = CASES["running_sums"].text("i, j", 9, 9).rstrip()[:-1]
    text += "  memory for cpu { layout r [j] -> [j // 2, j % 2] }\n}\n"
    (diagnostic,) = lower(*load_text(text), TARGET).diagnostics
    assert diagnostic.rule.code == "E474" and "`r[i, j] = ...`" in diagnostic.help[0]


@pytest.mark.parametrize(("body", "lines", "code", "span", "message", "help"), REFUSED)
def test_refused(body: str, lines: str, code: str, span: str, message: str, help: str) -> None:
    text = (
        "kernel k[M=9, N=9](x: f32[M, N]) -> (y: f32) {\n"
        f"  compute {{ {body} }}\n  schedule for cpu {{ {lines} }}\n}}\n"
    )
    kernel, program = load_text(text)
    result = lower(kernel, program, TARGET)
    assert result.module is None
    found = result.diagnostics[0]
    assert found.rule.code == code, result.diagnostics
    assert found.span is not None and text[found.span.start : found.span.end] == span
    assert message in found.message and any(help in line for line in (*found.help, ""))
