"""What Oclgrind reports of a kernel, as diagnostics.

Oclgrind is an OpenCL device that simulates kernels and watches every access: those outside of
buffers, those of two work items to one place without a barrier between them, and barriers that
only some of a group reach. It writes a log; each report is a paragraph of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from edgekernelbench.ir.diagnostics import Diagnostic, Rule
from edgekernelbench.targets.model import Gpu

OUT_OF_BOUNDS = Rule("E620", "device kernels access their buffers within bounds")
DATA_RACE = Rule("E621", "what one work item writes no other touches without a barrier between")
DIVERGENCE = Rule("E622", "all work items of a group reach the same barriers")
OTHER = Rule("E623", "the checker has nothing to report")
UNKNOWN = Rule("E624", "the checker knows every operation of a kernel")

LOG = "oclgrind.log"
_MOST = 1000
"""Reports a kernel after which Oclgrind stops writing them."""

_GLOBAL_BYTES = (1 << 31) - 1
"""Memory of the simulated device: the most that it takes."""

_KINDS = (
    (re.compile(r"Invalid (?:read|write) of size"), OUT_OF_BOUNDS),
    (re.compile(r"(?:Read-write|Write-write) data race"), DATA_RACE),
    (re.compile(r"Work-group divergence"), DIVERGENCE),
    (re.compile(r"Unsupported argument type"), UNKNOWN),
)
_FATAL = re.compile(r"^OCLGRIND FATAL ERROR \([^)\n]*\)\n", re.MULTILINE)
_SUPPRESSED = re.compile(r"^Oclgrind: \d+ errors generated - suppressing[^\n]*", re.MULTILINE)
_KERNEL = re.compile(r"^\tKernel:\s+(\S+)", re.MULTILINE)
_LINE = re.compile(r"^\tAt line (\d+)[^\n]*\n\t  ([^\n]*)", re.MULTILINE)
_ENTITY = re.compile(r"ntity:\s+(Global\([^)]*\))")
_ADDRESS = re.compile(r" at (global|local|private|constant) memory address \S+")
_HELP = {
    OUT_OF_BOUNDS: "an index in the generated source leaves its buffer",
    DATA_RACE: "a barrier is missing, or two work items own the same element",
    DIVERGENCE: "a barrier stands under a condition that differs within a group",
    OTHER: "the whole report is in the note",
    UNKNOWN: "Oclgrind converts no f16: nothing is known of work items that stop there; "
    "check the kernel with f32 in place of f16",
}


_LACKING = re.compile(r"Undefined external function: (\S+)")


def lacking(told: str) -> str:
    """What Oclgrind does not know of a kernel's code, as it said on standard error; else empty."""
    found = _LACKING.search(told)
    return found[1] if found else ""


def settings(gpu: Gpu, log: str) -> dict[str, str]:
    """Environment that makes Oclgrind watch for races and run groups as large as a device does."""
    return {
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_CHECK_API": "1",
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",  # optimised code has intrinsics it lacks
        "OCLGRIND_MAX_ERRORS": str(_MOST),
        "OCLGRIND_MAX_WGSIZE": str(gpu.max_threads),
        "OCLGRIND_LOCAL_MEM_SIZE": str(gpu.shared_bytes),
        "OCLGRIND_GLOBAL_MEM_SIZE": str(_GLOBAL_BYTES),
        "OCLGRIND_LOG": log,
    }


@dataclass(frozen=True, slots=True)
class Report:
    """One paragraph of the log. ``lines``: number and text of the source lines it names."""

    rule: Rule
    title: str
    kernel: str
    lines: tuple[tuple[int, str], ...]
    entities: tuple[str, ...]
    text: str

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """What makes two reports the same fault: work items and addresses do not."""
        return self.title, self.kernel, tuple(sorted({number for number, _ in self.lines}))


def reports(log: str) -> tuple[Report, ...]:
    """The paragraphs of a log, in its order, without the one that says there were too many."""
    log = _FATAL.sub("", _SUPPRESSED.sub("", log))
    starts = [m.start() for m in re.finditer(r"^\S", log, re.MULTILINE)]
    ends = [*starts[1:], len(log)] if starts else []
    return tuple(_report(log[a:b].rstrip()) for a, b in zip(starts, ends, strict=True))


def _report(text: str) -> Report:
    head = text.splitlines()[0].strip()
    rule = next((rule for pattern, rule in _KINDS if pattern.match(head)), OTHER)
    kernel = _KERNEL.search(text)
    return Report(
        rule=rule,
        title=_ADDRESS.sub(r" in \1 memory", head).rstrip(":\ufffd "),
        kernel=kernel.group(1) if kernel else "",
        lines=tuple((int(n), source.strip()) for n, source in _LINE.findall(text)),
        entities=tuple(_ENTITY.findall(text)),
        text=text,
    )


def diagnostics(found: Iterable[Report]) -> tuple[Diagnostic, ...]:
    """A diagnostic a fault; how often it was seen is in its message."""
    groups: dict[tuple, list[Report]] = {}
    for report in found:
        groups.setdefault(report.key, []).append(report)
    return tuple(_diagnostic(group) for group in groups.values())


def _diagnostic(group: list[Report]) -> Diagnostic:
    first = group[0]
    where = " and ".join(f"line {n}" for n in sorted({number for number, _ in first.lines}))
    parts = [first.title]
    if first.kernel:
        parts.append(f"kernel {first.kernel}" + (f", {where}" if where else ""))
    if len(group) > 1:
        parts.append(f"{len(group)} times")
    source = dict.fromkeys(f"line {n}: {text}" for n, text in first.lines)
    notes = (*source, *(f"work item {entity}" for entity in first.entities))
    notes = notes if first.rule is not OTHER else (first.text[:2000],)
    return Diagnostic(first.rule, "; ".join(parts), None, (_HELP[first.rule],), tuple(notes))
