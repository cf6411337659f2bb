"""ONNX operators that move data, in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from edgekernelbench.baselines.torch_node import Function, Node, Tensor, Unsupported


def _identity(node: Node) -> Function:
    return lambda x: x


def _reshape(node: Node) -> Function:
    shape = node.integers(1)
    assert shape is not None
    copies = not node.get("allowzero", 0)

    def reshape(x: Tensor, _: Tensor) -> Tensor:
        return x.reshape([x.shape[i] if n == 0 and copies else n for i, n in enumerate(shape)])

    return reshape


def _flatten(node: Node) -> Function:
    axis = node.get("axis", 1)

    def flatten(x: Tensor) -> Tensor:
        at = axis % x.dim() if axis < 0 else axis
        rows = 1
        for extent in x.shape[:at]:
            rows *= extent
        return x.reshape(rows, -1)

    return flatten


def _transpose(node: Node) -> Function:
    order = node.get("perm")
    return lambda x: x.permute(order or list(range(x.dim()))[::-1])


def _unsqueeze(node: Node) -> Function:
    axes = node.integers(1)
    assert axes is not None

    def unsqueeze(x: Tensor, _: Tensor) -> Tensor:
        rank = x.dim() + len(axes)
        for axis in sorted(a % rank for a in axes):
            x = x.unsqueeze(axis)
        return x

    return unsqueeze


def _squeeze(node: Node) -> Function:
    axes = node.integers(1)

    def squeeze(x: Tensor, *_: Tensor) -> Tensor:
        if axes is None:
            return x.squeeze()
        for axis in sorted((a % x.dim() for a in axes), reverse=True):
            x = x.squeeze(axis)
        return x

    return squeeze


def _concat(node: Node) -> Function:
    axis = node.get("axis")
    return lambda *parts: node.torch.cat(parts, axis)


def _split(node: Node) -> Function:
    sizes, axis = node.integers(1), node.get("axis", 0)
    count = node.get("num_outputs", len(node.outputs))

    def split(x: Tensor, *_: Tensor) -> Sequence[Tensor]:
        return x.split(sizes or -(-x.shape[axis] // count), axis)

    return split


def _slice(node: Node) -> Function:
    starts, ends, axes, steps = (node.integers(n) for n in (1, 2, 3, 4))
    assert starts is not None and ends is not None
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    cuts = tuple(zip(starts, ends, axes, steps, strict=True))

    def cut(x: Tensor, *_: Tensor) -> Tensor:
        for start, end, axis, step in cuts:
            x, taken = _ascending(x, axis, range(x.shape[axis])[start:end:step])
            index: list[Any] = [slice(None)] * x.dim()
            index[axis] = taken
            x = x[tuple(index)]
        return x

    return cut


def _ascending(x: Tensor, axis: int, taken: range) -> tuple[Tensor, slice]:
    """A tensor and what to take of its axis: PyTorch has no slices that go backwards."""
    if taken.step > 0:
        return x, slice(taken.start, taken.stop, taken.step)
    first, step = x.shape[axis] - 1 - taken.start, -taken.step
    return x.flip(axis), slice(first, first + step * len(taken), step)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def _pad(node: Node) -> Function:
    pads, value, axes = node.integers(1), node.const(2), node.integers(3)
    mode = _PAD_MODES[node.only("mode", "constant", *_PAD_MODES)]
    fill = 0 if value is None else value.reshape(-1)[0].item()
    assert pads is not None

    def pad(x: Tensor, *_: Tensor) -> Tensor:
        padded = list(range(x.dim())) if axes is None else [a % x.dim() for a in axes]
        half = len(pads) // 2
        both = dict(zip(padded, zip(pads[:half], pads[half:], strict=True), strict=True))
        first = min((axis for axis, pair in both.items() if any(pair)), default=x.dim())
        last_first = range(x.dim() - 1, first - 1, -1)
        flat = [n for axis in last_first for n in both.get(axis, (0, 0))]
        if mode == "constant":
            return node.functional.pad(x, flat, mode, fill)
        return _bordered(node, x, flat, mode)

    return pad


def _bordered(node: Node, x: Tensor, flat: list[int], mode: str) -> Tensor:
    """Borders made of the array itself: PyTorch wants one or two axes before those it pads."""
    count = len(flat) // 2
    if count > 3 or count > x.dim():
        raise Unsupported(f"Pad: mode {mode} on {count} axes")
    lead = x.shape[: x.dim() - count]
    made = node.functional.pad(x.reshape(1, -1, *x.shape[x.dim() - count :]), flat, mode)
    return made.reshape(*lead, *made.shape[2:])


def _expand(node: Node) -> Function:
    shape = node.integers(1)
    torch = node.torch

    def expand(x: Tensor, _: Tensor) -> Tensor:
        return x.expand(torch.broadcast_shapes(x.shape, shape))

    return expand


def _gather(node: Node) -> Function:
    axis, known = node.get("axis", 0), node.known(1)
    one = node.integers(1) if known else None
    torch = node.torch

    def gather(x: Tensor, index: Tensor) -> Tensor:
        at = axis % x.dim()
        if one is not None and len(one) == 1:  # a view
            taken = x.narrow(at, one[0] % x.shape[at], 1)
        else:
            flat = index.reshape(-1)
            taken = torch.index_select(x, at, flat % x.shape[at] if known else flat)
        return taken.reshape(*x.shape[:at], *index.shape, *x.shape[at + 1 :])

    return gather


def _gather_elements(node: Node) -> Function:
    axis = node.get("axis", 0)
    return lambda x, index: node.torch.gather(x, axis, index.long())


_MERGES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scatter_elements(node: Node) -> Function:
    axis = node.get("axis", 0)
    merge = node.only("reduction", "none", *_MERGES)

    def scatter(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
        if merge == "none":
            return x.scatter(axis, index.long(), updates)
        if merge == "add":
            return x.scatter_add(axis, index.long(), updates)
        return x.scatter_reduce(axis, index.long(), updates, _MERGES[merge])

    return scatter


def _scatter_nd(node: Node) -> Function:
    merge = node.only("reduction", "none", "add")

    def scatter(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
        place = tuple(index.long().unbind(-1))
        return x.index_put(place, updates, accumulate=merge == "add")

    return scatter


def _depth_to_space(node: Node) -> Function:
    size = node.get("blocksize")
    if node.only("mode", "DCR", "CRD") == "CRD":
        return lambda x: node.functional.pixel_shuffle(x, size)

    def rearrange(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        parts = x.reshape(n, size, size, c // size**2, h, w).permute(0, 3, 4, 1, 5, 2)
        return parts.reshape(n, c // size**2, h * size, w * size)

    return rearrange


def _trilu(node: Node) -> Function:
    k = node.integers(1)
    function = node.torch.triu if node.get("upper", 1) else node.torch.tril
    return lambda x, *_: function(x, 0 if k is None else k[0])


def _shape(node: Node) -> Function:
    start, end = node.get("start", 0), node.get("end")
    torch = node.torch
    return lambda x: torch.tensor(list(x.shape)[start:end], dtype=torch.int64, device=x.device)


OPERATORS: dict[str, Callable[[Node], Function]] = {
    "Identity": _identity,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "DepthToSpace": _depth_to_space,
    "Trilu": _trilu,
    "Shape": _shape,
}
