"""Which nodes come into one group, which groups are the same, and that all fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from edgekernelbench.optimize.cut import Group, cut
from edgekernelbench.optimize.extract import extract
from edgekernelbench.optimize.fold import folded
from edgekernelbench.optimize.view import View, view_of
from tests.optimize.graphs import STRUCTURES, Net, attention, excitation, residual, shuffle
from tests.optimize.graphs import outputs as several_outputs


def _view(model: onnx.ModelProto) -> View:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    floats = [t.name for t in inferred.graph.initializer if t.data_type == 1 and t.dims]
    return view_of(folded(inferred, floats), floats)


def _kinds(model: onnx.ModelProto) -> list[str]:
    view = _view(model)
    return [" ".join(view.nodes[n].op_type for n in group.nodes) for group in cut(view)]


def test_a_convolution_takes_norm_residual_and_activation_along() -> None:
    assert _kinds(residual()) == [
        "Conv BatchNormalization Relu",
        "Conv BatchNormalization Add Relu",
        "Conv",
        "Conv Add Relu",
    ]


def test_what_exporters_took_apart_comes_together_again() -> None:
    norm = "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add"
    assert _kinds(attention()) == [
        norm,
        "MatMul Add",
        "MatMul Add",
        "MatMul Add Transpose",
        "MatMul Mul",
        "ReduceMax Sub Exp ReduceSum Div",
        "MatMul",
        "MatMul Add",
        "MatMul Add Div Erf Add Mul Mul",
        "MatMul Add",
    ]


def test_a_small_branch_does_not_swallow_the_large_one() -> None:
    assert _kinds(excitation()) == [
        "Conv HardSwish",
        "GlobalAveragePool",
        "Conv Relu",
        "Conv HardSigmoid",
        "Mul",
        "Conv",
    ]


def test_moves_join_a_neighbour_and_computed_shapes_vanish() -> None:
    kinds = _kinds(shuffle())
    assert "Shape" not in " ".join(kinds)
    assert kinds == ["Split", "Conv Relu", "Concat Reshape Transpose Reshape", "Conv"]


def test_an_output_on_the_way_ends_its_group() -> None:
    assert _kinds(several_outputs()) == ["Conv Relu", "Conv Sigmoid", "Tanh"]


def test_a_value_that_is_read_twice_ends_its_group_unless_the_paths_meet() -> None:
    net = Net()
    x = net("Relu", net.conv("x", 2, 2))
    both = net("Add", net.conv(x, 2, 2), net("Sigmoid", x))
    assert _kinds(net.model([1, 2, 5, 5], both)) == ["Conv Relu", "Sigmoid", "Conv Add"]
    net = Net()
    x = net.conv("x", 2, 2)
    swish = net("Mul", x, net("Sigmoid", x))
    assert _kinds(net.model([1, 2, 5, 5], swish)) == ["Conv Sigmoid Mul"]


def test_weights_that_are_computed_go_to_each_group_that_reads_them() -> None:
    net = Net()
    shared = net("Transpose", net.weight(4, 4), perm=[1, 0])
    x = net("Relu", net("MatMul", "x", shared))
    view = _view(net.model([3, 4], net("MatMul", x, shared)))
    groups = cut(view)
    assert [[view.nodes[n].op_type for n in g.nodes] for g in groups] == [
        ["MatMul", "Relu"],
        ["MatMul"],
    ]
    for group in groups:
        part = extract(view, group)
        assert [view.nodes[n].op_type for n in part.computed] == ["Transpose"]
        assert len(part.weights) == 1


# ---------------------------------------------------------------- signatures
def _signatures(model: onnx.ModelProto) -> list[str]:
    view = _view(model)
    return [extract(view, group).signature for group in cut(view)]


def test_equal_groups_have_one_signature_whatever_their_weights() -> None:
    query, given_, key = _signatures(attention())[1:4]
    assert query == given_ != key


@pytest.mark.parametrize(
    "change",
    [
        lambda net, x: net.conv(x, 4, 4, 3, strides=[2, 2]),
        lambda net, x: net.conv(x, 4, 5),
        lambda net, x: net.conv(x, 4, 4, 1),
        lambda net, x: net("Relu", net.conv(x, 4, 4)),
        lambda net, x: net("Clip", net.conv(x, 4, 4), net.held(0.0), net.held(6.0)),
        lambda net, x: net("Clip", net.conv(x, 4, 4), net.held(0.0), net.held(5.0)),
    ],
)  # fmt: skip
def test_attributes_shapes_operators_and_fixed_numbers_are_in_the_signature(
    change: Callable[[Net, str], str],
) -> None:
    def first(make: Callable[[Net, str], str]) -> str:
        net = Net()
        return _signatures(net.model([1, 4, 6, 6], make(net, "x")))[0]

    plain = first(lambda net, x: net.conv(x, 4, 4))
    clipped = first(
        lambda net, x: net("Clip", net.conv(x, 4, 4), net.held(0.0), net.held(4.0))
    )  # fmt: skip
    assert first(change) not in (plain, clipped)
    assert first(change) == first(change)


def test_wiring_is_in_the_signature() -> None:
    def one(swapped: bool) -> str:
        net = Net()
        x = net("Relu", "x")
        pair = (net("MatMul", x, net.weight(4, 4)), x)
        return _signatures(net.model([4, 4], net("Sub", *(pair[::-1] if swapped else pair))))[-1]

    assert one(False) != one(True)


# ---------------------------------------------------------------- any graph
def _check_sound(view: View, groups: tuple[Group, ...]) -> None:
    """Every node is in one group, everything is made before it is read, and each group's model is
    valid."""
    nodes = [n for group in groups for n in group.nodes]
    assert sorted(nodes) == [n for n in range(len(view.nodes)) if view.given(n)]
    there = {value.name for value in view.model.graph.input}
    for group in groups:
        assert set(group.inputs) <= there
        there |= set(group.outputs)
        onnx.checker.check_model(extract(view, group).model, full_check=True)
    assert set(view.outputs) <= there


@pytest.mark.parametrize("name", STRUCTURES)
def test_groups_make_up_the_model(name: str) -> None:
    view = _view(STRUCTURES[name]())
    _check_sound(view, cut(view))


@st.composite
def graphs(draw: st.DrawFn) -> onnx.ModelProto:
    """Chains, forks and joins of operators of all kinds on square matrices."""
    net = Net()
    tensors = ["x"]
    for _ in range(draw(st.integers(2, 14))):
        x = draw(st.sampled_from(tensors))
        kind = draw(st.sampled_from(("MatMul", "Relu", "Add", "Transpose", "Softmax", "Mean", "W")))
        match kind:
            case "MatMul" | "Add":
                y = net(kind, x, draw(st.sampled_from(tensors)))
            case "W":
                y = net("Mul", x, net("Transpose", net.weight(4, 4), perm=[1, 0]))
            case "Mean":
                y = net("Sub", x, net("ReduceMean", x, axes=[1], keepdims=1))
            case _:
                more: dict[str, Any] = {"perm": [1, 0]} if kind == "Transpose" else {}
                y = net(kind, x, **more)
        tensors.append(y)
    read = {name for node in net.nodes for name in node.input}
    return net.model([4, 4], *[name for name in tensors[1:] if name not in read])


@settings(deadline=None, max_examples=80)
@given(graphs())
def test_any_graph_is_cut_into_groups_that_make_it_up(model: onnx.ModelProto) -> None:
    view = _view(model)
    _check_sound(view, cut(view))


def test_folding_keeps_results() -> None:
    model = shuffle()
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    floats = [t.name for t in inferred.graph.initializer if t.data_type == 1]
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    first, second = (_run(m, x) for m in (model, folded(inferred, floats)))
    np.testing.assert_array_equal(first, second)


def _run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    made = ReferenceEvaluator(model).run(None, {"x": x})
    assert isinstance(made, list)
    return np.asarray(made[0])
