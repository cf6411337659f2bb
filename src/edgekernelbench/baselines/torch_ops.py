"""ONNX operators (opset 21) in PyTorch: each entry turns a node into a function of tensors.

The common ones, by families: `torch_shapes` moves data, `torch_layers` has what cuDNN and cuBLAS
do. An attribute that PyTorch's counterpart lacks is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgekernelbench.baselines.torch_node import Function, Node, Tensor


def _torch(name: str) -> Callable[[Node], Function]:
    """PyTorch's function of that name, on the inputs as they come."""
    return lambda node: getattr(node.torch, name)


def _functional(name: str, **attributes: Any) -> Callable[[Node], Function]:
    """The same of `torch.nn.functional`, with attributes and their defaults by PyTorch's names."""

    def build(node: Node) -> Function:
        function = getattr(node.functional, name)
        given = {ours: node.get(theirs, value) for ours, (theirs, value) in attributes.items()}
        return (lambda x: function(x, **given)) if given else function

    return build


def _folded(name: str) -> Callable[[Node], Function]:
    """A function of two tensors over any number of them."""

    def build(node: Node) -> Function:
        function = getattr(node.torch, name)

        def fold(first: Tensor, *others: Tensor) -> Tensor:
            for other in others:
                first = function(first, other)
            return first

        return fold

    return build


def _divide(node: Node) -> Function:
    torch = node.torch

    def divide(a: Tensor, b: Tensor) -> Tensor:
        mode = None if a.is_floating_point() else "trunc"
        return torch.div(a, b, rounding_mode=mode)

    return divide


def _modulo(node: Node) -> Function:
    return node.torch.fmod if node.get("fmod", 0) else node.torch.remainder


def _shift(node: Node) -> Function:
    left = node.only("direction", "LEFT", "RIGHT") == "LEFT"
    return node.torch.bitwise_left_shift if left else node.torch.bitwise_right_shift


def _cast(node: Node) -> Function:
    from onnx import helper

    from edgekernelbench.baselines.torch_graph import torch_dtype

    dtype = torch_dtype(helper.tensor_dtype_to_np_dtype(node.get("to")).name)
    return lambda x: x.to(dtype)


def _clip(node: Node) -> Function:
    low, high = node.const(1), node.const(2)
    limits = [None if bound is None else bound.reshape(-1)[0].item() for bound in (low, high)]
    return lambda x, *_: node.torch.clamp(x, *limits)


def _gelu(node: Node) -> Function:
    approximate = node.only("approximate", "none", "tanh")
    return lambda x: node.functional.gelu(x, approximate=approximate)


def _hard_sigmoid(node: Node) -> Function:
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    return lambda x: node.torch.clamp(x * alpha + beta, 0, 1)


def _prelu(node: Node) -> Function:
    return lambda x, slope: node.torch.where(x < 0, slope * x, x)


def _axes(node: Node, rank: int) -> list[int] | None:
    """Axes of a reduction; None are all of them."""
    axes = node.get("axes") if node.get("axes") is not None else node.integers(1)
    if not axes:
        return None if not node.get("noop_with_empty_axes", 0) else []
    return [axis % rank for axis in axes]


def _reduction(
    make: Callable[[Any, Tensor, list[int], bool], Tensor],
) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        keep = bool(node.get("keepdims", 1))
        torch = node.torch

        def reduce(x: Tensor, *_: Tensor) -> Tensor:
            axes = _axes(node, x.dim())
            if axes == []:
                return x
            return make(torch, x, list(range(x.dim())) if axes is None else axes, keep)

        return reduce

    return build


def _product(torch: Any, x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keep)
    return x


def _sum(torch: Any, x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return torch.sum(x, axes, keepdim=keep, dtype=x.dtype)


def _extreme(name: str) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        node.only("select_last_index", 0)
        axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
        function = getattr(node.torch, name)
        return lambda x: function(x, axis, keepdim=keep)

    return build


def _cumulative_sum(node: Node) -> Function:
    axis = node.integers(1)
    exclusive, backwards = node.get("exclusive", 0), node.get("reverse", 0)
    assert axis is not None
    torch, at = node.torch, axis[0]

    def accumulate(x: Tensor, _: Tensor) -> Tensor:
        x = x.flip(at) if backwards else x
        total = torch.cumsum(x, at, dtype=x.dtype)
        total = total - x if exclusive else total
        return total.flip(at) if backwards else total

    return accumulate


def _top_k(node: Node) -> Function:
    k = node.integers(1)
    assert k is not None
    axis, largest = node.get("axis", -1), bool(node.get("largest", 1))
    ordered = bool(node.get("sorted", 1))
    return lambda x, _: tuple(node.torch.topk(x, k[0], axis, largest, ordered))


def _unary(*names: str) -> dict[str, Callable[[Node], Function]]:
    return {name: _torch(name.lower()) for name in names}


_ELEMENTWISE: dict[str, Callable[[Node], Function]] = {
    **_unary("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu"),
    **_unary("Round", "Sigmoid", "Sign", "Sin", "Sqrt", "Tan", "Tanh", "Where"),
    **{"Add": _torch("add"), "Sub": _torch("sub"), "Mul": _torch("mul"), "Div": _divide},
    **{"Pow": _torch("pow"), "Mod": _modulo, "BitShift": _shift, "Cast": _cast, "Clip": _clip},
    **{"Max": _folded("maximum"), "Min": _folded("minimum"), "Sum": _folded("add")},
    **{"And": _torch("logical_and"), "Or": _torch("logical_or"), "Not": _torch("logical_not")},
    **{"BitwiseAnd": _torch("bitwise_and"), "BitwiseOr": _torch("bitwise_or")},
    **{"Less": _torch("lt"), "LessOrEqual": _torch("le"), "Equal": _torch("eq")},
    **{"Greater": _torch("gt"), "GreaterOrEqual": _torch("ge")},
    "Elu": _functional("elu", alpha=("alpha", 1.0)),
    "LeakyRelu": _functional("leaky_relu", negative_slope=("alpha", 0.01)),
    "Softplus": _functional("softplus"),
    "HardSwish": _functional("hardswish"),
    "HardSigmoid": _hard_sigmoid,
    "Gelu": _gelu,
    "PRelu": _prelu,
}

_REDUCTIONS: dict[str, Callable[[Node], Function]] = {
    "ReduceSum": _reduction(_sum),
    "ReduceMean": _reduction(lambda torch, x, axes, keep: torch.mean(x, axes, keepdim=keep)),
    "ReduceMax": _reduction(lambda torch, x, axes, keep: torch.amax(x, axes, keepdim=keep)),
    "ReduceMin": _reduction(lambda torch, x, axes, keep: torch.amin(x, axes, keepdim=keep)),
    "ReduceProd": _reduction(_product),
    "ReduceL2": _reduction(
        lambda torch, x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keepdim=keep)
    ),
    "ReduceL1": _reduction(
        lambda torch, x, axes, keep: torch.linalg.vector_norm(x, 1, axes, keepdim=keep)
    ),
    "ReduceSumSquare": _reduction(lambda torch, x, axes, keep: _sum(torch, x * x, axes, keep)),
    "ArgMax": _extreme("argmax"),
    "ArgMin": _extreme("argmin"),
    "CumSum": _cumulative_sum,
    "TopK": _top_k,
}


def _operators() -> dict[str, Callable[[Node], Function]]:
    from edgekernelbench.baselines import torch_layers, torch_shapes

    return _ELEMENTWISE | _REDUCTIONS | torch_shapes.OPERATORS | torch_layers.OPERATORS


OPERATORS = _operators()
KNOWN = frozenset(OPERATORS)
