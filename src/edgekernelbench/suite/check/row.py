"""Rules about a row of the tables."""

from __future__ import annotations

from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.model import Workload

MAX_BYTES = 256 * 2**20


def check_row(workload: Workload, notes: Notes) -> None:
    """Numbers, names, dtypes and the header of a workload."""
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
    known = workload.dtype in workload.definition.dtypes
    notes.expect("row", known, f"dtype {workload.dtype} is none of the pattern's")
    classes = (workload.definition.tolerance, workload.tolerance)
    alike = classes[0].split("_")[1:] == classes[1].split("_")[1:]
    notes.expect("row", alike, f"tolerance {classes[1]} for a pattern of {classes[0]}")
    free = any(not spec.const for spec in workload.input_specs)
    notes.expect("row", free, "every input is const: nothing to compute at run time")
    sums = not workload.tolerance.endswith(("_reduction", "_softmax"))
    counts = sums or bool(workload.definition.accumulation)
    notes.expect("row", counts, f"{workload.tolerance} needs the column accumulation")
    _check_header(workload, notes)


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
