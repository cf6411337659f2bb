"""What a built kernel takes of a target, against what the target has: known before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.base import KernelBill, Manifest, StaticFacts
from edgekernelbench.compilers.launch import LaunchPlan, calls
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.lowering.nest import Module
from edgekernelbench.targets.model import Gpu, Target

LIMIT_CODES = frozenset(("E613", "E615", "E630", "E631"))
"""Rules that say of a kernel that it takes more than the target has, and give the sum."""


class Item(BaseModel):
    """One line of the bill.

    Attributes:
        what: of the target that is taken (``memory``, ``threads of main_kernel``).
        terms: of the sum, in order; together they are ``needed``.
        unit: of all numbers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    needed: int
    allowed: int
    unit: str
    terms: tuple[tuple[str, int], ...] = ()

    @property
    def over(self) -> bool:
        return self.needed > self.allowed

    def says(self) -> str:
        """The line for people, with its sum."""
        total = f"{self.needed} {self.unit} needed, {self.allowed} allowed"
        summed = f" ({' + '.join(f'{name} {n}' for name, n in self.terms)})" if self.terms else ""
        return f"{self.what}: {total}{summed}"


def over(items: Iterable[Item]) -> str:
    """Says what is over its limit; empty when nothing is."""
    return "; ".join(item.says() for item in items if item.over)


def beyond_limits(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether a kernel was refused for nothing but what it takes of the target."""
    errors = [d for d in diagnostics if d.severity == "error"]
    return bool(errors) and all(d.rule.code in LIMIT_CODES for d in errors)


def bill_of(manifest: Manifest, target: Target) -> tuple[Item, ...]:
    """The bill of an artifact: a line for each limit that the target has."""
    tensors = {a.name: a.bytes for a in manifest.arguments}
    plans: dict[str, LaunchPlan] = {**manifest.plans}
    return tuple(_bill(manifest.facts, tensors, plans, target))


def bill_of_module(
    program: Program, module: Module, facts: StaticFacts, target: Target
) -> tuple[Item, ...]:
    """The same of a loop program, as far as it is known without a compiler."""
    tensors = {t.name: t.bytes for t in (*program.inputs, *program.outputs, *module.packed)}
    return tuple(_bill(facts, tensors, {}, target))


def _bill(
    facts: StaticFacts,
    tensors: Mapping[str, int],
    plans: Mapping[str, LaunchPlan],
    target: Target,
) -> Iterator[Item]:
    terms = (
        ("inputs and outputs", facts.io_bytes),
        ("packed constants", facts.packed_bytes),
        ("workspace", facts.workspace_bytes),
    )
    total = sum(n for _, n in terms)
    yield Item(what="memory", needed=total, allowed=target.memory_bytes, unit="bytes", terms=terms)
    spaces = {s.name: s.bytes for plan in plans.values() for s in plan.workspaces}
    sizes = {**tensors, **spaces}
    if target.buffer_bytes is not None and sizes:
        largest = max(sizes, key=lambda name: sizes[name])
        yield _bytes(f"buffer {largest}", sizes[largest], target.buffer_bytes)
    if target.workspace_bytes is not None:
        yield _bytes("workspace", facts.workspace_bytes, target.workspace_bytes)
    if target.code_bytes is not None and facts.code_bytes is not None:
        yield _bytes("code", facts.code_bytes, target.code_bytes)
    if target.gpu is not None:
        yield from _kernels(facts.kernels, plans, target.gpu)


def _bytes(what: str, needed: int, allowed: int) -> Item:
    return Item(what=what, needed=needed, allowed=allowed, unit="bytes")


def _kernels(
    bills: tuple[KernelBill, ...], plans: Mapping[str, LaunchPlan], gpu: Gpu
) -> Iterator[Item]:
    threads, dynamic = launched(plans)
    known = {bill.name: bill for bill in bills}
    for name in sorted({*threads, *known}):
        count, asked, bill = threads.get(name, 0), dynamic.get(name, 0), known.get(name)
        if count:
            yield Item(
                what=f"threads of {name}", needed=count, allowed=gpu.max_threads, unit="threads"
            )
        static = 0 if bill is None else bill.shared_bytes
        most = gpu.shared_optin_bytes if asked and gpu.shared_optin_bytes else gpu.shared_bytes
        yield Item(
            what=f"shared memory of {name}",
            needed=static + asked,
            allowed=most,
            unit="bytes",
            terms=(("static", static), ("asked for by the launch", asked)) if asked else (),
        )
        if bill is not None and bill.registers is not None:
            yield from _registers(name, bill.registers, count, gpu)


def _registers(name: str, registers: int, threads: int, gpu: Gpu) -> Iterator[Item]:
    unit = "registers"
    if gpu.registers is not None:
        what = f"registers of a thread of {name}"
        yield Item(what=what, needed=registers, allowed=gpu.registers, unit=unit)
    if gpu.registers_block is not None and threads:
        what = f"registers of a block of {name} ({threads} threads of {registers})"
        needed = threads * registers
        yield Item(what=what, needed=needed, allowed=gpu.registers_block, unit=unit)


def launched(plans: Mapping[str, LaunchPlan]) -> tuple[dict[str, int], dict[str, int]]:
    """The most threads of a block, and the most shared memory that a launch asks for, by kernel."""
    threads: dict[str, int] = {}
    shared: dict[str, int] = {}
    for plan in plans.values():
        for call in calls(plan):
            x, y, z = call.group_size
            threads[call.kernel] = max(threads.get(call.kernel, 0), x * y * z)
            shared[call.kernel] = max(shared.get(call.kernel, 0), call.shared_bytes)
    return threads, shared
