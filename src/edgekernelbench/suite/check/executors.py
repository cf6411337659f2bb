"""The reference against executors that know nothing of it: ONNX Runtime, the interpreter, and
the compiled canonical program."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.check.model import Effort, Notes
from edgekernelbench.suite.controls import poison
from edgekernelbench.suite.model import Arrays, Workload
from edgekernelbench.suite.tolerance import ROUNDING, RULES

if TYPE_CHECKING:
    from edgekernelbench.ir.check import Checked
    from edgekernelbench.ir.interpret import Mode
    from edgekernelbench.suite.correctness import Correctness, OutputDetail

MARGIN = 0.5
"""Largest share of the allowed error that an honest executor may take."""
LOOSEST = 2e-4
"""Least share of the allowed error that a float32 compiler's result should take."""


def check_twin(workload: Workload, seed: int, notes: Notes) -> None:
    """The twin in ONNX Runtime."""
    from edgekernelbench.suite.twin import run_twin

    pattern = workload.definition.pattern
    stated = pattern.has_twin == (pattern.no_twin is None)
    remedy = f'add one with @{pattern.id}.twin, or say @pattern(..., no_twin="why")'
    notes.expect("twin", stated, f"either a twin, or a reason why there is none: {remedy}")
    if not pattern.has_twin:
        notes.skipped["twin"] = pattern.no_twin or ""
        return
    inputs = workload.inputs(seed)
    try:
        model = workload.twin(inputs)
        assert model is not None
        outputs = run_twin(model, inputs)
    except Exception as error:  # ONNX Runtime's exceptions have no common base
        notes.error("twin", error)
        return
    where = f"ONNX Runtime, {_sizes(workload)}"
    verdict = _compare("twin", where, workload, outputs, inputs, notes)
    if verdict is None or workload.tolerance.startswith("int"):
        return
    worst = verdict.worst_error
    notes.worst("twin_error", worst)
    if verdict.passed:
        told = f"{where}: worst error {worst:.3g} of the allowed one; {MARGIN:g} is the limit"
        notes.expect("twin", worst < MARGIN, told)


def check_canonical(workload: Workload, seeds: tuple[int, ...], notes: Notes) -> None:
    """The canonical program in the interpreter, both modes, until one run fails."""
    checked = _canonical(workload, notes)
    if checked is None:
        return
    for seed in seeds:
        inputs = workload.inputs(seed)
        for mode in ("f64", "declared"):
            _interpret(workload, checked, inputs, mode, float("inf"), notes)
            if notes.broke("canonical"):
                return


def check_canonical_at_full_size(workload: Workload, effort: Effort, notes: Notes) -> None:
    """The same once more at full size, if that does not take too long."""
    checked = _canonical(workload, notes)
    if checked is not None:
        _interpret(workload, checked, workload.inputs(1), "f64", effort.interpret_s, notes)


def _canonical(workload: Workload, notes: Notes) -> Checked | None:
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.ir.diagnostics import render

    path = f"suite/canonical/{workload.pattern}.ekir"
    try:
        text = workload.canonical()
    except FileNotFoundError as error:
        if workload.definition.origin:
            notes.skipped["canonical"] = str(error)  # users need not write one
        else:
            told = f"there is no {path}: write it (docs/adding-a-pattern.md, section 5)"
            notes.expect("canonical", False, told)
        return None
    except ValueError as error:
        where = "" if workload.definition.origin else f"{path}: "
        notes.expect("canonical", False, f"{where}{error}")
        return None
    checked = check_text(text)
    wrong = "\n".join(render(d, text) for d in checked.diagnostics)
    sound = checked.program is not None and not wrong
    return checked if notes.expect("canonical", sound, wrong) else None


def _interpret(
    workload: Workload, checked: Checked, inputs: Arrays, mode: Mode, limit_s: float, notes: Notes
) -> None:
    from edgekernelbench.ir.interpret import InterpretError, interpret

    assert checked.program is not None
    precision = "float64" if mode == "f64" else "declared dtypes"
    where = f"interpreter, {precision}, {_sizes(workload)}"
    began = time.monotonic()
    try:
        results = interpret(checked.program, inputs, mode=mode, limit_s=limit_s)
    except InterpretError as error:
        if time.monotonic() - began >= limit_s:
            notes.skipped["canonical at full size"] = f"takes longer than {limit_s:g} s"
        else:
            notes.expect("canonical", False, f"{where}: {error}")
        return
    outputs = {s.name: results[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
    verdict = _compare("canonical", where, workload, outputs, inputs, notes)
    if verdict is not None:
        notes.worst("canonical_error", verdict.worst_error)


def check_compiled(workload: Workload, notes: Notes) -> None:
    """The canonical program, compiled for this host under the default rules."""
    from edgekernelbench.compilers.tvm import TvmCompiler
    from edgekernelbench.targets.host import host_target

    checked = _canonical(workload, notes)
    if checked is None or checked.kernel is None or checked.program is None:
        return
    inputs = workload.inputs(2)
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-check-") as name:
        folder = Path(name)
        began = time.monotonic()
        built = TvmCompiler().compile(checked.kernel, checked.program, host_target(), folder)
        notes.figures["compile_s"] = round(time.monotonic() - began, 3)
        if built.artifact is None:
            notes.expect("compiled", False, "; ".join(d.message for d in built.diagnostics))
            return
        outputs = _run(workload, folder, inputs)
    verdict = _compare("compiled", _sizes(workload), workload, outputs, inputs, notes)
    if verdict is None or not verdict.passed:
        return
    worst = verdict.worst_error
    if workload.tolerance.startswith("int") or workload.tolerance == "exact_move":
        return
    notes.worst("compiled_error", worst)
    notes.expect("tight", worst <= MARGIN, f"worst error {worst:.3g} of the allowed one")
    if workload.tolerance == ROUNDING:
        notes.skipped["loose"] = "the class allows for rounding to another integer, which is rare"
    elif worst > 0:
        worst = max(worst, notes.figures.get("twin_error", 0.0))
        notes.expect("loose", worst >= LOOSEST, f"worst error {worst:.3g} of the allowed one")


def _run(workload: Workload, folder: Path, inputs: Arrays) -> Arrays:
    from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy

    arrays = {name: aligned_copy(array) for name, array in inputs.items()}
    consts = {s.name: arrays.pop(s.name) for s in workload.input_specs if s.const}
    outputs = {s.name: aligned_copy(poison(s, 1)) for s in workload.output_specs}
    LoadedKernel(folder).bind(arrays, consts, outputs)()
    return {name: np.array(array) for name, array in outputs.items()}


def _compare(
    rule: str, where: str, workload: Workload, outputs: Arrays, inputs: Arrays, notes: Notes
) -> Correctness | None:
    """How ``outputs`` compare with the truth; None where their shapes or dtypes are wrong."""
    for spec in workload.output_specs:
        got = outputs[spec.name]
        fits = got.shape == spec.shape and got.dtype == spec.dtype.numpy
        told = (
            f"{where}: {spec.name} comes as {got.dtype}{list(got.shape)}, not as "
            f"{spec.dtype.numpy}{list(spec.shape)}"
        )
        if not notes.expect(rule, fits, told):
            return None
    truth = workload.truth(inputs, cache=False)
    verdict = workload.compare(outputs, truth)
    notes.compared.add(rule)
    reasons = "; ".join(_reason(workload, d, outputs, truth) for d in verdict.outputs if d.reason)
    notes.expect(rule, verdict.passed, f"{where}: {reasons}")
    return verdict


def _sizes(workload: Workload) -> str:
    changed = workload.id.partition("@")[2]
    return f"small sizes ({changed})" if changed else "full size"


def _reason(workload: Workload, detail: OutputDetail, outputs: Arrays, truth: Arrays) -> str:
    """Why an output fails: where nothing but equality counts, by an example."""
    rule = RULES[workload.tolerance]
    got, right = outputs[detail.name], truth[detail.name]
    exact = rule.rtol == rule.atol == 0 or right.dtype.kind != "f"
    if not exact or rule.lsb:
        return f"{detail.name}: {detail.reason}"
    both_nan = (got != got) & (right != right)
    wrong = (got != right) & ~both_nan
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{detail.name}: {wrong.sum()} of {wrong.size} elements differ, the first at "
        f"{list(first)}: {got[first].item()!r}, expected {right[first].item()!r}"
    )
