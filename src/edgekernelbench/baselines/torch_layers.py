"""ONNX operators that PyTorch hands to cuBLAS and cuDNN, and the layers around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from edgekernelbench.baselines.torch_node import Function, Node, Tensor, Unsupported

_SPATIAL = {1: "1d", 2: "2d", 3: "3d"}


def _matmul(node: Node) -> Function:
    matmul = node.torch.matmul

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        _no_integers(node, a)
        return matmul(a, b)

    return multiply


def _no_integers(node: Node, x: Tensor) -> None:
    if not x.is_floating_point():
        raise Unsupported(f"{node.kind}: PyTorch has no products of {x.dtype} on a GPU")


def _gemm(node: Node) -> Function:
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    first, second = node.get("transA", 0), node.get("transB", 0)
    torch = node.torch

    def multiply(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        _no_integers(node, a)
        a, b = a.t() if first else a, b.t() if second else b
        if c is None:
            return torch.mm(a, b) * alpha if alpha != 1 else torch.mm(a, b)
        return torch.addmm(c, a, b, beta=beta, alpha=alpha)

    return multiply


# ---------------------------------------------------------------- windows
def _window(node: Node, rank: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Strides, dilations, and pads before and behind each axis, as far as the node says them."""
    node.only("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    pads = list(node.get("pads") or [0] * 2 * rank)
    strides = list(node.get("strides") or [1] * rank)
    return strides, list(node.get("dilations") or [1] * rank), pads[:rank], pads[rank:]


def _same_pads(
    node: Node, x: Tensor, kernel: Sequence[int], strides: list[int], dilations: list[int]
) -> tuple[list[int], list[int]] | None:
    """Pads that keep an axis as long as its strides say; None where the node gives pads."""
    mode = node.get("auto_pad", "NOTSET")
    if not mode.startswith("SAME"):
        return None
    low, high = [], []
    for size, k, stride, dilation in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size)
        small, large = total // 2, total - total // 2
        low.append(large if mode == "SAME_LOWER" else small)
        high.append(small if mode == "SAME_LOWER" else large)
    return low, high


def _padded(node: Node, x: Tensor, low: list[int], high: list[int], value: float) -> Tensor:
    flat = [n for pair in reversed(list(zip(low, high, strict=True))) for n in pair]
    return node.functional.pad(x, flat, "constant", value)


def _convolution(node: Node) -> Function:
    groups = node.get("group", 1)

    def convolve(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
        rank = w.dim() - 2
        strides, dilations, low, high = _window(node, rank)
        low, high = _same_pads(node, x, w.shape[2:], strides, dilations) or (low, high)
        function = getattr(node.functional, f"conv{_SPATIAL[rank]}")
        if low != high:
            x, low = _padded(node, x, low, high, 0.0), [0] * rank
        return function(x, w, bias, strides, low, dilations, groups)

    return convolve


def _transposed_convolution(node: Node) -> Function:
    groups = node.get("group", 1)
    if node.get("output_shape") is not None:
        raise Unsupported("ConvTranspose: output_shape")

    def convolve(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
        rank = w.dim() - 2
        node.only("auto_pad", "NOTSET")
        strides, dilations, low, high = _window(node, rank)
        extra = list(node.get("output_padding") or [0] * rank)
        function = getattr(node.functional, f"conv_transpose{_SPATIAL[rank]}")
        if low == high:
            return function(x, w, bias, strides, low, extra, groups, dilations)
        whole = function(x, w, bias, strides, [0] * rank, extra, groups, dilations)
        crop = [-n for pair in reversed(list(zip(low, high, strict=True))) for n in pair]
        return node.functional.pad(whole, crop)

    return convolve


def _max_pool(node: Node) -> Function:
    if len(node.outputs) > 1:
        raise Unsupported("MaxPool: indices")
    kernel = list(node.get("kernel_shape"))
    ceil = bool(node.get("ceil_mode", 0))
    node.only("auto_pad", "NOTSET")
    strides, dilations, low, high = _window(node, len(kernel))
    function = getattr(node.functional, f"max_pool{_SPATIAL[len(kernel)]}")

    def pool(x: Tensor) -> Tensor:
        pads = low
        if low != high or any(2 * p > k for p, k in zip(low, kernel, strict=True)):
            x, pads = _padded(node, x, low, high, -math.inf), [0] * len(kernel)
        return function(x, kernel, strides, pads, dilations, ceil)

    return pool


def _average_pool(node: Node) -> Function:
    kernel = list(node.get("kernel_shape"))
    rank, ceil = len(kernel), bool(node.get("ceil_mode", 0))
    counts = bool(node.get("count_include_pad", 0))
    node.only("auto_pad", "NOTSET")
    strides, dilations, low, high = _window(node, rank)
    if any(n != 1 for n in dilations) or (low != high and not counts):
        raise Unsupported("AveragePool: dilations, or uneven pads that do not count")
    function = getattr(node.functional, f"avg_pool{_SPATIAL[rank]}")

    def pool(x: Tensor) -> Tensor:
        pads = low
        if low != high:
            x, pads = _padded(node, x, low, high, 0.0), [0] * rank
        return function(x, kernel, strides, pads, ceil, counts)

    return pool


def _global_average(node: Node) -> Function:
    return lambda x: node.torch.mean(x, list(range(2, x.dim())), keepdim=True)


def _global_max(node: Node) -> Function:
    return lambda x: node.torch.amax(x, list(range(2, x.dim())), keepdim=True)


# ---------------------------------------------------------------- normalisation
def _softmax(name: str) -> Callable[[Node], Function]:
    def build(node: Node) -> Function:
        axis, function = node.get("axis", -1), getattr(node.torch, name)
        return lambda x: function(x, axis)

    return build


def _layer_norm(node: Node) -> Function:
    axis, epsilon = node.get("axis", -1), node.get("epsilon", 1e-5)
    if len(node.outputs) > 1:
        raise Unsupported("LayerNormalization: mean and deviation as outputs")

    def normalise(x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
        shape = x.shape[axis % x.dim() :]
        return node.functional.layer_norm(x, shape, scale.expand(shape), bias, epsilon)

    return normalise


def _batch_norm(node: Node) -> Function:
    node.only("training_mode", 0)
    epsilon = node.get("epsilon", 1e-5)

    def normalise(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return node.functional.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)

    return normalise


def _instance_norm(node: Node) -> Function:
    epsilon = node.get("epsilon", 1e-5)
    function = node.functional.instance_norm
    return lambda x, scale, bias: function(x, weight=scale, bias=bias, eps=epsilon)


def _group_norm(node: Node) -> Function:
    groups, epsilon = node.get("num_groups"), node.get("epsilon", 1e-5)
    function = node.functional.group_norm
    return lambda x, scale, bias: function(x, groups, scale, bias, epsilon)


def _lp_norm(node: Node) -> Function:
    axis, p = node.get("axis", -1), node.get("p", 2)
    return lambda x: x / node.torch.linalg.vector_norm(x, p, axis, keepdim=True)


# ---------------------------------------------------------------- interpolation
_RESIZE = {
    ("nearest", "asymmetric"): ("nearest", None),
    ("linear", "half_pixel"): ("linear", False),
    ("linear", "pytorch_half_pixel"): ("linear", False),
    ("linear", "align_corners"): ("linear", True),
    ("cubic", "half_pixel"): ("bicubic", False),
    ("cubic", "align_corners"): ("bicubic", True),
}
_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def _resize(node: Node) -> Function:
    mode, where = node.get("mode", "nearest"), node.get("coordinate_transformation_mode")
    found = _RESIZE.get((mode, where or "half_pixel"))
    if found is None or node.get("antialias", 0) or node.get("axes") is not None:
        raise Unsupported(f"Resize: {mode}, {where}")
    if mode == "nearest" and node.get("nearest_mode", "round_prefer_floor") != "floor":
        raise Unsupported("Resize: nearest, not rounded down")
    given, sizes = node.const(2), node.integers(3)
    scales = [] if given is None else given.tolist()
    name, corners = found

    def resize(x: Tensor, *_: Tensor) -> Tensor:
        extents = sizes or [math.floor(n * s) for n, s in zip(x.shape, scales, strict=True)]
        if extents[:2] != list(x.shape[:2]):
            raise Unsupported("Resize: of batch or channels")
        kind = _LINEAR[x.dim() - 2] if name == "linear" else name
        options = {} if corners is None else {"align_corners": corners}
        return node.functional.interpolate(x, extents[2:], mode=kind, **options)

    return resize


def _grid_sample(node: Node) -> Function:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(node.get("mode", "linear"), "nearest")
    border = node.get("padding_mode", "zeros")
    corners = bool(node.get("align_corners", 0))
    return lambda x, grid: node.functional.grid_sample(x, grid, mode, border, corners)


# ---------------------------------------------------------------- quantisation
def _along(value: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """Scales or zero points in a shape that goes with the data's."""
    if block:
        return value.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    if value.numel() == 1:
        return value.reshape(())
    return value.reshape([-1 if at == axis % x.dim() else 1 for at in range(x.dim())])


def _dequantise(node: Node) -> Function:
    axis, block = node.get("axis", 1), node.get("block_size", 0)

    def dequantise(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
        value = x.to(scale.dtype)
        if zero is not None:
            value = value - _along(zero.to(scale.dtype), x, axis, block)
        return value * _along(scale, x, axis, block)

    return dequantise


def _quantise(node: Node) -> Function:
    axis, torch = node.get("axis", 1), node.torch
    if node.get("block_size", 0) or node.get("output_dtype", 0):
        raise Unsupported("QuantizeLinear: blocks, or a dtype of its own")

    def quantise(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
        value = torch.round(x / _along(scale, x, axis, 0))
        dtype = torch.uint8 if zero is None else zero.dtype
        if zero is not None:
            value = value + _along(zero.to(value.dtype), x, axis, 0)
        limits = torch.iinfo(dtype)
        return value.clamp(limits.min, limits.max).to(dtype)

    return quantise


# ---------------------------------------------------------------- recurrences
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""Where PyTorch's gates lie among ONNX's: i f g o of i o f c, r z n of z r h."""


def _recurrence(node: Node) -> Function:
    kind = node.kind
    if node.get("direction", "forward") == "reverse" or node.get("layout", 0):
        raise Unsupported(f"{kind}: backwards only, or batch first")
    if node.get("activations") or node.get("clip") or node.has(4) or node.has(7):
        raise Unsupported(f"{kind}: other functions, clipping, lengths or peepholes")
    if kind == "GRU" and not node.get("linear_before_reset", 0):
        raise Unsupported("GRU: reset before the product")
    made: list[Any] = []

    def run(x: Tensor, *rest: Tensor | None) -> Sequence[Tensor]:
        if not made:
            made.append(_recurrent_module(node, x))
        states = [state for state in rest[4:6] if state is not None]
        first = None if not states else tuple(states) if kind == "LSTM" else states[0]
        out, last = made[0](x, first)
        ways = 2 if made[0].bidirectional else 1
        split = out.reshape(*out.shape[:2], ways, -1).permute(0, 2, 1, 3)
        last = last if isinstance(last, tuple) else (last,)
        return (split, *last)[: len(node.outputs)]

    return run


def _recurrent_module(node: Node, x: Tensor) -> Any:
    """PyTorch's layer with the node's weights, laid out as cuDNN wants them."""
    weights, recurrent, bias = node.const(1), node.const(2), node.const(3)
    assert weights is not None and recurrent is not None
    gates = _GATES[node.kind]
    ways, rows, inputs = weights.shape
    hidden = rows // len(gates)
    module = getattr(node.torch.nn, node.kind)(
        inputs, hidden, bias=bias is not None, bidirectional=ways == 2
    ).to(device=x.device, dtype=x.dtype)
    for way, suffix in zip(range(ways), ("", "_reverse"), strict=False):
        parts = {"weight_ih": weights[way], "weight_hh": recurrent[way]}
        if bias is not None:
            parts |= {"bias_ih": bias[way][:rows], "bias_hh": bias[way][rows:]}
        for name, array in parts.items():
            ordered = array.reshape(len(gates), hidden, *array.shape[1:])[list(gates)]
            own = getattr(module, f"{name}_l0{suffix}")
            own.copy_(node.torch.from_numpy(ordered.reshape(array.shape).copy()))
    module.flatten_parameters()
    return module.eval()


OPERATORS: dict[str, Callable[[Node], Function]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average,
    "GlobalMaxPool": _global_max,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "LayerNormalization": _layer_norm,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "LpNormalization": _lp_norm,
    "Resize": _resize,
    "GridSample": _grid_sample,
    "QuantizeLinear": _quantise,
    "DequantizeLinear": _dequantise,
    "LSTM": _recurrence,
    "GRU": _recurrence,
}
