"""Golden inputs and outputs: what a bundle's self-test runs on, and by which rule it judges."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import ToleranceClass, Workload
from edgekernelbench.suite.tolerance import RULES, Facts, atol_of, compare, rms_of

Arrays = dict[str, np.ndarray]
CASES = 2
_INTERPRET_S = 120.0


@dataclass(frozen=True, slots=True)
class Case:
    """One draw: the non-const inputs, and what the outputs should be (floats in float64)."""

    inputs: Arrays
    truth: Arrays


@dataclass(frozen=True, slots=True)
class Golden:
    """All draws, which share their constants.

    Attributes:
        constants: the const inputs by name, in their declared dtypes.
        origin: where the truth comes from, in words.
        constants_origin: where the constants do.
    """

    constants: Arrays
    cases: tuple[Case, ...]
    tolerance: ToleranceClass
    facts: Facts
    origin: str
    constants_origin: str

    def judge(self, number: int, outputs: Mapping[str, np.ndarray]) -> Correctness:
        """The outputs of one case against the truth."""
        return compare(outputs, self.cases[number].truth, self.tolerance, self.facts)


@dataclass(frozen=True, slots=True)
class OutputRule:
    """The rule for one output in numbers alone, as the C program of the self-test takes them.

    Attributes:
        atol: absolute, one for each case.
        cosine: None where it is not asked for.
    """

    rtol: float
    atol: tuple[float, ...]
    matched: float
    cap: float
    cosine: float | None
    lsb: int


def rules_of(golden: Golden, outputs: tuple[Tensor, ...]) -> dict[str, OutputRule]:
    """`suite.tolerance.compare` of each output in numbers."""
    return {tensor.name: _rule_of(golden, tensor) for tensor in outputs}


def _rule_of(golden: Golden, tensor: Tensor) -> OutputRule:
    rule, facts = RULES[golden.tolerance], golden.facts
    none = (0.0,) * len(golden.cases)
    if not tensor.dtype.is_float:
        matched = 1.0 - facts.lsb_share if rule.lsb else 1.0
        return OutputRule(0.0, none, matched, 1.0, None, rule.lsb)
    truths = [case.truth[tensor.name] for case in golden.cases]
    atol = tuple(atol_of(rule, facts.accumulation) * rms_of(truth) for truth in truths)
    return OutputRule(rule.rtol, atol, rule.matched, rule.cap, rule.cosine, 0)


# ---------------------------------------------------------------- where they come from
def of_workload(workload: Workload, seed: int, constants: Path | None) -> Golden:
    """Draws of a workload, judged as the evaluator judges them.

    Args:
        seed: decides the inputs and, where no file gives them, the constants.
        constants: an ``.npz`` file with the const inputs, in place of drawn ones.
    """
    tensors = tuple(
        Tensor(s.name, s.dtype, s.shape, "input", s.const) for s in workload.input_specs
    )
    drawn = [workload.inputs(seed + number, seed) for number in range(CASES)]
    consts, origin = _constants(tensors, drawn[0], seed, constants)
    cases = []
    for arrays in drawn:
        inputs = {t.name: arrays[t.name] for t in tensors if not t.const}
        cases.append(Case(inputs, workload.truth({**inputs, **consts})))
    return Golden(
        consts,
        tuple(cases),
        workload.tolerance,
        Facts(workload.accumulation, workload.definition.lsb_share),
        f"reference of {workload.id}, in float64",
        origin,
    )


def of_program(program: Program, seed: int, constants: Path | None) -> Golden:
    """Random draws for a kernel of no workload; the truth is its compute layer in float64.

    Raises:
        UsageError: the interpreter gives up, or a program of floats yields no finite number.
    """
    from edgekernelbench.ir.interpret import InterpretError, interpret
    from edgekernelbench.ir.sampling import random_inputs

    drawn = [random_inputs(program, np.random.default_rng([seed, k])) for k in range(CASES)]
    consts, origin = _constants(program.inputs, drawn[0], seed, constants)
    cases = []
    for arrays in drawn:
        inputs = {t.name: arrays[t.name] for t in program.inputs if not t.const}
        try:
            truth = interpret(program, {**inputs, **consts}, "f64", _INTERPRET_S)
        except InterpretError as error:
            raise UsageError(
                f"no golden outputs: {error}", "name the kernel's task with --workload"
            ) from error
        cases.append(Case(inputs, truth))
    lost = [n for c in cases for n, v in c.truth.items() if not np.isfinite(v).any()]
    if lost:
        raise UsageError(
            f"output {lost[0]} has no finite value on random inputs, so it proves nothing",
            "name the kernel's task with --workload: it has inputs that fit",
        )
    return Golden(
        consts, tuple(cases), _tolerance(program), Facts(), "compute layer in float64", origin
    )


def _tolerance(program: Program) -> ToleranceClass:
    dtypes = {tensor.dtype.value for tensor in (*program.inputs, *program.outputs)}
    if "f16" in dtypes:
        return "f16_graph"
    if any(tensor.dtype.is_float for tensor in program.outputs):
        return "f32_graph"
    return "int8_requant" if dtypes & {"f32", "f64"} else "int_exact"


def _constants(
    tensors: tuple[Tensor, ...], drawn: Arrays, seed: int, file: Path | None
) -> tuple[Arrays, str]:
    wanted = tuple(tensor for tensor in tensors if tensor.const)
    if file is None:
        return {t.name: drawn[t.name] for t in wanted}, f"drawn, seed {seed}"
    return _read(file, wanted), "given"


def _read(file: Path, wanted: tuple[Tensor, ...]) -> Arrays:
    listed = ", ".join(f"{t.name} {t.dtype.value}{list(t.shape)}" for t in wanted) or "none"
    way_out = f"a file made by numpy.savez with the const inputs: {listed}"
    try:
        with np.load(file, allow_pickle=False) as stored:
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it is no .npz file")
            found = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{file}: cannot be read ({error})", way_out) from error
    names = {tensor.name for tensor in wanted}
    if set(found) != names:
        other = ", ".join(sorted(set(found) ^ names))
        raise UsageError(f"{file}: has not just the const inputs ({other})", way_out)
    for tensor in wanted:
        array = found[tensor.name]
        if array.dtype != tensor.dtype.numpy or array.shape != tensor.shape:
            is_now = f"{array.dtype}{list(array.shape)}"
            raise UsageError(
                f"{file}: {tensor.name} is {is_now}, not {tensor.dtype.value}{list(tensor.shape)}",
                way_out,
            )
    return found
