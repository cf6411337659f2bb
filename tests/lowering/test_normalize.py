"""`normalize`: which stages reductions become, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.ir import core
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.sampling import random_inputs
from edgekernelbench.ir.verify import verify
from edgekernelbench.lowering import _hoist
from edgekernelbench.lowering.normalize import NormalizeError, normalize

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = sorted(
    [*(DATA / "examples").glob("*.ekir"), *(DATA / "examples-layered").glob("*.ekir")]
)


def program(text: str) -> core.Program:
    parsed = parse(text)
    assert parsed.kernel is not None, parsed.diagnostics
    result = elaborate(parsed.kernel)
    assert result.program is not None, result.diagnostics
    return result.program


def errors(p: core.Program) -> list[str]:
    return [d.message for d in verify(p) if d.severity == "error"]


def normal(body: str, inputs: str = "x: f32[4, 8]", output: str = "y: f32[4, 8]") -> core.Program:
    """The normal form, checked: form, proofs and values."""
    before = program(f"kernel k({inputs}) -> ({output}) {{ compute {{ {body} }} }}")
    return checked(before)


def checked(before: core.Program) -> core.Program:
    assert not errors(before)
    after = normalize(before)
    for _, stage in core.stages(after.body):
        inside = [e for e in core.walk(stage.expr) if isinstance(e, core.Reduce)]
        assert not inside or (inside[0] is stage.expr and len(inside) == 1), stage.name
    uids = [uid for _, stage in core.stages(after.body) for uid in _bound(stage)]
    assert len(uids) == len(set(uids)), "a variable is bound twice"
    assert max(uids, default=0) < after.next_uid
    assert not errors(after)
    for seed in range(2):
        inputs = random_inputs(before, np.random.default_rng(seed))
        old, new = interpret(before, inputs), interpret(after, inputs)
        for name, value in old.items():
            np.testing.assert_allclose(new[name], value, rtol=1e-11, atol=1e-12)
    return after


def _bound(stage: core.Stage) -> list[int]:
    out = [axis.var.uid for axis in stage.axes]
    for e in core.walk(stage.expr):
        if isinstance(e, core.Reduce):
            out += [axis.var.uid for axis in e.axes]
        elif isinstance(e, core.Block):
            out += [var.uid for var, _ in e.lets]
    return out


def shapes(p: core.Program) -> dict[str, list[str]]:
    """Axes of each stage, by name, in order."""
    return {
        stage.name: [f"{axis.var.name}:{axis.extent}" for axis in stage.axes]
        for _, stage in core.stages(p.body)
    }


def stage(p: core.Program, name: str) -> core.Stage:
    (found,) = [s for _, s in core.stages(p.body) if s.name == name]
    return found


def reduction(p: core.Program, name: str) -> core.Reduce:
    expr = stage(p, name).expr
    assert isinstance(expr, core.Reduce)
    return expr


# ---------------------------------------------------------------- which stages, which axes
def test_a_top_level_reduction_stays() -> None:
    p = normal("y[i] = sum[k: 8](x[i, k])", output="y: f32[4]")
    assert shapes(p) == {"y": ["i:4"]}


def test_only_the_axes_it_varies_with() -> None:
    p = normal("y[i, j] = x[i, j] / sum[k: 8](abs(x[i, k])) + max[p: 4, q: 8](x[p, q])")
    assert shapes(p) == {"y.sum": ["i:4"], "y.max": [], "y": ["i:4", "j:8"]}


def test_numbers_per_operation_in_order_of_appearance() -> None:
    p = normal("y[i, j] = sum[k: 8](x[i, k]) * sum[k: 4](x[k, j]) + max[k: 8](x[i, k])")
    assert list(shapes(p)) == ["y.sum", "y.sum1", "y.max", "y"]
    assert shapes(p)["y.sum1"] == ["j:8"]


def test_nested_ones_are_named_outside_in_and_run_inside_out() -> None:
    p = normal(
        "y[i, j] = 1 + sum[k: 8](x[i, k] * sum[m: 4](x[m, k]) + max[m: 8](x[i, m]))",
    )
    assert list(shapes(p)) == ["y.sum1", "y.max", "y.sum", "y"]
    assert shapes(p)["y.sum1"] == ["k:8"] and shapes(p)["y.max"] == ["i:4"]


def test_equal_reductions_share_a_stage() -> None:
    p = normal("y[i, j] = sum[k: 8](x[i, k]) * sum[m: 8](x[i, m]) + sum[m: 8](x[i, m] * 2)")
    assert list(shapes(p)) == ["y.sum", "y.sum1", "y"]


DIFFERENT = [
    "x[k, i] + z[k, i]", "x[k, i] * z[k, i]", "z[k, i] + x[k, i]", "x[k, j] + z[k, i]",
    "x[i, k] + z[k, i]", "x[k, i] + z[k, i] + 1", "x[k, i] + z[k, i] + 2", "x[k, k] + z[k, i]",
    "exp(x[k, i]) + z[k, i]", "tanh(x[k, i]) + z[k, i]", "-x[k, i] + z[k, i]",
    "(x[k, i] if i < j else z[k, i])", "(x[k, i] if i <= j else z[k, i])", "f64(x[k, i])",
]  # fmt: skip


def test_different_reductions_do_not_share() -> None:
    terms = [f"sum[k: 4]({body})" for body in DIFFERENT]
    terms += ["sum[k: 3](x[k, i] + z[k, i])", "sum[k: 4 where k != i](x[k, i] + z[k, i])"]
    terms += ["sum[k: 0..i](x[k, i] + z[k, i])", "sum[k: i..4](x[k, i] + z[k, i])"]
    terms += ["max[k: 4](x[k, i] + z[k, i])"]
    p = normal(f"y[i, j] = {' + '.join(terms)}", "x: f32[4, 4], z: f32[4, 4]", "y: f32[4, 4]")
    assert len(shapes(p)) == len(terms) + 1
    twice = normal(
        f"y[i, j] = {' + '.join(terms * 2)}", "x: f32[4, 4], z: f32[4, 4]", "y: f32[4, 4]"
    )
    assert shapes(twice).keys() == shapes(p).keys()


def test_a_taken_name_is_skipped() -> None:
    text = """template t(x) -> (o) {
      max1 = x[0, 0]
      o[i: 4] = max1 + max[k: 8](x[i, k])
    }
    kernel k(x: f32[4, 8]) -> (z: f32[4]) { compute { a = t(x)  z[i] = a[i] } }"""
    assert list(shapes(checked(program(text)))) == ["a.max1", "a.max", "a", "z"]


def test_a_loop_keeps_its_stages_and_they_live_for_one_iteration() -> None:
    body = "seq t: 4 { y[t, j: 8] = x[t, j] + sum[k: 8](x[t, k] * pad(y[t-1, k], 0)) }"
    p = normal(body)
    assert shapes(p) == {"y.sum": [], "y": ["j:8"]}
    (loop,) = p.body
    assert isinstance(loop, core.Loop) and len(loop.body) == 2


def test_reductions_in_bounds_and_where() -> None:
    p = normal(
        "y[i] = sum[k: 0..clamp(sum[m: 8](s32(x[i, m] > 0)), 0, 8) "
        "where x[i, k] >= min[m: 4](x[m, k])](x[i, k])",
        output="y: f32[4]",
    )
    assert shapes(p) == {"y.sum": ["i:4"], "y.min": ["k:8"], "y": ["i:4"]}


# ---------------------------------------------------------------- lets
def test_a_let_reads_the_stage_of_its_reduction() -> None:
    p = normal("y[i, j] = { let s = sum[k: 8](x[i, k])  let m = s / 8  return m * x[i, j] }")
    assert shapes(p) == {"y.sum": ["i:4"], "y": ["i:4", "j:8"]}
    assert isinstance(stage(p, "y").expr, core.Block)


def test_lets_travel_with_a_reduction() -> None:
    body = """y[i, j] = {
      let a = x[i, 0] + 1   let b = a * a   let unused = exp(x[i, j])
      return x[i, j] + sum[k: 8 where x[i, k] > a](x[i, k] * b)
    }"""
    p = normal(body)
    assert shapes(p)["y.sum"] == ["i:4"]
    moved = reduction(p, "y.sum")
    assert isinstance(moved.where, core.Block) and len(moved.where.lets) == 1
    assert isinstance(moved.body, core.Block) and len(moved.body.lets) == 2


def test_lets_around_a_top_level_reduction() -> None:
    body = """y[i] = { let n = sum[k: 8](x[i, k])  let m = n / 8
                       return sum[k: 8](sq(x[i, k] - m)) }"""
    p = normal(body, output="y: f32[4]")
    assert shapes(p) == {"y.sum": ["i:4"], "y": ["i:4"]}
    assert isinstance(stage(p, "y").expr, core.Reduce)


def test_two_pass_variance_inside_one_expression() -> None:
    body = """y[i, j] = { let m = sum[k: 8](x[i, k]) / 8
      let v = sum[k: 8](sq(x[i, k] - m)) / 8
      return (x[i, j] - m) * rsqrt(v + 0.1) }"""
    p = normal(body)
    assert shapes(p) == {"y.sum": ["i:4"], "y.sum1": ["i:4"], "y": ["i:4", "j:8"]}


# ---------------------------------------------------------------- enclosing ranges, conditions
def test_ranges_and_conditions_outside_do_not_travel() -> None:
    body = """y[i] = sum[k: i..4 where k != 2](max[m: 8](x[k, m]) * sum[m: 4](x[m, 7]))"""
    p = normal(body, output="y: f32[4]")
    assert shapes(p) == {"y.max": ["k:4"], "y.sum": [], "y": ["i:4"]}
    assert reduction(p, "y.max").where is None
    assert reduction(p, "y").where is not None


def test_what_needs_them_is_no_verified_program() -> None:
    body = "y[i] = sum[k: 12 where 2 <= k < 10](max[m: 4](x[m, k - 2]))"
    before = program(f"kernel k(x: f32[4, 8]) -> (y: f32[4]) {{ compute {{ {body} }} }}")
    assert "computed also where it does not" in errors(before)[0]


def test_ranges_that_vary_with_outer_reductions() -> None:
    body = "y[i] = sum[k: i+1..5](sum[m: k..k+3](edge(x[i, m])) * max[m: 0..i+1](x[m, 1]))"
    p = normal(body, output="y: f32[4]")
    assert shapes(p) == {"y.sum": ["i:4", "k:5"], "y.max": ["i:4"], "y": ["i:4"]}


def test_data_dependent_ranges() -> None:
    body = """y[i] = sum[e: clamp(ptr[i], 0, 9)..clamp(ptr[i+1], 0, 9)](
                 val[e] * max[d: 3](edge(x[col[e], d])))"""
    p = normal(body, "ptr: s32[5], col: s32[9], val: f32[9], x: f32[6, 3]", "y: f32[4]")
    assert shapes(p)["y.max"] == ["e:9"]


def test_a_reduction_leaves_its_branch() -> None:
    body = "y[i, j] = sum[k: 8](x[i, k]) if i > j else (max[k: 8](x[i, k]) if i == j else 0)"
    assert list(shapes(normal(body))) == ["y.sum", "y.max", "y"]


# ---------------------------------------------------------------- whole programs
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_examples(path: Path) -> None:
    before = program(path.read_text())
    after = checked(before)
    assert [s.name for _, s in core.stages(before.body)] == [
        s.name for _, s in core.stages(after.body) if not _is_made(s.name, before)
    ]
    assert normalize(after).body == after.body, "normal programs stay as they are"


def _is_made(name: str, before: core.Program) -> bool:
    return name not in {s.name for _, s in core.stages(before.body)}


def test_growth_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hoist, "MAX_CARRIED", 100)
    lets = " ".join(f"let a{k} = x[0, {k % 8}] * {f'a{k - 1}' if k else '1.0'}" for k in range(20))
    text = f"y[i, j] = {{ {lets} return x[i, j] + sum[k: 8](x[i, k] * a19) }}"
    p = program(f"kernel k(x: f32[4, 8]) -> (y: f32[4, 8]) {{ compute {{ {text} }} }}")
    with pytest.raises(NormalizeError, match="compute shared values in stages of their own"):
        normalize(p)
