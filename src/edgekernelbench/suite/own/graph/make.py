"""A task of an ONNX file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite.model import Workload
from edgekernelbench.suite.own import verify
from edgekernelbench.suite.own.code import offered
from edgekernelbench.suite.own.graph.dtypes import dtype_of
from edgekernelbench.suite.own.graph.normal import Normal, normalized
from edgekernelbench.suite.own.graph.options import Options
from edgekernelbench.suite.own.graph.pattern import Ranges, graph_pattern
from edgekernelbench.suite.own.graph.program import write_program
from edgekernelbench.suite.own.graph.ranges import index_range
from edgekernelbench.suite.own.graph.read import CUT, read_model
from edgekernelbench.suite.own.graph.rows import Draft, Shapes, workload_of
from edgekernelbench.suite.own.graph.shapes import known_shapes, with_static_shapes
from edgekernelbench.suite.own.graph.steps import jumps
from edgekernelbench.suite.own.graph.text import operators_text
from edgekernelbench.suite.own.graph.walk import label
from edgekernelbench.suite.own.graph.work import operations
from edgekernelbench.suite.own.guard import first_line, limited
from edgekernelbench.suite.own.manifest import OwnTask

if TYPE_CHECKING:
    from onnx import ValueInfoProto

LSB_SHARES = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Shares of a rounded output that may be one step off, of which the least that fits is taken."""
_MARGIN = 3
_COUNTING = frozenset(["NonZero", "Unique", "Compress", "NonMaxSuppression"])
"""Operators whose output's extent is how many values there are of some kind."""
_ASK = (DType.S32, DType.U32, DType.S64)
"""Dtypes whose whole range is hardly ever meant."""


def make_task(path: Path, id: str, suite: str, folder: Path, options: Options) -> OwnTask:
    """Reads, checks and stores the model of ``path`` in the suite's folder.

    Raises:
        UsageError: no task can be made of it; says why and what to do.
    """
    draft = _draft(path, id, suite, folder, options)
    largest = max((4 * math.prod(shape) for shape in draft.shapes.values()), default=0)
    verify.check_limits(draft.work, largest, str(path), CUT)
    _check_runnable(draft)
    draft.file.write_bytes(draft.model.SerializeToString())
    weights = frozenset(draft.normal.weights)
    operators = operators_text(draft.model, weights)
    with offered(id, graph_pattern(id, draft.file, weights, draft.ranges, operators)):
        workload, drawn = _verified(draft, _output_shapes(draft))
        written = write_program(workload, draft.model)
        reason = written.reason
        if written.text:
            reason = verify.program_fault(workload, written.text, drawn)
    if not reason:
        (folder / f"{id}.ekir").write_text(written.text, encoding="utf-8")
    return OwnTask(
        workload=workload,
        file=draft.file.name,
        canonical="" if reason else f"{id}.ekir",
        no_canonical=reason,
        operators=operators,
        ranges=dict(draft.ranges),
    )


def _draft(path: Path, id: str, suite: str, folder: Path, options: Options) -> Draft:
    model = read_model(path)
    options.used.update({v.name for v in model.graph.input} & set(options.shapes))
    static = with_static_shapes(model, options.shapes, path)
    normal = normalized(static, path, options.weights)
    shapes = known_shapes(normal.model)
    work = operations(normal.model.graph, shapes)
    ranges = _ranges(normal, shapes, options, path)
    file = folder / f"{id}.onnx"
    return Draft(path, id, suite, file, normal, shapes, ranges, work, options.tolerance)


# ---------------------------------------------------------------- ranges of inputs
def _ranges(normal: Normal, shapes: Shapes, options: Options, path: Path) -> Ranges:
    """As told, else as the graph shows; none where the default draw is right."""
    found: Ranges = {}
    for value in normal.model.graph.input:
        name = normal.original[value.name]
        if name in options.ranges:
            options.used.add(name)
            found[value.name] = _told_range(name, options.ranges[name], _dtype(value), path)
            continue
        legal = index_range(normal.model.graph, value.name, shapes)
        if legal is not None:
            found[value.name] = legal
        elif _dtype(value) in _ASK:
            raise UsageError(
                f"{path}: no legal range is known of the {_dtype(value)} input {name!r}",
                f"say which values it may have, both included: --range {name}=LOW,HIGH",
            )
    return found


def _dtype(value: ValueInfoProto) -> DType:
    dtype = dtype_of(value.type.tensor_type.elem_type)
    assert dtype is not None, "checked when the model was normalised"
    return dtype


def _told_range(
    name: str, bounds: tuple[float, float], dtype: DType, path: Path
) -> tuple[int | float, int | float]:
    low, high = bounds
    if dtype.is_float:
        return bounds
    least, most = dtype.int_range
    whole = low == round(low) and high == round(high)
    if not whole or low < least or high > most:
        raise UsageError(
            f"{path}: --range {name}={low:g},{high:g}: the input is {dtype}",
            f"give integers from {least} to {most}, both included",
        )
    return int(low), int(high)


# ---------------------------------------------------------------- runs
def _check_runnable(draft: Draft) -> None:
    """Both executors know all operators."""
    import onnxruntime

    from edgekernelbench.suite.own.graph.double import Reference

    try:
        Reference(draft.model, draft.normal.weights)
    except Exception as error:  # NotImplementedError, RuntimeContextError ...
        raise draft.refused(
            f"ONNX's reference evaluator cannot take the model: {first_line(error)}"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(
            draft.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise draft.refused(
            f"ONNX Runtime cannot take the model: {first_line(error)}",
            "export it for an older opset, or cut the model before that operator",
        ) from error


def _output_shapes(draft: Draft) -> Shapes:
    """As inferred, or as they come where inference does not know."""
    inferred = {name: draft.shapes[name] for name in draft.normal.outputs if name in draft.shapes}
    if len(inferred) == len(draft.normal.outputs):
        return inferred
    from edgekernelbench.suite.own.graph.double import Reference

    shapeless = workload_of(draft, {}, LSB_SHARES[0])
    try:  # not ONNX Runtime, which nothing stops in a loop without end
        reference = Reference(draft.model, draft.normal.weights)
        with limited(verify.REFERENCE_S):
            outputs, others = (reference(shapeless.inputs(seed)) for seed in (1, 2))
    except Exception as error:  # operators may raise anything
        raise draft.refused(
            f"ONNX's reference evaluator cannot run the model: {first_line(error)}"
        ) from error
    for name in draft.normal.outputs:
        counting = [node for node in draft.model.graph.node if node.op_type in _COUNTING]
        if outputs[name].shape != others[name].shape or (name not in inferred and counting):
            which = f"; see {label(counting[0])}" if counting else ""
            raise draft.refused(
                f"output {draft.normal.original[name]!r} has no static shape: it depends on the "
                f"values of inputs{which}",
                f"a kernel's shapes are fixed; {CUT}",
            )
    return {name: outputs[name].shape for name in draft.normal.outputs}


def _verified(draft: Draft, outputs: Shapes) -> tuple[Workload, verify.Sample]:
    """The workload, with its share of last-bit differences, and a draw with its truth."""
    where = str(draft.path)
    workload = workload_of(draft, outputs, LSB_SHARES[0])
    verify.check_limits(draft.work, workload.bytes_min, where, CUT)
    drawn = verify.sample(workload, where, CUT, draft.normal.original)
    if workload.tolerance == "f32_dynamic_quant" and draft.tolerance is None:
        strict = workload_of(replace(draft, tolerance="f32_graph"), outputs, LSB_SHARES[0])
        workload = workload if jumps(strict, drawn) else strict
    verdict = verify.twin_verdict(workload, drawn, where, CUT)
    assert verdict is not None
    if workload.tolerance == "int8_requant":
        differing = (1 - verdict.matched_ratio) * _MARGIN
        share = next((share for share in LSB_SHARES if differing <= share), LSB_SHARES[0])
        workload = workload_of(draft, outputs, share)
        verdict = verify.twin_verdict(workload, drawn, where, CUT)
        assert verdict is not None
    if verdict.passed:
        return workload, drawn
    place = _difference(draft, drawn)
    raise draft.refused(
        f"ONNX Runtime and ONNX's reference evaluator differ{place}: {verify.reasons(verdict)}",
        f"which of them is right cannot be known; {CUT}",
    )


def _difference(draft: Draft, drawn: verify.Sample) -> str:
    from edgekernelbench.suite.own.graph.difference import first_difference

    found = first_difference(draft.model, drawn.inputs)
    return f", first at {found}" if found else ""
