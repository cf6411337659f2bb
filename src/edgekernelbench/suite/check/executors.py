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

if TYPE_CHECKING:
    from edgekernelbench.ir.check import Checked
    from edgekernelbench.ir.interpret import Mode

MARGIN = 0.5
"""Largest share of the allowed error that an honest executor may take."""
LOOSEST = 2e-4
"""Least share of the allowed error that a float32 compiler's result should take."""


def check_twin(workload: Workload, seed: int, notes: Notes) -> None:
    """The twin in ONNX Runtime."""
    from edgekernelbench.suite.twin import run_twin

    pattern = workload.definition.pattern
    stated = pattern.has_twin == (pattern.no_twin is None)
    notes.expect("twin", stated, "either a twin, or a reason why there is none")
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
    worst = _compare("twin", workload, outputs, inputs, notes)
    if not workload.tolerance.startswith("int"):
        notes.worst("twin_error", worst)
        notes.expect("twin", worst < MARGIN, f"worst error {worst:.3g} of the allowed one")


def check_canonical(workload: Workload, seeds: tuple[int, ...], notes: Notes) -> None:
    """The canonical program in the interpreter, both modes."""
    checked = _canonical(workload, notes)
    if checked is None:
        return
    for seed in seeds:
        inputs = workload.inputs(seed)
        for mode in ("f64", "declared"):
            _interpret(workload, checked, inputs, mode, float("inf"), notes)


def check_canonical_at_full_size(workload: Workload, effort: Effort, notes: Notes) -> None:
    """The same once more at full size, if that does not take too long."""
    checked = _canonical(workload, notes)
    if checked is not None:
        _interpret(workload, checked, workload.inputs(1), "f64", effort.interpret_s, notes)


def _canonical(workload: Workload, notes: Notes) -> Checked | None:
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.ir.diagnostics import render

    try:
        text = workload.canonical()
    except (FileNotFoundError, ValueError) as error:
        if workload.definition.origin and isinstance(error, FileNotFoundError):
            notes.skipped["canonical"] = str(error)  # users need not write one
            return None
        notes.expect("canonical", False, f"no canonical program: {error}")
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
    began = time.monotonic()
    try:
        results = interpret(checked.program, inputs, mode=mode, limit_s=limit_s)
    except InterpretError as error:
        if time.monotonic() - began >= limit_s:
            notes.skipped["canonical at full size"] = f"takes longer than {limit_s:g} s"
        else:
            notes.error("canonical", error)
        return
    outputs = {s.name: results[s.name].astype(s.dtype.numpy) for s in workload.output_specs}
    notes.worst("canonical_error", _compare("canonical", workload, outputs, inputs, notes))


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
    worst = _compare("compiled", workload, outputs, inputs, notes)
    if workload.tolerance.startswith("int") or workload.tolerance == "exact_move":
        return
    notes.worst("compiled_error", worst)
    notes.expect("tight", worst <= MARGIN, f"worst error {worst:.3g} of the allowed one")
    if worst > 0:
        notes.expect("loose", worst >= LOOSEST, f"worst error {worst:.3g} of the allowed one")


def _run(workload: Workload, folder: Path, inputs: Arrays) -> Arrays:
    from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy

    arrays = {name: aligned_copy(array) for name, array in inputs.items()}
    consts = {s.name: arrays.pop(s.name) for s in workload.input_specs if s.const}
    outputs = {s.name: aligned_copy(poison(s, 1)) for s in workload.output_specs}
    LoadedKernel(folder).bind(arrays, consts, outputs)()
    return {name: np.array(array) for name, array in outputs.items()}


def _compare(rule: str, workload: Workload, outputs: Arrays, inputs: Arrays, notes: Notes) -> float:
    """The worst error of ``outputs``, as a multiple of the allowed one."""
    for spec in workload.output_specs:
        got = outputs[spec.name]
        fits = got.shape == spec.shape and got.dtype == spec.dtype.numpy
        told = f"{workload.id}: {spec.name} comes as {got.dtype}{got.shape}"
        if not notes.expect(rule, fits, told):
            return float("inf")
    verdict = workload.compare(outputs, workload.truth(inputs, cache=False))
    reasons = "; ".join(f"{d.name}: {d.reason}" for d in verdict.outputs if d.reason)
    notes.expect(rule, verdict.passed, f"{workload.id}: {reasons}")
    return verdict.worst_error
