"""The joined kernel computes what the model does, and every piece keeps its layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings

from edgekernelbench.errors import UsageError
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.lower import lower
from edgekernelbench.optimize.join import CannotJoin, Piece, join
from edgekernelbench.optimize.parts import dissect, make_tasks
from edgekernelbench.optimize.whole import header_of
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.add import add
from edgekernelbench.suite.own.manifest import OwnTask
from edgekernelbench.suite.own.verify import program_fault, sample
from edgekernelbench.targets.host import host_target
from tests.optimize.graphs import STRUCTURES
from tests.optimize.test_cut import graphs
from tests.suite.own.models import save


def _parts(model: onnx.ModelProto, folder: Path) -> tuple[OwnTask, list[Piece]]:
    file = save(model, folder / "net.onnx")
    whole = add(file, "net", replace="net" in store.names()).manifest.tasks[0]
    stored = onnx.load(store.folder_of("net") / whole.file)
    cut = dissect(whole, stored)
    texts = {t.workload.id: t.workload.canonical() for t in make_tasks(cut.parts, file)}
    return whole, [Piece(_kernel(texts[one.part]), one.tensors) for one in cut.instances]


def _kernel(text: str) -> s.Kernel:
    kernel = parse(text).kernel
    assert kernel is not None
    return kernel


def _check(whole: OwnTask, kernel: s.Kernel) -> None:
    text = print_kernel(kernel)
    drawn = sample(whole.workload, "net", "")
    assert program_fault(whole.workload, text, drawn) == ""
    checked = check_text(text)
    assert checked.kernel == kernel and checked.program is not None
    lowered = lower(kernel, checked.program, host_target())
    assert lowered.module is not None, lowered.diagnostics


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("borders", [True, False])
def test_joined_parts_compute_what_the_model_does(
    name: str, borders: bool, own_tasks: Path
) -> None:
    whole, pieces = _parts(STRUCTURES[name](), own_tasks)
    assert len(pieces) > 1
    _check(whole, join(header_of(whole.workload), pieces, host_target(), borders))


@settings(
    deadline=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(graphs())
def test_any_graph_is_put_together_again(own_tasks: Path, model: onnx.ModelProto) -> None:
    try:
        whole, pieces = _parts(model, own_tasks)
    except UsageError:  # it overflows, or cancels to nothing
        assume(False)
        raise
    _check(whole, join(header_of(whole.workload), pieces, host_target()))


# ---------------------------------------------------------------- layers and names
_HEADER = """kernel net(
  x: f32[8, 16], w: const f32[16, 16], v: const f32[16, 16]) -> (y: f32[8, 16]) {
  compute { y[i, j] = x[i, j] }
}"""

_FIRST = """
def twice(a) = a + a
template scaled(t, n) -> (o) { o[i: 8, j: 16] = twice(t[i, j]) * n }
kernel part(x0: f32[8, 16], w0: const f32[16, 16]) -> (y0: f32[8, 16]) {
  compute {
    let n = 3
    table shift: f32[2] = [1, 2]
    a = scaled(x0, n)
    acc[i: 8, j: 16] = sum[k: 16](a[i, k] * w0[k, j])
    y0[i, j] = max(acc[i, j] + shift[0], 0)
  }
  schedule for cpu {
    loops acc (i by 4, j by 8, k, unroll i, vectorize j)
    place y0 in acc.i0
    loops a (i, vectorize j)
  }
  memory for cpu { layout w0 [k, j] -> [j // 8, k, j % 8] }
}"""

_SECOND = """kernel part[M=8](x0: f32[M, 16], w0: const f32[16, 16]) -> (y0: f32[M, 16]) {
  compute { y0[i, x0] = sum[k: 16](x0[i, k] * w0[x0, k]) }
}"""

_NARROW = """kernel part(x0: f32[8, 16], w0: const f32[16, 16]) -> (y0: f32[8, 16]) {
  compute { y0[i, j] = sum[k: 16](x0[i, k] * w0[j, k]) }
  schedule for llvm {
    option vector_bits 128  option unroll_limit 512
    loops y0 (i by 2, j, k, unroll i)
  }
  memory for llvm { layout x0 [i, k] -> [k, i]  layout w0 [j, k] -> [k, j] }
}"""

_CACHED = """kernel part(x0: f32[8, 16], w0: const f32[16, 16]) -> (y0: f32[8, 16]) {
  compute { y0[i, j] = sum[k: 16](x0[i, k] * w0[k, j]) }
  schedule for cpu { loops y0 (i, j by 8, k, vectorize j)  loops x0.cache (i, vectorize k) }
  memory for cpu { cache x0 in y0.i  layout w0 [k, j] -> [k, j] }
}"""


def _sums(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.maximum(6 * x @ w + 1, 0)


def _run(kernel: s.Kernel) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    inputs = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("x", (8, 16)), ("w", (16, 16)), ("v", (16, 16)))
    }
    checked = check_text(print_kernel(kernel))
    assert checked.program is not None, checked.diagnostics
    result = lower(kernel, checked.program, host_target())
    assert result.module is not None, result.diagnostics
    made = interpret(checked.program, inputs, mode="f64")["y"]
    return made, {name: values.astype(np.float64) for name, values in inputs.items()}


def _piece(text: str, x: str, w: str, y: str, **more: Any) -> Piece:
    return Piece(_kernel(text), {"x0": x, "w0": w, "y0": y}, **more)


def _lines(kernel: s.Kernel) -> str:
    return print_kernel(kernel).partition("schedule")[2]


def test_everything_that_a_piece_defines_gets_names_of_its_own() -> None:
    pieces = [_piece(_FIRST, "x", "w", "/t.1"), _piece(_FIRST, "/t.1", "v", "y")]
    kernel = join(_kernel(_HEADER), pieces, host_target())
    made, given_ = _run(kernel)
    middle = _sums(given_["x"], given_["w"])
    np.testing.assert_allclose(made, _sums(middle, given_["v"]), rtol=1e-9)
    lines = _lines(kernel)
    for wanted in ("place g0_y0 in g0_acc.i0", "place y in g1_acc.i0", "layout v [k, j]"):
        assert wanted in lines


def test_an_axis_hides_a_tensor_and_sizes_become_numbers() -> None:
    text = _SECOND.replace("y0[i, x0] =", "y0[i, j] =").replace("w0[x0, k]", "w0[j, k]")
    pieces = [_piece(text, "x", "w", "t"), _piece(text, "t", "v", "y")]
    made, given_ = _run(join(_kernel(_HEADER), pieces, host_target()))
    np.testing.assert_allclose(made, given_["x"] @ given_["w"].T @ given_["v"].T, rtol=1e-9)
    hidden = """kernel part(x0: f32[8, 16], w0: const f32[16, 16]) -> (y0: f32[8, 16]) {
      compute {
        a[w0: 8, j: 16] = x0[w0, j] * 2
        y0[i, j] = a[i, j] + w0[0, j]
      }
    }"""
    pieces = [_piece(hidden, "x", "w", "t"), _piece(hidden, "t", "v", "y")]
    made, given_ = _run(join(_kernel(_HEADER), pieces, host_target()))
    expected = 2 * (2 * given_["x"] + given_["w"][0]) + given_["v"][0]
    np.testing.assert_allclose(made, expected, rtol=1e-9)


def test_a_layout_of_an_input_becomes_a_copy_and_leaves_others_alone() -> None:
    pieces = [
        _piece(_NARROW, "x", "w", "t"),
        _piece(_NARROW, "t", "w", "u"),
        _piece(_FIRST, "u", "w", "y"),
    ]
    kernel = join(_kernel(_HEADER), pieces, host_target())
    made, given_ = _run(kernel)
    w = given_["w"]
    np.testing.assert_allclose(made, _sums(given_["x"] @ w.T @ w.T, w), rtol=1e-9)
    lines = _lines(kernel)
    for wanted in ("layout g1_x0_packed", "layout g0_w0_packed", "layout g2_w0_packed"):
        assert wanted in lines
    assert "layout w " not in lines


def test_options_are_those_that_count_most() -> None:
    header, target = _kernel(_HEADER), host_target()
    light = [_piece(_NARROW, "x", "w", "t", weight=1.0), _piece(_FIRST, "t", "v", "y", weight=3.0)]
    lines = _lines(join(header, light, target))
    assert "vector_bits" not in lines and "option unroll_limit 512" in lines
    heavy = [_piece(_NARROW, "x", "w", "t", weight=3.0), _piece(_FIRST, "t", "v", "y", weight=1.0)]
    assert "option vector_bits 128" in _lines(join(header, heavy, target))


def test_caches_of_one_tensor_keep_apart() -> None:
    pieces = [
        _piece(_CACHED, "x", "w", "t"),
        _piece(_CACHED, "x", "v", "u"),
        Piece(
            _kernel(
                "kernel part(x0: f32[8, 16], x1: f32[8, 16]) -> (y0: f32[8, 16]) {"
                " compute { y0[i, j] = x0[i, j] - x1[i, j] } }"
            ),
            {"x0": "t", "x1": "u", "y0": "y"},
        ),
    ]
    kernel = join(_kernel(_HEADER), pieces, host_target())
    made, given_ = _run(kernel)
    np.testing.assert_allclose(
        made, given_["x"] @ given_["w"] - given_["x"] @ given_["v"], rtol=1e-9
    )
    assert "loops x.cache (" in _lines(kernel) and "loops x.cache1 (" in _lines(kernel)


def test_a_result_that_is_handed_on_stays_stored_unless_borders_are_open() -> None:
    plain = """kernel part(x0: f32[8, 16], w0: const f32[16, 16]) -> (y0: f32[8, 16]) {
      compute { y0[i, j] = x0[i, j] + w0[0, j] }
    }"""
    pieces = [_piece(plain, "x", "w", "t"), _piece(plain, "t", "v", "y")]
    header, target = _kernel(_HEADER), host_target()

    def stages(borders: bool) -> int:
        kernel = join(header, pieces, target, borders)
        checked = check_text(print_kernel(kernel))
        assert checked.program is not None
        module = lower(kernel, checked.program, target).module
        assert module is not None
        return module.nest.count("g0_y0")

    assert stages(True) > 0 == stages(False)


def test_prefixes_avoid_names_that_are_there() -> None:
    text = _FIRST.replace("acc", "g0_y0").replace("a = scaled", "g1 = scaled")
    text = text.replace("(a[i, k]", "(g1[i, k]").replace("loops a ", "loops g1 ")
    pieces = [_piece(text, "x", "w", "t"), _piece(text, "t", "v", "y")]
    made, given_ = _run(join(_kernel(_HEADER), pieces, host_target()))
    middle = _sums(given_["x"], given_["w"])
    np.testing.assert_allclose(made, _sums(middle, given_["v"]), rtol=1e-9)


def test_a_template_whose_result_only_an_output_rounds_is_refused() -> None:
    text = """template f(t) -> (o) { o[i: 4] = t[i] * 0.1 }
    kernel part(x0: f32[4]) -> (y0: f16[4]) { compute { y0 = f(x0) } }"""
    header = "kernel net(x: f32[4]) -> (y: f32[4]) { compute { y[i] = x[i] } }"
    last = "kernel part(x0: f16[4]) -> (y0: f32[4]) { compute { y0[i] = x0[i] } }"
    pieces = [
        Piece(_kernel(text), {"x0": "x", "y0": "t"}),
        Piece(_kernel(last), {"x0": "t", "y0": "y"}),
    ]
    with pytest.raises(CannotJoin, match="f16") as raised:
        join(_kernel(header), pieces, host_target())
    assert raised.value.piece == 0


def test_recurrences_keep_their_loops() -> None:
    header = "kernel net(x: f32[6, 4]) -> (y: f32[6, 4]) { compute { y[i, j] = x[i, j] } }"
    text = """kernel part(x0: f32[6, 4]) -> (y0: f32[6, 4]) {
      compute { seq t: 6 { y0[t, j] = pad(y0[t - 1, j], 0) + x0[t, j] } }
    }"""
    pieces = [
        Piece(_kernel(text), {"x0": "x", "y0": "t"}),
        Piece(_kernel(text), {"x0": "t", "y0": "y"}),
    ]
    kernel = join(_kernel(header), pieces, host_target())
    checked = check_text(print_kernel(kernel))
    assert checked.program is not None, checked.diagnostics
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    made = interpret(checked.program, {"x": x}, mode="f64")["y"]
    np.testing.assert_allclose(made, np.cumsum(np.cumsum(x.astype(float), 0), 0))
