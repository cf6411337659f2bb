"""What LEKA's screen stops before the device: a fixed mixture of patches, judged by the device.

.venv/bin/python benchmarks/screen.py --out runs/screen.jsonl
.venv/bin/python benchmarks/screen.py --workload softmax_last__02 --each 2 --out runs/one.jsonl

For every task of a subset, patches to its canonical program are made by a seed: the tuner's first
moves; those moves without their vectors and threads, and with their loops turned round; compute
layers with one operator exchanged; and layers that break a rule. Each is screened as LEKA does, and
each that makes a kernel is evaluated, whatever the screen says. What a patch *is* the device
decides: ``illegal`` was not built, ``wrong`` has wrong results, ``slow`` takes at least twice as
long as the task's fastest, ``good`` is the rest. A line of the file is a task with all its patches;
started again, it goes on with the tasks that are left. Prints how many of each kind were stopped,
and ends with status 1 where an illegal or a wrong one was not. A good one that was stopped is a
fault, too, and told.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgekernelbench.agents.base import Budget, Device, Task
from edgekernelbench.agents.leka.layers import Layer, Patch, Refused, layer_text, patched
from edgekernelbench.agents.leka.screen import Screen, Screened, surely_slower
from edgekernelbench.agents.tuner import Moves
from edgekernelbench.evaluator import EvalSettings, Evaluator
from edgekernelbench.evaluator.model import Evaluation, EvaluationStatus
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.records.schema import Spent
from edgekernelbench.runs.bench import Bench
from edgekernelbench.suite import Workload, load_suite
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import load_peaks
from edgekernelbench.targets.registry import find_target

KINDS = ("illegal", "wrong", "slow", "good")
SLOW = 2.0
"""Times the fastest one's time from which a kernel is slow."""

BRIEF = EvalSettings(measure_s=0.05, interval=0.2, replicas=1, baselines=())

_EXCHANGED = (
    (r"\bmax\[", "min["), (r"\bmin\[", "max["), (r"\bsum\[", "max["), (r" \+ ", " - "),
    (r" - ", " + "), (r" \* ", " + "), (r" / ", " * "), (r"\bexp\(", "tanh("),
    (r"\bmax\(", "min("), (r"\bsqrt\(", "abs("), (r"\btanh\(", "exp("), (r" < ", " > "),
)  # fmt: skip
_ILLEGAL = (
    "schedule for cpu {{ loops {stage} (parallel nowhere) }}",
    "schedule for cpu {{ loops nothing (i) }}",
    "schedule for cpu {{ loops {stage} (i by 0, i) }}",
    "schedule for cpu {{ place {stage} in {stage}.i }}",
    "schedule for cpu {{ inline {stage}, nothing }}",
    "schedule for cpu {{ loops {stage} ",
    "memory for cpu {{ layout nothing [i] -> [i] }}",
    "memory for gpu {{ cache {stage} at {stage}.i }}",
)

Proposal = tuple[Patch, ...]


# ---------------------------------------------------------------- the mixture
@dataclass(frozen=True, slots=True)
class Given:
    """A proposal and what it was made to be; what it is, the device says."""

    meant: str
    proposal: Proposal


def mixture(workload: Workload, target: Target, each: int, seed: int) -> list[Given]:
    """Up to ``each`` patches of each kind; a task whose formula has few operators has fewer."""
    base = kernel_of(workload.canonical())
    rng = random.Random(f"{seed}|{workload.id}")
    moves = list(itertools.islice(_moves(workload, target, seed), each))
    slow = list(dict.fromkeys(itertools.chain.from_iterable(map(_slowed, moves))))
    wrong = list(dict.fromkeys(_wrong(layer_text(base, "compute", target))))
    illegal = list(dict.fromkeys(_illegal(base, target)))
    made = {"good": moves, "slow": slow, "wrong": wrong, "illegal": illegal}
    return [
        Given(meant, proposal)
        for meant, proposals in made.items()
        for proposal in rng.sample(proposals, min(each, len(proposals)))
    ]


def kernel_of(text: str) -> Kernel:
    kernel = parse(text).kernel
    assert kernel is not None, "the canonical program and the moves parse"
    return kernel


def _moves(workload: Workload, target: Target, seed: int) -> Iterator[Proposal]:
    """The tuner's, as if the first one stayed the fastest; the default rules are none."""
    layers: tuple[Layer, ...] = ("schedule", "memory")
    moves = Moves(workload.canonical(), target, seed)
    for number, (_, text) in enumerate(moves):
        moves.tell(1.0 + number)
        kernel = kernel_of(text)
        patches = tuple(Patch(one, layer_text(kernel, one, target)) for one in layers)
        if patches[0].text:
            yield patches


def _slowed(move: Proposal) -> Iterator[Proposal]:
    schedule, *others = move
    text = schedule.text
    plain = re.sub(r"\b(parallel|vectorize|unroll) ", "", text)
    for changed in (
        text.replace("vectorize ", ""),
        text.replace("parallel ", ""),
        plain,
        re.sub(r"(loops \S+ \()(.*)\)", lambda m: f"{m[1]}{_turned(m[2])})", plain),
    ):
        if changed != text:
            yield (Patch("schedule", changed), *others)


def _turned(pieces: str) -> str:
    return ", ".join(reversed(pieces.split(", ")))


def _wrong(compute: str) -> Iterator[Proposal]:
    for pattern, other in _EXCHANGED:
        for found in re.finditer(pattern, compute):
            text = compute[: found.start()] + other + compute[found.end() :]
            yield (Patch("compute", text),)


def _illegal(base: Kernel, target: Target) -> Iterator[Proposal]:
    compute = layer_text(base, "compute", target)
    output = base.outputs[0].name
    for template in _ILLEGAL:
        text = template.format(stage=output)
        layer: Layer = "memory" if text.startswith("memory") else "schedule"
        yield (Patch(layer, text),)
    for found in re.finditer(rf"\b{re.escape(base.inputs[0].name)}\[", compute):
        yield (Patch("compute", f"{compute[: found.start()]}nothing[{compute[found.end() :]}"),)
        yield (Patch("compute", f"{compute[: found.end()]}0, {compute[found.end() :]}"),)


# ---------------------------------------------------------------- screened and measured
@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a patch. ``us``: of a call; None where it is not correct. ``what``: its
    text, on one line."""

    meant: str
    kind: str
    stopped: bool
    why: str
    us: float | None = None
    what: str = ""


def judged(workload: Workload, target: Target, bench: Bench, given: Sequence[Given]) -> list[Seen]:
    """Screens and measures. The estimate of the fastest kernel is what others are held against; the
    fastest itself is held against whichever else promises most, which may be measured first."""
    device = Device(
        functools.partial(bench.evaluate, workload),
        Budget(Spent()),
        check_kernel=functools.partial(bench.check, workload),
        report_kernels=bench.reports,
        hold=bench.hold,
    )
    screen = Screen(Task(workload, target), device, load_peaks(target))
    base = kernel_of(workload.canonical())
    found = [screen.patch(base, one.proposal) for one in given]
    results = [_evaluated(one, base, device, target, given[k]) for k, one in enumerate(found)]
    times = {k: r.performance.median_us for k, r in enumerate(results) if r and r.performance}
    fastest, promising = _held_against(found, times)
    least = None if fastest is None else times[fastest]
    seen = []
    for number, (one, screened, result) in enumerate(zip(given, found, results, strict=True)):
        against = promising if number == fastest else fastest
        why = _why_stopped(screened, None if against is None else found[against])
        us = times.get(number)
        what = " ".join(" ".join(patch.text for patch in one.proposal).split())
        seen.append(Seen(one.meant, _kind(result, us, least), bool(why), why, us, what))
    return seen


def _held_against(
    found: Sequence[Screened | Refused], times: Mapping[int, float]
) -> tuple[int | None, int | None]:
    """The fastest one, and that of all others with a time whose estimate is the least."""
    fastest = min(times, key=lambda k: times[k], default=None)
    estimates: dict[int, float] = {}
    for number in times.keys() - {fastest}:
        one = found[number]
        if isinstance(one, Screened) and one.estimated_us is not None:
            estimates[number] = one.estimated_us
    return fastest, min(sorted(estimates), key=lambda k: estimates[k], default=None)


def _why_stopped(screened: Screened | Refused, best: Screened | Refused | None) -> str:
    if isinstance(screened, Refused):
        return screened.told.partition("\n")[0]
    times = surely_slower(screened, best) if isinstance(best, Screened) else None
    return "" if times is None else f"estimated at {times:.1f} times another"


def _evaluated(
    screened: Screened | Refused, base: Kernel, device: Device, target: Target, given: Given
) -> Evaluation | None:
    """What the device says; None where the patch makes no text of a kernel at all."""
    if isinstance(screened, Screened):
        return device.evaluate_kernel(screened.text)
    kernel = base
    for patch in given.proposal:
        new = patched(kernel, patch, target)
        if isinstance(new, Refused):
            return None
        kernel = new
    return device.evaluate_kernel(print_kernel(kernel))


def _kind(result: Evaluation | None, us: float | None, least: float | None) -> str:
    """By the device's verdict; ``other`` where it is none of the four, such as a time-out."""
    unbuilt = ("invalid_ir", "compile_error", "over_budget", "wrong_shape_or_dtype")
    if result is None or result.status.value in unbuilt:
        return "illegal"
    if result.status is EvaluationStatus.WRONG_RESULT:
        return "wrong"
    if us is None or least is None:
        return "other"
    return "slow" if us >= SLOW * least else "good"


# ---------------------------------------------------------------- what is kept and told
class Kept:
    """The file of a measurement: a line a task, of one mixture alone.

    Raises:
        SystemExit: it holds tasks of another seed, size or host's target.
    """

    def __init__(self, path: Path, told: Mapping[str, Any]) -> None:
        self._path = path
        self._told = dict(told)
        self.rows: dict[str, list[Seen]] = {}
        lines = path.read_text(encoding="utf-8").splitlines(True) if path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        if whole != lines:  # the last one was being written when the run was ended
            path.write_text("".join(whole), encoding="utf-8")
        for line in map(json.loads, whole):
            if {name: line[name] for name in told} != self._told:
                raise SystemExit(
                    f"{path} holds another mixture than {self._told}: give a new --out"
                )
            self.rows[line["workload"]] = [Seen(**row) for row in line["patches"]]

    def add(self, workload: str, seen: Sequence[Seen]) -> None:
        self.rows[workload] = list(seen)
        line = {**self._told, "workload": workload, "patches": [asdict(row) for row in seen]}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def summary(rows: Sequence[Seen]) -> dict[str, dict[str, int]]:
    """By kind, how many there were and how many were stopped."""
    stopped: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        stopped[row.kind][row.stopped] += 1
    kinds = [*KINDS, *sorted(stopped.keys() - set(KINDS))]
    return {
        kind: {"patches": stopped[kind].total(), "stopped": stopped[kind][True]} for kind in kinds
    }


def faults(rows: Mapping[str, Sequence[Seen]]) -> list[str]:
    """One by one, what went through that should not have, then what was stopped for nothing."""
    every = [(name, row) for name, each in rows.items() for row in each]
    through = [
        f"through: {name}: {row.kind}: {row.what}"
        for name, row in every
        if row.kind in ("illegal", "wrong") and not row.stopped
    ]
    needless = [
        f"stopped: {name}: good, {row.us:.4g} us: {row.why}: {row.what}"
        for name, row in every
        if row.kind == "good" and row.stopped
    ]
    return through + needless


def table(rows: Mapping[str, Sequence[Seen]]) -> str:
    """The counts of all tasks, as lines."""
    lines = [f"{len(rows)} tasks", f"{'kind':10}{'patches':>9}{'stopped':>9}{'share':>9}"]
    for kind, count in summary([row for each in rows.values() for row in each]).items():
        share = f"{count['stopped'] / count['patches']:.1%}" if count["patches"] else "-"
        lines.append(f"{kind:10}{count['patches']:9}{count['stopped']:9}{share:>9}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--subset", default="agent")
    parser.add_argument("--workload", action="append", help="only these tasks")
    parser.add_argument("--each", type=int, default=4, help="patches of each kind for a task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/screen.jsonl"))
    options = parser.parse_args()
    suite, target = load_suite(), find_target("llvm")
    kept = Kept(options.out, {"seed": options.seed, "each": options.each, "target": target.name})
    names = options.workload or [w.id for w in suite.subset(options.subset)]
    with Evaluator(target, settings=BRIEF) as evaluator, Bench(evaluator) as bench:
        for name in (name for name in names if name not in kept.rows):
            workload = suite.workloads[name]
            given = mixture(workload, target, options.each, options.seed)
            kept.add(name, judged(workload, target, bench, given))
            print(name, json.dumps(summary(kept.rows[name])), file=sys.stderr, flush=True)
    rows = {name: kept.rows[name] for name in names}
    found = faults(rows)
    print("\n".join([table(rows), *found]))
    sys.exit(any(line.startswith("through") for line in found))


if __name__ == "__main__":
    main()
