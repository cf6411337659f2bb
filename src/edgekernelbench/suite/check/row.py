"""Rules about a row of the tables."""

from __future__ import annotations

from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.check.names import check_names
from edgekernelbench.suite.model import Workload
from edgekernelbench.suite.tolerance import RULES as TOLERANCES

MAX_BYTES = 256 * 2**20
PROVENANCES = ("run:", "file:", "page:", "spec:", "typical", "memory")
BACKENDS = ("cpu_llvm", "gpu_cuda", "gpu_opencl", "gpu_opencl:cl_khr_fp16")


def check_row(workload: Workload, notes: Notes) -> bool:
    """Numbers, names, dtypes and the header; False if other rules cannot be tried."""
    if not check_names(workload, notes):
        return False
    _check_numbers(workload, notes)
    _check_classes(workload, notes)
    _check_origin(workload, notes)
    _check_header(workload, notes)
    return True


def _check_numbers(workload: Workload, notes: Notes) -> None:
    written = {
        "flops": workload.flops,
        "bytes_min": workload.bytes_min,
        "bytes_touched": workload.bytes_touched,
    }
    counted = workload.counted()
    for name, value in written.items():
        right = value == counted[name]
        notes.expect("row", right, f"{name} is {value}, the formula says {counted[name]}")
    sizes = workload.bytes_touched <= workload.bytes_min <= MAX_BYTES
    notes.expect("row", sizes, f"bytes_min {workload.bytes_min}: touched more, or too large")
    for version in (workload, workload.small()):
        specs = (*version.input_specs, *version.output_specs)
        empty = [spec.name for spec in specs if spec.size <= 0]
        notes.expect("row", not empty, f"{version.id}: no elements in {', '.join(empty)}")


def _check_classes(workload: Workload, notes: Notes) -> None:
    """Dtype and tolerance class suit each other and the pattern."""
    definition, tolerance = workload.definition, workload.tolerance
    known = workload.dtype in definition.dtypes
    listed = "|".join(definition.dtypes)
    told = f"dtype {workload.dtype} is not in the pattern's column dtypes ({listed!r})"
    notes.expect("row", known, told)
    needed = f"{workload.float_dtype}_{tolerance.partition('_')[2]}"
    fits = tolerance == needed or not tolerance.startswith(("f16_", "f32_"))
    remedy = f"use {needed}" if needed in TOLERANCES else f"there is no {needed}"
    told = f"tolerance {tolerance} for dtype {workload.dtype}: {remedy}"
    notes.expect("row", fits, told)
    alike = definition.tolerance.split("_")[1:] == tolerance.split("_")[1:]
    told = f"tolerance {tolerance} for a pattern of {definition.tolerance}"
    notes.expect("row", alike, told)
    free = any(not spec.const for spec in workload.input_specs)
    notes.expect("row", free, "every input is const: nothing to compute at run time")
    sums = tolerance.endswith(("_reduction", "_softmax"))
    counts = not sums or bool(definition.accumulation)
    notes.expect("row", counts, f"{tolerance} needs the column accumulation")


def _check_origin(workload: Workload, notes: Notes) -> None:
    """Where the shape is from and where it runs, as far as these are of fixed form."""
    provenance = workload.provenance
    known = any(
        provenance.startswith(form) and len(provenance) > len(form)
        if form.endswith(":")
        else provenance == form
        for form in PROVENANCES
    )
    forms = ", ".join(f"{form}..." if form.endswith(":") else form for form in PROVENANCES)
    notes.expect("row", known, f"provenance {provenance!r} is none of {forms}")
    notes.expect("row", bool(workload.backends), "column backends: there is none")
    for backend in workload.backends:
        told = f"column backends: {backend!r} is none of {', '.join(BACKENDS)}"
        notes.expect("row", backend in BACKENDS, told)


def _check_header(workload: Workload, notes: Notes) -> None:
    from edgekernelbench.ir.parse import parse

    output = workload.output_specs[0].name
    kernel = parse(f"{workload.header()} {{ compute {{ {output} = 0 }} }}").kernel
    if not notes.expect("row", kernel is not None, "the header does not parse"):
        return
    assert kernel is not None
    declared = [(p.name, p.dtype, p.const) for p in (*kernel.inputs, *kernel.outputs)]
    wanted = [(s.name, s.dtype, s.const) for s in (*workload.input_specs, *workload.output_specs)]
    notes.expect("row", declared == wanted, f"the header declares {declared}")
