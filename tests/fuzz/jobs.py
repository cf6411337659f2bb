"""What is fuzzed: the parser, whole programs, programs with schedule and memory layers for CPUs and
for GPUs, programs on a simulated GPU."""

from __future__ import annotations

import functools
import random
import re
import tempfile
import time
from pathlib import Path

import numpy as np

from edgekernelbench.ir import core
from edgekernelbench.ir.check import Checked, check_text
from edgekernelbench.ir.diagnostics import Diagnostic, render
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.ir.elaborate import elaborate
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from tests.fuzz import draws, programs
from tests.fuzz.engine import Finding, Job, Most
from tests.fuzz.gpu import check_device_run, layered
from tests.fuzz.gpu import prepare as prepare_devices
from tests.fuzz.heavy import heavy
from tests.fuzz.limits import HANG_S, MEMORY_BYTES, limited
from tests.fuzz.texts import mutated, parser_input, varied

COMPILE_S = 60.0
STALLED_S = 1800.0
_HEAVY_RUN = 1500
"""Characters up to which a heavy program is compiled: it is there for the time before."""


def check_told(diagnostics: tuple[Diagnostic, ...], text: str) -> None:
    """Errors must point into the text, say something, and be printable.

    Raises:
        Finding: one of them does not.
    """
    for diagnostic in diagnostics:
        span = diagnostic.span
        if span is not None and not 0 <= span.start <= span.end <= len(text):
            raise Finding(f"{diagnostic.rule.code} points outside the text", str(span))
        if not diagnostic.message.strip():
            raise Finding(f"{diagnostic.rule.code} says nothing")
        render(diagnostic, text)


class ParserJob:
    """Any text: parsed, or refused with errors that can be shown. What parses is verified, too."""

    name = "parser"
    batch = 1000
    cpu_s = HANG_S
    wall_s = 300.0
    memory_bytes: int | None = MEMORY_BYTES

    def prepare(self) -> None:
        check_text("kernel k(x: f32[4]) -> (y: f32[4]) { compute { y[i] = x[i] } }")

    def text(self, seed: int) -> str:
        return parser_input(seed)

    def check(self, text: str, seed: int, most: Most) -> str:
        began = time.process_time()
        out = check_text(text)
        check_told(out.diagnostics, text)
        if out.program is None and not any(d.severity == "error" for d in out.diagnostics):
            raise Finding("refused without an error")
        if out.kernel is not None:
            printed = print_kernel(out.kernel)
            if parse(printed).kernel != out.kernel:
                raise Finding("the printed kernel is another one", printed)
        most.note("text_s", time.process_time() - began, seed)
        if out.kernel is None:
            return "refused"
        return "parsed" if out.program is None else "verified"


def checked(text: str, seed: int, most: Most) -> Checked:
    """Parsed, elaborated and verified, within the time and the memory for that.

    Raises:
        Finding: it took more memory than a text may.
    """
    with limited() as use:
        out = check_text(text)
    most.note("text_s", use.seconds, seed)
    most.note("text_mb", use.added_mb, seed)
    check_told(out.diagnostics, text)
    if out.program is None and not any(d.severity == "error" for d in out.diagnostics):
        raise Finding("refused without an error")
    return out


class _CompilingJob:
    """What the jobs that compile their programs have in common."""

    batch = 40
    cpu_s = COMPILE_S
    wall_s = STALLED_S
    memory_bytes: int | None = None

    def prepare(self) -> None:
        _load_compiler()


class ProgramJob(_CompilingJob):
    """Programs without layers: refused, or compiled by the default rules and right."""

    name = "programs"

    def text(self, seed: int) -> str:
        """Three in five well-formed, one reckless, the rest mutations and a few heavy ones."""
        if seed % 20 == 19:
            return f"# heavy\n{heavy(seed)}"
        match seed % 5:
            case 3:
                return f"# reckless\n{programs.reckless(seed)}"
            case 4:
                rng = random.Random(f"mutation {seed}")
                change = rng.choice((varied, varied, varied, mutated))
                return f"# mutation\n{change(canonical_text(rng), rng)}"
        return f"# well formed\n{programs.well_formed(seed)}"

    def check(self, text: str, seed: int, most: Most) -> str:
        source = source_of(text)
        out = checked(text, seed, most)
        if out.program is None or out.kernel is None:
            if source == "well formed":
                raise Finding(f"well-formed program {_code(out)}", out.diagnostics[0].message)
            return f"{source}: refused"
        if source == "heavy" and len(text) > _HEAVY_RUN:
            return f"{source}: verified"
        return f"{source}: {run(out, source, seed)}"


class LayersJob(_CompilingJob):
    """Programs with random layers: refused by an error of the layers, or right."""

    name = "layers"

    def text(self, seed: int) -> str:
        """Three in five on random programs, two on canonical programs at small sizes."""
        rng = random.Random(f"layers {seed}")
        if seed % 5 < 3:
            return f"# well formed\n{_layered(programs.well_formed(seed + (1 << 32)), rng)}"
        return f"# canonical\n{_layered(canonical_text(rng), rng)}"

    def check(self, text: str, seed: int, most: Most) -> str:
        source = source_of(text)
        out = checked(text, seed, most)
        if out.program is None or out.kernel is None:
            raise Finding(f"well-formed program {_code(out)}", out.diagnostics[0].message)
        return f"{source}: {run(out, source, seed)}"


class DeviceLayersJob(_CompilingJob):
    """Programs with random layers for GPUs, on PoCL."""

    name = "gpu"
    batch = 20

    def prepare(self) -> None:
        super().prepare()
        prepare_devices()

    def text(self, seed: int) -> str:
        """Three in five on random programs, two on canonical programs at small sizes."""
        rng = random.Random(f"gpu {seed}")
        if seed % 5 < 3:
            text = programs.well_formed(seed + (3 << 32))
            return f"# well formed\n{layered(text, rng)}"
        return f"# canonical\n{layered(canonical_text(rng), rng)}"

    def check(self, text: str, seed: int, most: Most) -> str:
        source = source_of(text)
        out = checked(text, seed, most)
        if out.program is None or out.kernel is None:
            raise Finding(f"well-formed program {_code(out)}", out.diagnostics[0].message)
        if draws.too_large(out.program):
            return f"{source}: too large to run"
        inputs = _inputs(out.program, source, seed)
        tracked = source == "well formed"
        return f"{source}: {check_device_run(out.kernel, out.program, inputs, tracked)}"


class RacesJob(_CompilingJob):
    """Programs under the default rules for GPUs, simulated work item by work item: no races, no
    barriers that diverge, nothing out of bounds. Results are other tests' business."""

    name = "races"
    batch = 10

    def text(self, seed: int) -> str:
        """First the canonical program of every pattern at its small sizes, then random ones."""
        if seed < len(_patterns()):
            return f"# canonical\n{_without_f16(_canonical(_patterns()[seed]))}"
        return f"# well formed\n{_without_f16(programs.well_formed(seed + (2 << 32)))}"

    def check(self, text: str, seed: int, most: Most) -> str:
        from tests.lowering.run_grind import NotSimulated, watched

        source = source_of(text)
        program = checked(text, seed, most).program
        if program is None:
            raise Finding(f"{source} program is refused")
        if draws.too_large(program):
            return f"{source}: too large to run"
        with tempfile.TemporaryDirectory() as folder:
            try:
                reports = watched(text, Path(folder), compared=False)
            except NotSimulated as unknown:
                return f"{source}: Oclgrind lacks {unknown}"
        if reports:
            raise Finding(reports[0].title, reports[0].text)
        return f"{source}: clean"


def _without_f16(text: str) -> str:
    """Oclgrind converts no halves; loops and threads are the same for f32."""
    return re.sub(r"\bf16\b", "f32", text)


def source_of(text: str) -> str:
    """Where a text came from: its first line says it."""
    return text.partition("\n")[0].removeprefix("#").strip()


def run(out: Checked, source: str, seed: int) -> str:
    """Compiles, runs and compares a checked program, unless that would take long."""
    from edgekernelbench.targets.host import host_target
    from tests.fuzz.execute import check_run

    assert out.kernel is not None and out.program is not None
    if draws.too_large(out.program):
        return "too large to run"
    inputs = _inputs(out.program, source, seed)
    tracked = source == "well formed"
    return check_run(out.kernel, out.program, host_target(), inputs, tracked)


def _inputs(program: core.Program, source: str, seed: int) -> dict[str, np.ndarray]:
    from edgekernelbench.ir.sampling import random_inputs

    if source == "well formed":
        return draws.draw_inputs(program, seed)
    if source in ("reckless", "heavy"):
        return draws.hostile_inputs(program, seed)
    return random_inputs(program, np.random.default_rng(seed))


def _code(out: Checked) -> str:
    return next((d.rule.code for d in out.diagnostics if d.severity == "error"), "no error")


def _layered(text: str, rng: random.Random) -> str:
    """The kernel with random layers, most often such as the lowering accepts."""
    from edgekernelbench.lowering.lower import lower
    from edgekernelbench.targets.host import host_target
    from tests.lowering.random_layers import random_layers

    kernel = parse(text).kernel
    program = None if kernel is None else elaborate(kernel).program
    if kernel is None or program is None:
        return text
    layered = kernel
    for _ in range(rng.choice((1, 4, 12))):
        schedule, memory = random_layers(program, rng)
        layered = with_layers(kernel, (schedule,), (memory,))
        try:
            if lower(layered, program, host_target()).module is not None:
                break
        except Exception:  # the check of this very input will say so
            break
    return print_kernel(layered)


# ---------------------------------------------------------------- texts that are compiled
@functools.cache
def _patterns() -> tuple[str, ...]:
    """A workload of each pattern."""
    from edgekernelbench.suite.load import load_suite

    found = {workload.pattern: workload.id for workload in load_suite().workloads.values()}
    return tuple(found.values())


@functools.cache
def _canonical(workload: str) -> str:
    from edgekernelbench.suite.find import find_workload

    return find_workload(workload).small().canonical()


def canonical_text(rng: random.Random) -> str:
    """A canonical program at the small sizes of its pattern."""
    return _canonical(rng.choice(_patterns()))


def _load_compiler() -> None:
    """What every child would load: forks share it."""
    import tvm  # noqa: F401

    from edgekernelbench.compilers.tvm import build, emit  # noqa: F401
    from edgekernelbench.targets.host import host_target
    from tests.fuzz.guards import library

    host_target()
    library()
    _patterns()
    parse("")


JOBS: dict[str, Job] = {
    job.name: job for job in (ParserJob(), ProgramJob(), LayersJob(), DeviceLayersJob(), RacesJob())
}


def job_of(file: Path) -> tuple[Job, int]:
    """The job and the seed that a file's name ``JOB-SEED[-words].ekir`` gives."""
    name, seed, *_ = file.stem.split("-")
    return JOBS[name], int(seed)


def found_files() -> list[Path]:
    """Inputs that once showed a fault, made small."""
    return sorted((Path(__file__).parent / "found").glob("*.ekir"))
