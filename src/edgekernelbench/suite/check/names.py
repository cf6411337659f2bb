"""Rules about names: every name in a row and in a pattern's declarations means something.

A name that means nothing is a silent mistake: nobody draws, exempts or reads what it stands for.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

from edgekernelbench.suite.check.model import Notes
from edgekernelbench.suite.controls import CONTROL_KINDS
from edgekernelbench.suite.formula import Number, evaluate, names_in
from edgekernelbench.suite.model import Definition, Workload
from edgekernelbench.suite.patterns.registry import Pattern, arguments

_COUNTED = ("flops_formula", "touched_formula", "naive_formula")
"""Columns whose formulas may use ``ES``, the bytes of an element of ``T``."""


def check_names(workload: Workload, notes: Notes) -> bool:
    """Formulas, small sizes, functions, declarations; False if other rules cannot be tried."""
    if not _check_formulas(workload, notes) or not _check_small(workload, notes):
        return False
    pattern = workload.definition.pattern
    if not _check_functions(workload, pattern, notes):
        return False
    _check_declarations(workload.definition, pattern, notes)
    _check_bindings(workload, pattern, notes)
    return True


def _check_formulas(workload: Workload, notes: Notes) -> bool:
    """Every formula has a value at the workload's sizes."""
    sizes: dict[str, Number] = dict(workload.bindings)
    sound = True
    for column, name, formula in _formulas(workload.definition):
        known = {**sizes, "ES": workload.float_dtype.bytes} if column in _COUNTED else sizes
        try:
            value = evaluate(formula, known)
        except (ValueError, TypeError, ArithmeticError) as error:
            told = f"column {column}: {error} (names: {_listed(known)})"
            sound = notes.expect("row", False, told)
            if column == "derived":
                return False  # whatever uses it would fail for the same reason
            continue
        if column == "derived":
            sizes[name] = value
    return sound


def _formulas(definition: Definition) -> Iterator[tuple[str, str, str]]:
    """Column, name if it has one, formula; derived sizes before those who use them."""
    for name, formula in definition.derived:
        yield "derived", name, formula
    for column, decls in (("inputs", definition.inputs), ("outputs", definition.outputs)):
        for decl in decls:
            for dim in decl.dims:
                yield column, decl.name, dim
    for column in (*_COUNTED, "accumulation"):
        formula = getattr(definition, column)
        if formula:
            yield column, "", formula


def _check_small(workload: Workload, notes: Notes) -> bool:
    sound = True
    for name in workload.definition.small:
        told = f"column small: {name!r} is no binding ({_listed(workload.bindings)})"
        sound = notes.expect("row", name in workload.bindings, told) and sound
    return sound


def _check_functions(workload: Workload, pattern: Pattern, notes: Notes) -> bool:
    """Reference and twin take only what there is."""
    available = dict.fromkeys([*workload.sizes, *(s.name for s in workload.input_specs)])
    functions = [("reference", pattern.reference, 0)]
    if pattern.build_twin is not None:
        functions.append(("twin", pattern.build_twin, 1))
    sound = True
    for kind, function, skip in functions:
        try:
            arguments(function, available, f"the {kind} of {pattern.id}", skip)
        except LookupError as error:
            sound = notes.expect("row", False, str(error.args[0]))
    return sound


def _check_declarations(definition: Definition, pattern: Pattern, notes: Notes) -> None:
    """What ``@pattern`` is told about single inputs or controls is about such as exist."""
    inputs = [decl.name for decl in definition.inputs]
    for argument, given, known, kind in (
        ("draw", pattern.draw, inputs, "input"),
        ("inert", pattern.inert, inputs, "input"),
        ("exempt", pattern.exempt, CONTROL_KINDS, "control"),
    ):
        for name in given:
            told = f"{argument}= of @pattern: {name!r} is no {kind} ({_listed(known)})"
            notes.expect("row", name in known, told)


def _check_bindings(workload: Workload, pattern: Pattern, notes: Notes) -> None:
    """Each binding is used; those that only the code uses are the packaged table's attrs."""
    definition = workload.definition
    free: set[str] = set()
    for _, _, formula in _formulas(definition):
        free |= names_in(formula)
    parameters = inspect.signature(pattern.reference).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in workload.bindings:
        used = name in free or takes_all or name in parameters
        told = f"binding {name!r} is used by no formula, no shape and not by the reference"
        listed = name in free or name in definition.attrs or bool(definition.origin)
        if notes.expect("row", used, told):
            told = f"binding {name!r} stands in no formula and no shape: name it in column attrs"
            notes.expect("row", listed, told)
    for name in definition.attrs:
        told = f"column attrs: {name!r} is no binding ({_listed(workload.bindings)})"
        if notes.expect("row", name in workload.bindings, told):
            told = f"column attrs: {name!r} stands in a formula or shape, so it is no attribute"
            notes.expect("row", name not in free, told)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
