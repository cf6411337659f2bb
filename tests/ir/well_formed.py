"""Is a core program what `core` says it is? For tests of everything that makes programs."""

from __future__ import annotations

from edgekernelbench.ir import core
from edgekernelbench.ir.dtypes import DType

ANY_NUMBER = ("abs", "sign", "popcount")


def check(program: core.Program) -> None:
    """Fails on the first node that breaks the typing or scoping of the core."""
    tensors = {t.name: t for t in (*program.inputs, *(x.tensor for x in program.tables))}
    for _, stage in core.stages(program.body):
        assert stage.tensor.name not in tensors and stage.name == stage.tensor.name
        tensors[stage.tensor.name] = stage.tensor
    for output in program.outputs:
        assert tensors[output.name] == output
    for table in program.tables:
        assert len(table.values) == table.tensor.size
    uids: set[int] = set()
    for loops, stage in core.stages(program.body):
        _stage(tensors, uids, {loop.var for loop in loops}, loops, stage)
    assert max(uids, default=-1) < program.next_uid


def _stage(
    tensors: dict[str, core.Tensor],
    uids: set[int],
    scope: set[core.Var],
    loops: tuple[core.Loop, ...],
    stage: core.Stage,
) -> None:
    own = {axis.var: axis.extent for axis in stage.axes}
    extents = own | {loop.var: loop.hi for loop in loops}
    assert stage.tensor.shape == tuple(extents[var] for var in stage.lhs)
    assert [v for v in stage.lhs if v in own] == list(own)
    for var in own:
        _fresh(uids, var)
    assert stage.expr.dtype is stage.tensor.dtype
    _expr(tensors, uids, scope | set(own), stage.expr)


def _fresh(uids: set[int], var: core.Var) -> None:
    assert var.uid not in uids
    uids.add(var.uid)


def _expr(
    tensors: dict[str, core.Tensor], uids: set[int], scope: set[core.Var], expr: core.Expr
) -> None:
    match expr:
        case core.Const():
            _const(expr)
        case core.VarRef():
            assert expr.var in scope, expr.var
        case core.Load():
            assert tensors[expr.tensor.name] == expr.tensor
            assert len(expr.indices) == len(expr.tensor.shape)
            assert all(i.dtype in (DType.S32, DType.S64, DType.U32) for i in expr.indices)
        case core.Select():
            assert expr.cond.dtype is DType.BOOL
            assert expr.then.dtype is expr.other.dtype is expr.dtype
        case core.Unary():
            assert expr.arg.dtype is expr.dtype
            assert (expr.op == "not") == (expr.dtype is DType.BOOL)
        case core.Binary():
            _binary(expr)
        case core.Call():
            assert len(expr.args) == core.INTRINSICS[expr.fn]
            assert expr.fn in ANY_NUMBER or all(a.dtype.is_float for a in expr.args)
            assert expr.fn == "popcount" or all(a.dtype is expr.dtype for a in expr.args)
        case core.Reduce():
            scope = _reduce(uids, scope, expr)
        case core.Block():
            for var, value in expr.lets:
                assert var.dtype is value.dtype
                _expr(tensors, uids, scope, value)
                _fresh(uids, var)
                scope = scope | {var}
            _expr(tensors, uids, scope, expr.result)
            return
    for child in core.children(expr):
        _expr(tensors, uids, scope, child)


def _const(expr: core.Const) -> None:
    if expr.dtype is DType.BOOL:
        assert type(expr.value) is bool
    elif expr.dtype.is_float:
        assert type(expr.value) is float
    else:
        low, high = expr.dtype.int_range
        assert type(expr.value) is int and low <= expr.value <= high


def _binary(expr: core.Binary) -> None:
    left, right = expr.left.dtype, expr.right.dtype
    if expr.op in ("shl", "shr"):
        assert left is expr.dtype and left.is_int and right.is_int
        return
    assert left is right
    if expr.op in core.COMPARE_OPS or expr.op in core.BOOL_OPS:
        assert expr.dtype is DType.BOOL
        assert expr.op not in core.BOOL_OPS or left is DType.BOOL
        return
    assert left is expr.dtype and left.promoted is left
    if expr.op in ("fdiv", "mod", "bitand", "bitor", "bitxor"):
        assert left.is_int
    if expr.op in ("div", "pow"):
        assert left.is_float


def _reduce(uids: set[int], scope: set[core.Var], expr: core.Reduce) -> set[core.Var]:
    for axis in expr.axes:
        assert axis.lo.dtype is axis.hi.dtype is DType.S32
        assert axis.extent >= 1
        _fresh(uids, axis.var)
        scope = scope | {axis.var}
    assert expr.where is None or expr.where.dtype is DType.BOOL
    if expr.op in ("argmax", "argmin"):
        assert expr.dtype is DType.S32
    else:
        assert expr.dtype is expr.body.dtype
    assert (expr.op in ("any", "all")) == (expr.body.dtype is DType.BOOL)
    assert expr.body.dtype is DType.BOOL or expr.body.dtype.promoted is expr.body.dtype
    return scope
