"""Python files as tasks: what works, and what is refused with file, task and field."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.check import Effort, check_workload
from edgekernelbench.suite.find import find_subset, find_workload
from edgekernelbench.suite.own import store
from edgekernelbench.suite.own.add import add

IMPORTS = """
import numpy as np
from edgekernelbench.tasks import *
"""
NORM = '''
def rms(x: Array) -> Array:
    return np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6)

@task(
    inputs="x:[M,C]:f32; gate:[M,C]:f32; gamma:[C]:f32",
    outputs="y:[M,C]:f32",
    const="gamma",
    shapes=[{"M": 16, "C": 64}, {"M": 4, "C": 96}],
    tolerance="f32_reduction",
    accumulation="C",
    flops="8*M*C",
    draw={"gamma": near(1.0)},
)
def gated_norm(x: Array, gate: Array, gamma: Array) -> Array:
    """x over its RMS, gained and gated"""
    return x / rms(x) * gamma / (1 + np.exp(-gate))

@gated_norm.twin
def _(g: Graph, x: Value, gate: Value, gamma: Array) -> Value:
    mean = g.ReduceMean(g.Mul(x, x), [1], keepdims=1)
    return g.Mul(g.Mul(g.Div(x, g.Sqrt(g.Add(mean, 1e-6))), gamma), g.Sigmoid(gate))
'''
LIMIT = """
@task(
    inputs="x:[N]:f32; limit:[1]:f32",
    outputs="y:[N]:f32",
    shapes=[{"N": 200}],
    tolerance="f32_elementwise",
    canonical="limit.ekir",
)
def soft_limit(x, limit):
    return x * limit / (1 + np.abs(x))
"""
PROGRAM = """kernel any_name[N=8](x: f32[N], limit: f32[1]) -> (y: f32[N]) {
  compute { y[i] = x[i] * limit[0] / (1 + abs(x[i])) }
}
"""


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(IMPORTS + textwrap.dedent(text), encoding="utf-8")
    return path


def test_a_function_with_a_twin(tmp_path: Path):
    result = add(write(tmp_path, NORM))
    ids = [task.workload.id for task in result.manifest.tasks]
    assert ids == ["mine__gated_norm__01", "mine__gated_norm__02"]
    assert result.warnings == ()
    workload = find_workload("mine__gated_norm__02")
    assert workload.flops == 8 * 4 * 96 and workload.level == 2
    assert not check_workload(workload, Effort(seeds=2)).findings
    text = workload.statement()
    assert "def rms(x: Array)" in text and "def gated_norm(" in text and "g.Mul" not in text
    assert find_subset("own:mine") == find_subset("own")


def test_a_canonical_program_and_what_is_counted_from_it(tmp_path: Path):
    (tmp_path / "limit.ekir").write_text(PROGRAM)
    result = add(write(tmp_path, LIMIT))
    assert result.warnings == ("mine__soft_limit: no ort baseline: it has no ONNX twin",)
    workload = find_workload("mine__soft_limit__01")
    assert workload.canonical().startswith("kernel mine__soft_limit[N=200](")
    assert workload.flops == 4 * 200 == workload.counted()["flops"]
    assert not check_workload(workload, Effort(seeds=2)).findings


def test_without_twin_and_program_there_is_a_warning(tmp_path: Path):
    text = LIMIT.replace('canonical="limit.ekir",', "")
    result = add(write(tmp_path, text), name="bare")
    assert len(result.warnings) == 2 and "no tvm baseline" in result.warnings[1]
    workload = find_workload("bare__soft_limit__01")
    assert workload.flops == 0 and "unknown number of operations" in workload.statement()


def test_the_copy_is_used_and_the_original_may_go(tmp_path: Path):
    path = write(tmp_path, NORM)
    add(path)
    path.unlink()
    workload = find_workload("mine__gated_norm__01")
    inputs = workload.inputs(1)
    x, gamma, gate = (inputs[name].astype(np.float64) for name in ("x", "gamma", "gate"))
    scale = np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6)
    expected = x / scale * gamma / (1 + np.exp(-gate))
    assert np.allclose(workload.truth(inputs, cache=False)["y"], expected, rtol=1e-12)


def test_a_suite_that_is_added_again_has_the_new_code(tmp_path: Path):
    text = LIMIT.replace('canonical="limit.ekir",', "")
    add(write(tmp_path, text))
    first = find_workload("mine__soft_limit__01")
    inputs = first.inputs(1)
    before = first.truth(inputs)["y"]
    store.remove("mine")
    add(write(tmp_path, text.replace("1 + np.abs(x)", "2 + np.abs(x)")))
    second = find_workload("mine__soft_limit__01")
    assert not np.array_equal(second.truth(inputs)["y"], before)


SIMPLE = """
@task(
    inputs="x:[N,K]:f32",
    outputs="y:[N]:f32",
    shapes=[{"N": 20, "K": 3}],
    tolerance="f32_reduction",
    accumulation="K",
)
def total(x):
    return x.sum(axis=1)
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("x:[N,K]:f32", "x:[N,K]", "task total: 'x:[N,K]' is not name:[dims]:dtype"),
        ("x:[N,K]:f32", "x:N,K:f32", "is not name:[dims]:dtype"),
        ("x:[N,K]:f32", "x:[N,K]:float", "unknown dtype 'float'"),
        ("x:[N,K]:f32", "x:[N,K]:T", "dtype T is for the packaged suite"),
        ("x:[N,K]:f32", "x:[N,K]:f32; x:[N]:f32", "x is declared twice"),
        ("x:[N,K]:f32", "", "task total: nothing in 'inputs'"),
        ("x:[N,K]:f32", "x:[N,K+]:f32", "not a formula: 'K+'"),
        ("x:[N,K]:f32", "x:[N,Q]:f32", "task total, shape 1: no number for 'Q'"),
        ("x:[N,K]:f32", "x:[N,K-3]:f32", "x has the shape [20, 0]"),
        ("x:[N,K]:f32", "x:[N,K//(K-3)]:f32", "ZeroDivisionError"),
        ('"K": 3', '"K": 3, "Q": 4', "'Q' is used nowhere"),
        ('"K": 3', '"K": "three"', "task total: shapes.0.K"),
        ('[{"N": 20, "K": 3}]', "[]", "task total: shapes"),
        ("f32_reduction", "loose", "task total: tolerance"),
        ('accumulation="K"', 'accumulation="R"', "no number for 'R'"),
        ('accumulation="K"', 'accumulation="K", const="w"', "const names no input 'w'"),
        ('accumulation="K"', 'accumulation="K", derived="L"', "'L' is not name=formula"),
        ('accumulation="K"', 'accumulation="K", small={"L": 3}', "small: 'L' is not in shapes"),
        ('accumulation="K"', 'accumulation="K", canonical="no.ekir"', "'no.ekir' cannot be read"),
        ('accumulation="K"', 'accumulation="K", lsb_share=3', "task total: lsb_share"),
        ('accumulation="K"', 'acumulation="K"', "line 5: TypeError: task() got"),
        ("def total(x):", "def total(z):", "asks for unknown z"),
        ("x.sum(axis=1)", "x.sum()", "output y has the shape [], not [20]"),
        ("x.sum(axis=1)", "(x.sum(axis=1), x)", "yields 2 outputs"),
        ("x.sum(axis=1)", "x.total()", "line 13"),
        ("x.sum(axis=1)", "np.log(x).sum(axis=1)", "output 'y' has NaN"),
        ("x.sum(axis=1)", "np.ones(20)", "no output depends on input 'x'"),
        ("x.sum(axis=1)", "x.sum(axis=1) + np.random.rand()", "differs from call to call"),
        ("x:[N,K]:f32", "x:[N,K]:s32", "say how to draw x"),
        ('"N": 20, "K": 3', '"N": 20000, "K": 20000', "MiB of tensors"),
        ("@task(", "raise ValueError('no')\n@task(", "line 5: ValueError: no"),
        ("@task(", "import no_such_module\n@task(", "ModuleNotFoundError"),
        ("@task(", "exit(3)\n@task(", "SystemExit"),
        ("def total(x):", "def total(x:", "SyntaxError"),
        ("@task(", "task(", "no task in that file"),
    ],
)
def test_refused(old: str, new: str, told: str, tmp_path: Path, home: Path):
    assert SIMPLE.count(old) >= 1
    path = write(tmp_path, SIMPLE.replace(old, new))
    with pytest.raises(UsageError) as caught:
        add(path)
    error = caught.value
    assert told in error.message, error.message
    assert str(path) in error.message and "\n" not in error.message and error.help
    assert store.names() == () and not list((home / "suite").glob("*"))


def test_no_task_and_two_of_a_name(tmp_path: Path):
    with pytest.raises(UsageError, match="no task in that file"):
        add(write(tmp_path, "x = 1"))
    with pytest.raises(UsageError, match="two tasks are called total"):
        add(write(tmp_path, SIMPLE + "\nfirst = total\n" + SIMPLE))


def test_a_twin_and_a_program_must_agree_with_the_function(tmp_path: Path):
    with pytest.raises(UsageError, match="the twin differs"):
        add(write(tmp_path, NORM.replace("g.Sigmoid(gate)", "g.Tanh(gate)")))
    (tmp_path / "limit.ekir").write_text(PROGRAM.replace("1 +", "2 +"))
    with pytest.raises(UsageError, match="canonical: it differs from the reference"):
        add(write(tmp_path, LIMIT))
    (tmp_path / "limit.ekir").write_text(PROGRAM.replace("x[i]", "x[i + 1]"))
    with pytest.raises(UsageError, match="canonical: "):
        add(write(tmp_path, LIMIT))
    (tmp_path / "limit.ekir").write_text(PROGRAM.replace("limit", "bound"))
    with pytest.raises(UsageError, match=r"canonical: .* declares"):
        add(write(tmp_path, LIMIT))


def test_shape_and_range_are_for_models(tmp_path: Path):
    with pytest.raises(UsageError, match="for ONNX models"):
        add(write(tmp_path, SIMPLE), shapes={"x": (1, 2)})
