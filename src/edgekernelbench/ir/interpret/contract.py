"""Sums of products as matrix products, where the factors vary over few axes each.

Only sums are re-associated: exact for integers (in float64 below 2**53), within rounding for
floats. Factors that are not finite make the caller take the plain way, so that masked lanes
cannot turn into NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.interpret import limits
from edgekernelbench.ir.interpret.frame import Frame, lift
from edgekernelbench.ir.interpret.loads import Fn

_EXACT = float(1 << 53)
_MAX_PARTS = 8


@dataclass(frozen=True, slots=True)
class Product:
    """``sign`` times the product of ``factors``."""

    sign: int
    factors: tuple[core.Expr, ...]


def split_sum(expr: core.Expr, single: bool) -> tuple[Product, ...]:
    """``expr`` as a sum of products; itself as the only factor when it is neither.

    Args:
        single: whether only one product of at most two factors will do.
    """
    terms: list[Product] = []
    stack: list[tuple[int, core.Expr]] = [(1, expr)]
    while stack:
        sign, top = stack.pop()
        match top:
            case core.Binary(op="add" | "sub" as op, left=left, right=right) if not single:
                stack += [(sign if op == "add" else -sign, right), (sign, left)]
            case core.Unary(op="neg", arg=arg) if not single:
                stack.append((-sign, arg))
            case core.Call(fn="nofma", args=(arg,)) if not single:
                stack.append((sign, arg))
            case _:
                terms.append(Product(sign, _factors(top, 2 if single else _MAX_PARTS)))
        if len(terms) + len(stack) > _MAX_PARTS:
            return (Product(1, (expr,)),)
    return tuple(terms)


def _factors(expr: core.Expr, limit: int) -> tuple[core.Expr, ...]:
    factors: list[core.Expr] = []
    stack = [expr]
    while stack:
        top = stack.pop()
        full = len(factors) + len(stack) + 2 > limit
        if isinstance(top, core.Binary) and top.op == "mul" and not full:
            stack += [top.right, top.left]
        else:
            factors.append(top)
    return tuple(factors)


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum over the leading ``summed`` of ``ndim`` grid dimensions.

    Attributes:
        lets: slot and value of the lets around the sum of products.
        terms: sign and factors of each product.
        dtype: NumPy dtype of the result.
    """

    lets: tuple[tuple[int, Fn], ...]
    terms: tuple[tuple[int, tuple[Fn, ...]], ...]
    ndim: int
    summed: int
    dtype: np.dtype

    def part(
        self, frame: Frame, mask: np.ndarray | None, counts: Sequence[int]
    ) -> np.ndarray | None:
        """The sum over the lanes of ``mask``, with the summed dimensions dropped.

        Returns None when this way would not be exact; the caller then takes the plain one.
        """
        for slot, value in self.lets:
            frame.vals[slot] = value(frame)
        total = None
        for sign, fns in self.terms:
            factors = [lift(fn(frame), self.ndim) for fn in fns]
            if not self._exact(factors, counts):
                return None
            wide = self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)
            if mask is not None:
                factors.append(mask)
            factors = [factor.astype(wide, copy=False) for factor in factors]
            term = sum_product(factors, counts)
            total = _accumulate(total, term.reshape(term.shape[self.summed :]), sign, self.dtype)
        return total

    def _exact(self, factors: list[np.ndarray], counts: Sequence[int]) -> bool:
        if self.dtype.kind == "f":
            return all(bool(np.isfinite(factor).all()) for factor in factors)
        bound = float(np.prod(counts, dtype=np.float64))
        for factor in factors:
            bound *= max(abs(float(factor.min())), abs(float(factor.max())), 1.0)
        return bound < _EXACT


def _accumulate(
    total: np.ndarray | None, term: np.ndarray, sign: int, dtype: np.dtype
) -> np.ndarray:
    if dtype.kind != "f":
        term = term.astype(np.int64).astype(dtype)
    if total is None:
        return term if sign > 0 else -term
    return total + term if sign > 0 else total - term


def sum_product(factors: list[np.ndarray], counts: Sequence[int]) -> np.ndarray:
    """The product of ``factors`` summed over the leading ``len(counts)`` dimensions.

    Args:
        factors: arrays of equal dimensionality; extent 1 where they do not vary.
        counts: extents of the summed dimensions, also where no factor varies.
    """
    scale = 1
    for axis, count in enumerate(counts):
        if all(factor.shape[axis] == 1 for factor in factors):
            scale *= count
    rest = list(factors)
    while len(rest) > 1:
        left, right = _cheapest_pair(rest, len(counts))
        b, a = rest.pop(right), rest.pop(left)
        summed = [
            axis for axis in range(len(counts)) if all(other.shape[axis] == 1 for other in rest)
        ]
        rest.append(_pair(a, b, summed))
    total = rest[0]
    open_axes = tuple(axis for axis in range(len(counts)) if total.shape[axis] > 1)
    if open_axes:
        total = total.sum(axis=open_axes, keepdims=True, dtype=total.dtype)
    return total * total.dtype.type(scale) if scale != 1 else total


def _cheapest_pair(factors: list[np.ndarray], summed: int) -> tuple[int, int]:
    """The two factors whose combination is smallest."""
    best: tuple[float, int, int] | None = None
    for left in range(len(factors)):
        for right in range(left + 1, len(factors)):
            a, b = factors[left].shape, factors[right].shape
            others = [f.shape for k, f in enumerate(factors) if k not in (left, right)]
            size = 1.0
            for axis, (p, q) in enumerate(zip(a, b, strict=True)):
                if axis >= summed or any(shape[axis] > 1 for shape in others):
                    size *= max(p, q)
            if best is None or size < best[0]:
                best = (size, left, right)
    assert best is not None
    return best[1], best[2]


def _pair(a: np.ndarray, b: np.ndarray, summed: list[int]) -> np.ndarray:
    """``a * b`` summed over ``summed``; dimensions kept."""
    alone_a = tuple(x for x in summed if a.shape[x] > 1 and b.shape[x] == 1)
    alone_b = tuple(x for x in summed if b.shape[x] > 1 and a.shape[x] == 1)
    if alone_a:
        a = a.sum(axis=alone_a, keepdims=True, dtype=a.dtype)
    if alone_b:
        b = b.sum(axis=alone_b, keepdims=True, dtype=b.dtype)
    both = [x for x in range(a.ndim) if a.shape[x] > 1 and b.shape[x] > 1]
    inner = [x for x in both if x in summed]
    batch = [x for x in both if x not in summed]
    rows = [x for x in range(a.ndim) if a.shape[x] > 1 and b.shape[x] == 1]
    cols = [x for x in range(a.ndim) if b.shape[x] > 1 and a.shape[x] == 1]
    if not inner:
        return a * b
    n_batch, m, k = (_size(a, axes) for axes in (batch, rows, inner))
    n = _size(b, cols)
    if m * n * k <= 64 and n_batch * m * n * k <= limits.BATCH_LANES:
        # Many tiny matrices: a call for each would dominate.
        return (a * b).sum(axis=tuple(inner), keepdims=True, dtype=a.dtype)
    left = _matrix(a, batch, rows, inner).reshape(n_batch, m, k)
    right = _matrix(b, batch, inner, cols).reshape(n_batch, k, n)
    out = np.matmul(left, right)
    order = [*batch, *rows, *cols]
    extents = [max(a.shape[x], b.shape[x]) for x in order]
    singles = [x for x in range(a.ndim) if x not in order]
    full = out.reshape(*extents, *([1] * len(singles)))
    return full.transpose(np.argsort([*order, *singles]))


def _size(array: np.ndarray, axes: list[int]) -> int:
    size = 1
    for axis in axes:
        size *= array.shape[axis]
    return size


def _matrix(array: np.ndarray, *groups: list[int]) -> np.ndarray:
    order = [axis for group in groups for axis in group]
    singles = [axis for axis in range(array.ndim) if axis not in order]
    return array.transpose(*order, *singles)
