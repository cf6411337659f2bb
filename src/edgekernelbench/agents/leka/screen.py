"""Everything that can be known of a patch before the device is touched.

Parse, verify, interpret (where the compute layer changed), lower, limits of the target, and an
estimate. What fails comes back as a text for its author.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from edgekernelbench.agents.base import Device, Task
from edgekernelbench.agents.leka.layers import Patch, Refused, layer_text, patched
from edgekernelbench.analysis.estimate import Estimate
from edgekernelbench.analysis.explain import Explanation
from edgekernelbench.analysis.report import NoReport, ReportOptions, StaticReport
from edgekernelbench.evaluator.attempt import Check
from edgekernelbench.ir import core
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.ir.interpret.frame import InterpretError
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.holes import fill_first, fill_holes, find_holes
from edgekernelbench.suite.correctness import Correctness
from edgekernelbench.suite.model import Workload
from edgekernelbench.targets.peaks import Peaks

_DRAWS = 2
_INTERPRET_S = 5.0
_VARIANTS_S = 60.0
_STAGE_BYTES = 256 << 20
"""Of all stages at reduced sizes; a program that stores more is not interpreted."""


@dataclass(frozen=True, slots=True)
class Screened:
    """A candidate that may be measured.

    Attributes:
        text: of the kernel, canonical; with holes it is one of its variants.
        form: text of the compute layer.
        patches: what made it of the candidate before it.
        estimate: None on GPUs.
        note: what could not be screened.
    """

    kernel: s.Kernel
    text: str
    form: str
    patches: tuple[Patch, ...] = ()
    estimate: Estimate | None = None
    note: str = ""

    @property
    def estimated_us(self) -> float | None:
        return None if self.estimate is None else self.estimate.us


_SLOWER = 4.0
"""Times the estimate of the best candidate from which one is not measured."""


def surely_slower(found: Screened, best: Screened) -> float | None:
    """How many times the best candidate's estimate the least of another is, where it is so many
    that measuring is not worth it. What has holes is never given up: its variants may differ."""
    if found.estimate is None or best.estimate is None or find_holes(found.kernel):
        return None
    times = found.estimate.least_us / best.estimate.us
    return times if times > _SLOWER else None


class Screen:
    """Screens patches for one task.

    Args:
        peaks: of the target, where measured.
        device: builds kernels, and reports on them, in limited processes; neither costs an
            evaluation. What these do in time is done here, too, and nothing else; like them, it
            waits while another attempt measures.
        interpreting: whether compute layers are interpreted.
    """

    def __init__(
        self, task: Task, device: Device, peaks: Peaks | None, interpreting: bool = True
    ) -> None:
        self._task = task
        self._device = device
        self._peaks = peaks
        self._interpreting = interpreting
        self._right: dict[str, str] = {}
        self._explained: dict[str, Explanation | None] = {}

    def kernel(
        self, kernel: s.Kernel, patches: tuple[Patch, ...] = (), trusted: bool = False
    ) -> Screened | Refused:
        """Screens a whole kernel, holes at their first choices.

        Args:
            trusted: it was made by rules from a program that verifies, and needs no building.
        """
        whole = fill_first(kernel)
        text = print_kernel(whole)
        if not trusted:
            built = self._built(text)
            if built is not None:
                return built
        form = layer_text(whole, "compute", self._task.target)
        interpreted = self._interpreting and not trusted
        small = self._task.workload.small().bindings if interpreted else None
        (reported,) = self._device.reports([text], self._options(form, small))
        if isinstance(reported, NoReport):
            return Refused(reported.told)
        note = self._wrong(form, text) if interpreted else ""
        if note.startswith(_WRONG):
            return Refused(note)
        return Screened(kernel, text, form, patches, reported.guess, note)

    def _options(self, form: str, small: Mapping[str, int | float] | None) -> ReportOptions:
        """What is asked of a candidate: the estimate, and whether its new compute layer can be
        checked at reduced sizes in reasonable time."""
        new = small is not None and form not in self._right
        return ReportOptions(
            target=self._task.target,
            peaks=self._peaks,
            whole=False,
            also_at=dict(small) if small is not None and new else None,
        )

    def explained(self, screened: Screened) -> Explanation | None:
        """The static report of a candidate; None where that takes too long."""
        if screened.text not in self._explained:
            options = ReportOptions(target=self._task.target, peaks=self._peaks)
            (found,) = self._device.reports([screened.text], options)
            known = found.explanation if isinstance(found, StaticReport) else None
            self._explained[screened.text] = known
        return self._explained[screened.text]

    def patch(
        self, base: s.Kernel, patches: tuple[Patch, ...], trusted: bool = False
    ) -> Screened | Refused:
        """Applies patches one after the other and screens what comes of them.

        Where a new compute layer leaves a schedule or memory layer behind that speaks of stages
        that are gone, those layers go, too; what is then told is about the compute layer alone.
        """
        kernel = base
        for patch in patches:
            new = patched(kernel, patch, self._task.target)
            if isinstance(new, Refused):
                return new
            kernel = new
        found = self.kernel(kernel, patches, trusted)
        compute = any(patch.layer == "compute" for patch in patches)
        if isinstance(found, Refused) and compute and (kernel.schedules or kernel.memories):
            return self.kernel(replace(kernel, schedules=(), memories=()), patches, trusted)
        return found

    def variants(
        self, screened: Screened, choose: Callable[[int], list[int]]
    ) -> dict[tuple[int, ...], Screened]:
        """The candidate with numbers in its holes, by which choice each hole has; what does not
        lower is left out. Choices that make thousands of copies of a body take long to lower: after
        a minute the rest is not looked at.

        Args:
            choose: of so many combinations, the numbers of those that are looked at.
        """
        sites = find_holes(screened.kernel)
        made: dict[tuple[int, ...], Screened] = {}
        for number in choose(math.prod(len(site.choices) for site in sites)):
            taken = []
            for site in reversed(sites):
                number, at = divmod(number, len(site.choices))
                taken.insert(0, at)
            values = [site.choices[at] for site, at in zip(sites, taken, strict=True)]
            kernel = fill_holes(screened.kernel, values)
            made[tuple(taken)] = replace(screened, kernel=kernel, text=print_kernel(kernel))
        if self._device.budget.all_spent():
            return {}
        texts = [variant.text for variant in made.values()]
        options = ReportOptions(target=self._task.target, peaks=self._peaks, whole=False)
        reports = self._device.reports(texts, options, _VARIANTS_S)
        return {
            taken: replace(variant, estimate=found.guess)
            for (taken, variant), found in zip(made.items(), reports, strict=False)
            if isinstance(found, StaticReport)
        }

    def _built(self, text: str) -> Refused | None:
        check: Check = self._device.check(text)
        if check.status is None:
            return None
        rendered = [str(d["rendered"]) for d in check.diagnostics if d.get("severity") == "error"]
        return Refused("\n\n".join(rendered[:6]) or f"{check.status.value}: {check.message}")

    # ------------------------------------------------------------ meaning
    def _wrong(self, form: str, text: str) -> str:
        """What is wrong with the results of a compute layer, beginning with `_WRONG`; why that is
        not known; or nothing."""
        if form not in self._right:
            with self._device.still():
                self._right[form] = _compared(self._task.workload, text)
        return self._right[form]


_WRONG = "wrong results"


def _compared(workload: Workload, text: str) -> str:
    """Interprets a kernel and compares with the reference that the task's statement shows: at the
    pattern's small sizes or, where it does not verify at them, at the task's own."""
    small = workload.small()
    checked = check_text(text, small.bindings)
    if checked.program is not None:
        return _compared_at(small, checked.program, _DRAWS)
    whole = check_text(text)
    return "" if whole.program is None else _compared_at(workload, whole.program, 1)


def _compared_at(workload: Workload, program: core.Program, draws: int) -> str:
    stored = sum(stage.tensor.bytes for _, stage in core.stages(program.body))
    if stored > _STAGE_BYTES:
        return "not interpreted: it stores too much"
    for seed in range(draws):
        inputs = workload.inputs(seed)
        try:
            outputs = interpret(program, inputs, "declared", _INTERPRET_S)
        except InterpretError as error:
            return f"not interpreted: {error}"
        truth = workload.truth(inputs, cache=False)
        verdict = workload.compare(outputs, truth)
        if not verdict.passed:
            return f"{_WRONG} at {_sizes(workload)}: {_fault(verdict)}{_where(outputs, truth)}"
    return ""


def _fault(verdict: Correctness) -> str:
    return next((f"{one.name} {one.reason}" for one in verdict.outputs if not one.passed), "")


def _sizes(workload: Workload) -> str:
    return ", ".join(f"{name}={value}" for name, value in workload.bindings.items())


def _where(outputs: dict[str, np.ndarray], truth: dict[str, np.ndarray]) -> str:
    """The element that is farthest off."""
    for name, wanted in truth.items():
        got = np.asarray(outputs[name], np.float64)
        off = np.abs(got - np.asarray(wanted, np.float64))
        off = np.where(np.isfinite(off), off, np.inf)
        if off.size and off.max() > 0:
            at = np.unravel_index(int(off.argmax()), off.shape)
            index = ", ".join(str(int(i)) for i in at)
            return f"; {name}[{index}] is {got[at]:.6g} and should be {float(wanted[at]):.6g}"
    return ""
