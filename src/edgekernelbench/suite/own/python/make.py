"""Tasks of a Python file: rows made of the tables, everything checked, then stored."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.controls import CONTROL_KINDS
from edgekernelbench.suite.formula import names_in
from edgekernelbench.suite.header import replace_header
from edgekernelbench.suite.model import Definition, Workload
from edgekernelbench.suite.own import verify
from edgekernelbench.suite.own.code import offered
from edgekernelbench.suite.own.guard import is_beside, limited
from edgekernelbench.suite.own.manifest import OwnTask
from edgekernelbench.suite.own.python.read import line_of, read_tasks
from edgekernelbench.suite.own.python.table import TaskPattern
from edgekernelbench.suite.own.rows import definition_row, workload_row
from edgekernelbench.suite.rows import first_fault, pair, split, tensors

_FILE = "tasks.py"
_SMALLER = "choose smaller shapes"
MAX_KERNEL = 4 << 20


def make_tasks(path: Path, suite: str, folder: Path) -> tuple[OwnTask, ...]:
    """One task for each shape of each function.

    Raises:
        UsageError: a table is malformed or a function not fit to be a task; names file, task and
            field.
    """
    try:
        shutil.copyfile(path, folder / _FILE)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})", "give a file") from error
    tasks: list[OwnTask] = []
    for pattern in _in_place(path, folder):
        where = f"{path}: task {pattern.id}"
        program = _canonical(path, pattern, where)
        definition = _definition(pattern, suite, where)
        if program:
            (folder / f"{pattern.id}.ekir").write_text(program, encoding="utf-8")
        with offered(definition.id, pattern):
            for number in range(1, len(pattern.table.shapes) + 1):
                place = f"{where}, shape {number}"
                workload = _workload(definition, pattern, number, path, place)
                workload = _verified(workload, program, folder / _FILE, place)
                tasks.append(_task(workload, pattern, program))
    return tuple(tasks)


def _task(workload: Workload, pattern: TaskPattern, program: str) -> OwnTask:
    return OwnTask(
        workload=workload,
        file=_FILE,
        function=pattern.id,
        canonical=f"{pattern.id}.ekir" if program else "",
        no_canonical="" if program else "its table names none",
    )


def _in_place(path: Path, folder: Path) -> list[TaskPattern]:
    """The tasks of the copy, with messages about the original."""
    try:
        with limited(verify.REFERENCE_S):
            return read_tasks(folder / _FILE)
    except TimeoutError as error:
        raise UsageError(f"{path}: {error} to run", "do no work outside of functions") from error
    except UsageError as error:
        message = error.message.removeprefix(_FILE).replace(str(folder / _FILE), str(path))
        raise UsageError(f"{path}{message}", error.help) from error


def _canonical(path: Path, pattern: TaskPattern, where: str) -> str:
    """The text of the program that the table names; empty if it names none."""
    named = pattern.table.canonical
    if not named:
        return ""
    fault = UsageError(
        f"{where}: canonical: {named!r} cannot be read",
        f"put a kernel file beside the Python file, in {path.parent}",
    )
    try:
        if not is_beside(path, named) or (path.parent / named).stat().st_size > MAX_KERNEL:
            raise fault
        return (path.parent / named).read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise fault from error


# ---------------------------------------------------------------- rows
def _definition(pattern: TaskPattern, suite: str, where: str) -> Definition:
    table = pattern.table
    try:
        const = frozenset(split(table.const, ";"))
        inputs, outputs = tensors(table.inputs, const), tensors(table.outputs)
        derived = tuple(pair(part) for part in split(table.derived, ";"))
    except ValueError as error:
        raise UsageError(f"{where}: {first_fault(error)}", "put that field right") from error
    names = [decl.name for decl in (*inputs, *outputs)]
    sizes = [*table.shapes[0], *(name for name, _ in derived)]
    known = {decl.name for decl in inputs}
    generic = [decl.name for decl in (*inputs, *outputs) if decl.dtype is None]
    for wrong, told in (
        (sorted(const - known), "const names no input"),
        (sorted(set(pattern.draw) - known), "draw names no input"),
        (sorted(set(pattern.inert) - known), "inert names no input"),
        (sorted(set(pattern.exempt) - set(CONTROL_KINDS)), "exempt names no control"),
        ([n for n in names + sizes if (names + sizes).count(n) > 1], "two things are called"),
        (generic, "dtype T is for the packaged suite; write f32 or f16 for"),
        ([] if inputs else ["inputs"], "nothing in"),
        ([] if outputs else ["outputs"], "nothing in"),
    ):
        if wrong:
            raise UsageError(f"{where}: {told} {wrong[0]!r}", "put that field right")
    summary = ((pattern.reference.__doc__ or "").strip() or pattern.id).splitlines()[0]
    dtype = str(next((d.dtype for d in inputs if d.dtype is not None), "f32"))
    return definition_row(
        id=f"{suite}__{pattern.id}",
        level=table.level,
        formula=summary,
        inputs=inputs,
        outputs=outputs,
        notes=table.notes,
        tolerance=table.tolerance,
        dtypes=(dtype,),
        derived=derived,
        flops_formula=table.flops,
        accumulation=table.accumulation,
        lsb_share=table.lsb_share,
        small=dict(table.small),
        origin=suite,
    )


def _workload(
    definition: Definition, pattern: TaskPattern, number: int, path: Path, where: str
) -> Workload:
    bindings = pattern.table.shapes[number - 1]
    try:
        _check_bindings(definition, pattern, bindings, where)
        workload = workload_row(definition, f"{definition.id}__{number:02}", path, bindings)
        specs = (*workload.input_specs, *workload.output_specs)
    except ValueError as error:
        raise UsageError(f"{where}: {first_fault(error)}", "put that formula right") from error
    for spec in specs:
        if any(extent < 1 for extent in spec.shape):
            raise UsageError(
                f"{where}: {spec.name} has the shape {list(spec.shape)}", "extents are at least 1"
            )
    _check_counts(workload, where)
    verify.check_header(workload, where)
    return workload


def _check_counts(workload: Workload, where: str) -> None:
    """Operations and sums are of a size that there can be.

    The allowed error grows with the accumulation: a task that overstates it accepts any answer.
    """
    if workload.flops < 0:
        raise UsageError(f"{where}: flops is {workload.flops}", "put that formula right")
    elements = sum(spec.size for spec in workload.input_specs)
    try:
        terms = workload.accumulation
    except ValueError as error:
        raise UsageError(f"{where}: accumulation: {error}", "put that formula right") from error
    if terms > elements:
        raise UsageError(
            f"{where}: accumulation is {terms}; all inputs have {elements} elements",
            "say how many terms are summed into one output element",
        )


def _check_bindings(
    definition: Definition, pattern: TaskPattern, bindings: dict[str, int | float], where: str
) -> None:
    """Every free name has a number, and every number is used."""
    dims = [dim for decl in (*definition.inputs, *definition.outputs) for dim in decl.dims]
    formulas = [*dims, *(formula for _, formula in definition.derived)]
    formulas += [f for f in (definition.flops_formula, definition.accumulation) if f]
    free = set().union(*map(names_in, formulas)) - {name for name, _ in definition.derived}
    tensors_ = {decl.name for decl in definition.inputs}
    parameters = set(inspect.signature(pattern.reference).parameters)
    missing = sorted(free - set(bindings))
    if missing:
        raise UsageError(f"{where}: no number for {missing[0]!r}", "put it into that shape")
    idle = sorted(set(bindings) - free - (parameters - tensors_))
    if idle:
        raise UsageError(
            f"{where}: {idle[0]!r} is used nowhere",
            "a name of a shape stands in dims, in a formula or is a parameter of the function",
        )
    strange = sorted(set(definition.small) - set(bindings))
    if strange:
        raise UsageError(f"{where}: small: {strange[0]!r} is not in shapes", "remove it")


# ---------------------------------------------------------------- verification
def _verified(workload: Workload, program: str, file: Path, where: str) -> Workload:
    """The workload, its operations counted, after all checks."""
    verify.check_limits(workload.flops, workload.bytes_min, where, _SMALLER)
    help = "see that the function works for inputs of the shapes and dtypes in its table"
    try:
        drawn = verify.sample(workload, where, help)
        verdict = verify.twin_verdict(workload, drawn, f"{where}: twin", "see that it is right")
    except UsageError as error:
        cause = error.__cause__
        line = line_of(cause, file) if cause is not None else ""
        raise UsageError(f"{error.message}{line}", error.help) from error
    if verdict is not None and not verdict.passed:
        raise UsageError(
            f"{where}: the twin differs from the function: {verify.reasons(verdict)}",
            "one of them is wrong, or the tolerance is too strict for float32",
        )
    if not program:
        return workload
    try:
        text = replace_header(program, workload)
    except ValueError as error:
        raise UsageError(f"{where}: canonical: {error}", "see `ekb check FILE`") from error
    fault = verify.program_fault(workload, text, drawn)
    if fault:
        raise UsageError(f"{where}: canonical: {fault}", "see `ekb check FILE`")
    return _counted(workload, text)


def _counted(workload: Workload, text: str) -> Workload:
    """Operations as the canonical program has them, where the table does not say."""
    if workload.definition.flops_formula:
        return workload
    flops = verify.operations_of(text)
    definition = workload.definition.model_copy(update={"flops_formula": str(flops)})
    return workload.model_copy(update={"definition": definition, "flops": flops})
