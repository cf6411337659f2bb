"""Everything about a kernel that can be known without compiling it, step by step and timed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.baselines.base import Port
from edgekernelbench.ir.core import Program, Tensor
from edgekernelbench.ir.diagnostics import Diagnostic, Rule, Span
from edgekernelbench.ir.surface import Kernel, Param, Size
from edgekernelbench.lowering.nest import Module
from edgekernelbench.targets.model import Target

if TYPE_CHECKING:
    from edgekernelbench.evaluator.task import EvalTask

HEADER_NAMES = Rule(
    "E501", "a task fixes the header: its sizes, inputs and outputs keep their names and order"
)
HEADER_TENSOR = Rule(
    "E502", "a task fixes the header: each tensor keeps its dtype, its shape and its const"
)
HEADER_SIZE = Rule("E503", "a task fixes the header: each size keeps its value")
TARGET_DTYPE = Rule("E504", "a target runs kernels whose tensors have dtypes that it computes with")

Step = Literal["parse", "elaborate", "verify", "header", "lower"]


class Interface(BaseModel):
    """What the header of a task's kernels must amount to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    header: str
    ports: tuple[Port, ...]
    sizes: dict[str, int | float]

    @classmethod
    def of(cls, task: EvalTask) -> Interface:
        from edgekernelbench.evaluator.task import ports

        return cls(header=task.header(), ports=ports(task), sizes=dict(task.sizes))


@dataclass(slots=True)
class StaticResult:
    """How far a text came.

    Attributes:
        kernel: there when it parses.
        program: there when it elaborates, verifies and fits the task.
        module: there when it was lowered.
        step: the last step that was taken; it failed unless `ok`.
        seconds: wall time by step.
    """

    kernel: Kernel | None = None
    program: Program | None = None
    module: Module | None = None
    step: Step = "parse"
    ok: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)


def static_check(
    text: str, workload: EvalTask | None = None, target: Target | None = None
) -> StaticResult:
    """Parses and verifies; compares the header with a task's; lowers for a target."""
    interface = None if workload is None else Interface.of(workload)
    result = check_text(text, interface)
    if result.ok and target is not None:
        from edgekernelbench.lowering.lower import lower

        assert result.kernel is not None and result.program is not None
        if lacking := lacking_dtypes(result.program, target):
            warning = Diagnostic(TARGET_DTYPE, lacking, severity="warning")
            result.diagnostics += (warning,)
        with _Step(result, "lower"):
            lowered = lower(result.kernel, result.program, target)
            result.diagnostics += lowered.diagnostics
            result.module, result.ok = lowered.module, lowered.module is not None
    return result


def lacking_dtypes(program: Program, target: Target) -> str:
    """Says which dtypes of the inputs and outputs a target lacks; empty when it has all."""
    used = {tensor.dtype.value for tensor in (*program.inputs, *program.outputs)}
    missing = sorted(used & set(target.dtypes_missing))
    return f"target '{target.name}' cannot compute with {', '.join(missing)}" if missing else ""


def check_text(text: str, interface: Interface | None) -> StaticResult:
    """Parses, elaborates, verifies, and compares the header with the task's."""
    from edgekernelbench.ir.elaborate import elaborate
    from edgekernelbench.ir.parse import parse
    from edgekernelbench.ir.verify import verify

    result = StaticResult()
    with _Step(result, "parse"):
        parsed = parse(text)
        result.kernel, result.diagnostics = parsed.kernel, parsed.diagnostics
    if result.kernel is None or _errors(result.diagnostics):
        return result
    with _Step(result, "elaborate"):
        elaborated = elaborate(result.kernel)
        result.diagnostics += elaborated.diagnostics
    if elaborated.program is None or _errors(result.diagnostics):
        return result
    with _Step(result, "verify"):
        result.diagnostics += verify(elaborated.program)
    if _errors(result.diagnostics):
        return result
    if interface is not None:
        with _Step(result, "header"):
            result.diagnostics += compare_header(result.kernel, elaborated.program, interface)
    if not _errors(result.diagnostics):
        result.program, result.ok = elaborated.program, True
    return result


class _Step:
    """Notes which step a result is in, and how long that took."""

    def __init__(self, result: StaticResult, step: Step) -> None:
        self._result = result
        self._step: Step = step

    def __enter__(self) -> None:
        self._result.step = self._step
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._result.seconds[self._step] = time.perf_counter() - self._began


def _errors(diagnostics: tuple[Diagnostic, ...]) -> bool:
    return any(d.severity == "error" for d in diagnostics)


# ---------------------------------------------------------------- header
def compare_header(
    kernel: Kernel, program: Program, interface: Interface
) -> tuple[Diagnostic, ...]:
    """All differences between a kernel's header and the task's."""
    found = _compare_names(kernel, interface)
    if not found:
        found = _compare_tensors(kernel, program, interface)
        found += _compare_sizes(kernel, dict(program.sizes), interface)
    return tuple(found)


def _compare_names(kernel: Kernel, interface: Interface) -> list[Diagnostic]:
    groups: tuple[tuple[str, tuple[Size | Param, ...], list[str]], ...] = (
        ("inputs", kernel.inputs, _names(interface, False)),
        ("outputs", kernel.outputs, _names(interface, True)),
        ("sizes", kernel.sizes, list(interface.sizes)),
    )
    found = []
    for what, entries, wanted in groups:
        given = [entry.name for entry in entries]
        if given != wanted:
            message = f"the {what} are {_listed(given)}; the task's are {_listed(wanted)}"
            span = _first_other(kernel, entries, wanted)
            found.append(_diagnostic(HEADER_NAMES, message, span, interface))
    return found


def _first_other(kernel: Kernel, entries: Sequence[Size | Param], wanted: list[str]) -> Span:
    """The first name that differs; `kernel` where names are only missing."""
    for k, entry in enumerate(entries):
        if entry.name not in wanted[k : k + 1]:
            return Span(entry.span.start, entry.span.start + len(entry.name))
    return Span(kernel.span.start, kernel.span.start + len("kernel"))


def _names(interface: Interface, outputs: bool) -> list[str]:
    return [port.name for port in interface.ports if (port.role == "output") == outputs]


def _compare_tensors(kernel: Kernel, program: Program, interface: Interface) -> list[Diagnostic]:
    found = []
    params = (*kernel.inputs, *kernel.outputs)
    tensors = (*program.inputs, *program.outputs)
    for port, tensor, param in zip(interface.ports, tensors, params, strict=True):
        const = port.role == "const"
        if (tensor.dtype, tensor.shape, tensor.const) != (port.dtype, port.shape, const):
            wanted = _described(port.dtype.value, port.shape, const)
            message = f"'{port.name}' is {_tensor(tensor)}; the task's is {wanted}"
            found.append(_diagnostic(HEADER_TENSOR, message, param.span, interface))
    return found


def _compare_sizes(
    kernel: Kernel, sizes: Mapping[str, int | float], interface: Interface
) -> list[Diagnostic]:
    spans = {size.name: size.span for size in kernel.sizes}
    return [
        _diagnostic(
            HEADER_SIZE,
            f"'{name}' is {sizes[name]!r}; the task's is {wanted!r}",
            spans.get(name),
            interface,
        )
        for name, wanted in interface.sizes.items()
        if sizes[name] != wanted
    ]


def _tensor(tensor: Tensor) -> str:
    return _described(tensor.dtype.value, tensor.shape, tensor.const)


def _described(dtype: str, shape: tuple[int, ...], const: bool) -> str:
    return f"{'const ' if const else ''}{dtype}{list(shape)}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _diagnostic(rule: Rule, message: str, span: Span | None, interface: Interface) -> Diagnostic:
    return Diagnostic(rule, message, span, (f"copy the task's header: {interface.header}",))
